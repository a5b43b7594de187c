/** RPCs by path `/<service>/<method>`. Their implementations, and the libraries of these, are loaded with the first call. */
import type { Call, CallBounds, CallStatus } from './call.ts'

/** A request in HTTP's terms. The body is that of the protocol that the headers name: gRPC, gRPC-Web or Connect. */
export interface RpcRequest {
  readonly path: string
  /** `1.1` or `2.0`. */
  readonly httpVersion: string
  readonly method: string
  /** The headers that the protocols read ({@link headersOfProtocol}). */
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  readonly call: Call
  /** Answers the request with this status without looking at its body. */
  readonly refusal?: CallStatus
}

/** A response in HTTP's terms. */
export interface RpcResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** The trailers, once the body has ended. */
  trailers(): Readonly<Record<string, string>>
}

/** Answers requests of a method, in whichever protocol. Errors of its implementation are in the response. */
export type RpcHandler = (request: RpcRequest) => Promise<RpcResponse>

/** A method with one request and one answer. */
export interface UnaryRpc {
  readonly type: 'unary'
  readonly bounds: CallBounds
  readonly load: () => Promise<RpcHandler>
}

/** A method with several answers, or several requests, without a time limit. Served by gRPC only. */
export interface StreamRpc {
  readonly type: 'server_stream' | 'bidi_stream'
  readonly bounds: Omit<CallBounds, 'timeLimit'>
  readonly load: () => Promise<RpcHandler>
}

/** An RPC. */
export type Rpc = UnaryRpc | StreamRpc

/** RPCs by path. */
export type Rpcs = ReadonlyMap<string, Rpc>

/** The declaration of an RPC: all but its handler. */
export type DeclaredRpc = Omit<UnaryRpc, 'load'> | Omit<StreamRpc, 'load'>

/**
 * Returns the RPCs that are declared by path. `load` is called with the first call of any of them, and again after it has failed; it
 * returns the handlers by path, under `handledAs` for a path that is another name of the same method.
 */
export function lazyRpcs(
  declared: Readonly<Record<string, DeclaredRpc>>,
  load: () => Promise<ReadonlyMap<string, RpcHandler>>,
  handledAs: (path: string) => string = (path) => path,
): Rpcs {
  let loaded: Promise<ReadonlyMap<string, RpcHandler>> | undefined
  const handler = async (path: string) => {
    loaded ??= load()
    const handlers = await loaded.catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    const found = handlers.get(handledAs(path))
    if (!found) throw new Error(`${path} has no implementation`)
    return found
  }
  return new Map(Object.entries(declared).map(([path, rpc]) => [path, { ...rpc, load: () => handler(path) } as Rpc]))
}

/** The header or trailer with the time after which a client may repeat a refused call, in milliseconds (gRFC A6). */
export const retryHeader = 'grpc-retry-pushback-ms'

/** The headers that the protocols read. Time limits are not among them: the calls keep them (`unary-calls.ts`). */
const protocolHeaders = ['content-type', 'grpc-encoding', 'content-encoding', 'connect-protocol-version']

/** Returns the headers of a request that the protocols read. */
export function headersOfProtocol(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(protocolHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])))
}
