/** Unary RPCs over HTTP/1.1, by Connect and gRPC-Web. */
import type { IncomingMessage } from 'node:http'
import { status } from '../../src/model/status-codes.ts'
import type { CallOrigin, CallStatus } from '../rpc/call.ts'
import { headersOfProtocol, type Rpcs } from '../rpc/rpc-methods.ts'
import { type BegunCall, UnaryCalls, type WholeResponse } from '../rpc/unary-calls.ts'
import { BodyTooLarge, boundedBytes } from './bounded-body.ts'
import { isLoopbackAddress, isPassedOn } from './loopback.ts'

/** Answers the RPCs of a server. */
export class RpcPages {
  readonly #calls: ReadonlyMap<string, UnaryCalls>

  /** Methods with several messages are left out. `failed` is called with errors that are not the client's. */
  constructor(rpcs: Rpcs, failed: (path: string, error: unknown) => void) {
    const unary = [...rpcs].flatMap(([path, rpc]) => (rpc.type === 'unary' ? [[path, rpc] as const] : []))
    this.#calls = new Map(unary.map(([path, rpc]) => [path, new UnaryCalls(rpc, (error) => failed(path, error))]))
  }

  /** Whether there is such a method. */
  has(path: string): boolean {
    return this.#calls.has(path)
  }

  /** Answers a request. Undefined when the implementation cannot be loaded. No header of the request becomes part of a URL. */
  async answer(path: string, request: IncomingMessage, gone: AbortSignal): Promise<WholeResponse | undefined> {
    const calls = this.#calls.get(path) as UnaryCalls
    const origin = originOf(request)
    const bare = { path, httpVersion: '1.1', method: request.method ?? '', headers: headersOfProtocol(request.headers) }
    const refused = Promise.withResolvers<CallStatus>()
    const call = calls.begin(origin, refused.resolve)
    gone.addEventListener('abort', () => call?.over(), { once: true })
    const answered = async (begun: BegunCall): Promise<WholeResponse | CallStatus | undefined> => {
      const body = await bodyOf(request, calls.requestBytes)
      return Buffer.isBuffer(body) ? begun.answer({ ...bare, body: once(body) }) : body
    }
    const answer = await Promise.race([...(call ? [answered(call)] : []), refused.promise])
    call?.over()
    if (answer && 'code' in answer) return calls.refusal(origin, { ...bare, body: once(Buffer.alloc(0)) }, answer)
    return answer
  }
}

function originOf({ headers, socket }: IncomingMessage): CallOrigin {
  const { localAddress, remoteAddress = '' } = socket
  const isLocal = isLoopbackAddress(localAddress) && isLoopbackAddress(remoteAddress) && !isPassedOn(remoteAddress)
  return { peer: remoteAddress, headers, isSecure: 'encrypted' in socket, isLocal, ends: socket, certificateCaller: undefined, connection: socket }
}

async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer | CallStatus> {
  try {
    return await boundedBytes(request, most)
  } catch (error) {
    if (error instanceof BodyTooLarge) return { code: status.resourceExhausted, message: `the request is larger than ${most} bytes` }
    return { code: status.canceled, message: 'the request is incomplete' }
  }
}

async function* once(bytes: Buffer): AsyncIterable<Uint8Array> {
  yield bytes
}
