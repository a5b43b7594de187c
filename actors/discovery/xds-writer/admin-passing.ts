/** `mesh.admin.v1.AdminService` on the ports of a writer: authenticates the caller and passes the call to the main thread. */
import {
  type AdminCallQuestion,
  type AdminCallReply,
  adminMethods,
  adminServiceName,
  adminStreamBounds,
  adminStreams,
  boundsOf,
} from '../../../protocols/messages/admin-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import { trailersOf } from '../../grpc/grpc-stream.ts'
import type { CallStatus } from '../../rpc/call.ts'
import type { Rpc, RpcHandler, RpcResponse, Rpcs } from '../../rpc/rpc-methods.ts'
import { adminStream } from './admin-stream.ts'
import { type StatusAccess, unconditional } from './status-access.ts'

/** Returns the methods. `ask` asks the main thread; it rejects when that does not answer. */
export function adminPassing(access: StatusAccess, ask: (question: AdminCallQuestion) => Promise<AdminCallReply>): Rpcs {
  const handler: RpcHandler = async ({ path, body, call }) => {
    const admitted = await access.callerOf(call)
    if (admitted !== unconditional && 'code' in admitted) return refused(admitted)
    const frames: Uint8Array[] = []
    for await (const frame of body) frames.push(frame)
    const caller = admitted === unconditional ? undefined : admitted
    const question = { path, body: Buffer.concat(frames), caller }
    if (isStream(path)) return adminStream(question, call.signal, ask)
    return await ask(question).then(passedOn, () => refused({ code: status.unavailable, message: 'the main thread does not answer' }))
  }
  return new Map(
    adminMethods.map((name): [string, Rpc] => {
      const path = `/${adminServiceName}/${name}`
      const load = () => Promise.resolve(handler)
      return [path, isStream(path) ? { type: 'server_stream', bounds: adminStreamBounds, load } : { type: 'unary', bounds: boundsOf(name), load }]
    }),
  )
}

const isStream = (path: string): boolean => adminStreams.includes(path.slice(path.lastIndexOf('/') + 1))

const passedOn = ({ body, trailers }: AdminCallReply): RpcResponse => ({ status: 200, headers: {}, body: once(body), trailers: () => trailers })

const refused = ({ code, message }: CallStatus): RpcResponse => {
  const { ':status': _, 'content-type': __, ...trailers } = trailersOf(code, message)
  return { status: 200, headers: {}, body: once(new Uint8Array()), trailers: () => trailers }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.length > 0) yield bytes
}
