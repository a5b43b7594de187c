/** `mesh.admin.v1.AdminService` as it is served on the main thread: on HTTP servers, and to writers for their callers. */
import {
  type AdminCallQuestion,
  type AdminCallReply,
  adminBounds,
  adminMethods,
  adminServiceName,
  adminStreamBounds,
  adminStreams,
  boundsOf,
} from '../../../protocols/messages/admin-call.ts'
import type { MeshIdentityNames } from '../../../src/identity/access.ts'
import type { Call } from '../../rpc/call.ts'
import { type DeclaredRpc, lazyRpcs, type RpcHandler, type Rpcs } from '../../rpc/rpc-methods.ts'
import type { AdminRpcParts } from './admin-rpcs.ts'
import { type Admit, operator, type Viewer, viewerOf } from './page-access.ts'
import type { StreamPlace } from './push-rpcs.ts'

/** What all of its servers share. */
export type AdminParts = Omit<AdminRpcParts, 'admit' | 'admin' | 'placeOf'>

const declared: Readonly<Record<string, DeclaredRpc>> = Object.fromEntries(
  adminMethods.map((name) => [
    `/${adminServiceName}/${name}`,
    adminStreams.includes(name) ? { type: 'server_stream', bounds: adminStreamBounds } : { type: 'unary', bounds: boundsOf(name) },
  ]),
)

/** Returns the methods for an HTTP server with this access control. */
export function adminService(parts: AdminParts, admin: boolean, admit: Admit): Rpcs {
  const admitCall = ({ headers, ends }: Call) => admit({ headers, connection: ends })
  return lazyRpcs(declared, async () => (await import('./admin-rpcs.ts')).adminRpcs({ ...parts, admin, admit: admitCall }))
}

/** Answers the calls that writers pass on. */
export class PassedCalls {
  readonly #parts: AdminParts
  readonly #admin: boolean
  readonly #names: () => Promise<MeshIdentityNames>
  readonly #viewers = new WeakMap<Call, Viewer>()
  readonly #places = new WeakMap<Call, StreamPlace>()
  #handlers: Promise<ReadonlyMap<string, RpcHandler>> | undefined

  /** `names`: the present names of the mesh; rejects when they are unknown. */
  constructor(parts: AdminParts, admin: boolean, names: () => Promise<MeshIdentityNames>) {
    this.#parts = parts
    this.#admin = admin
    this.#names = names
  }

  async answer({ path, body, caller, cursor }: AdminCallQuestion): Promise<AdminCallReply> {
    const handler = (await this.#loaded()).get(path)
    if (!handler) throw new Error(`${path} is no method`)
    const viewer = caller ? viewerOf(caller, await this.#names(), true) : operator('a caller of this machine', { mayAct: false })
    const call = callOf()
    this.#viewers.set(call, viewer)
    const place = cursor === undefined ? undefined : { cursor, hasNews: false }
    if (place) this.#places.set(call, place)
    const headers = { 'content-type': 'application/grpc' }
    const { body: answer, trailers } = await handler({ path, httpVersion: '2.0', method: 'POST', headers, body: once(body), call })
    const frames: Uint8Array[] = []
    for await (const frame of answer) frames.push(frame)
    const told = { body: Buffer.concat(frames), trailers: trailers() }
    return place && told.body.length > 0 ? { ...told, ...place } : told
  }

  #loaded(): Promise<ReadonlyMap<string, RpcHandler>> {
    const admit = async (call: Call) => this.#viewers.get(call) as Viewer
    this.#handlers ??= import('./admin-rpcs.ts').then(({ adminRpcs }) =>
      adminRpcs({ ...this.#parts, admin: this.#admin, admit, placeOf: (call) => this.#places.get(call) }),
    )
    return this.#handlers
  }
}

/** The call of a message that a writer passes on. What its connection shows was evaluated there. */
function callOf(): Call {
  const { signal } = new AbortController()
  const none = { peer: '', headers: {}, isSecure: true, isLocal: false, ends: {}, certificateCaller: undefined, connection: {} }
  return { ...none, signal, restMs: () => adminBounds.timeLimit }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}
