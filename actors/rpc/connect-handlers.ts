/**
 * Handlers of RPCs made by the library connect (`@connectrpc/connect`), which this module loads. Requests are handed to its handlers without its
 * adapter for Node (ARCHITECTURE, "Decisions").
 */
import type { JsonWriteOptions } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { trailerFlag, trailerParse, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web'
import { status } from '../../src/model/status-codes.ts'
import type { Call, CallStatus } from './call.ts'
import { type RpcHandler, type RpcRequest, retryHeader } from './rpc-methods.ts'

/** Settings of handlers. */
export interface HandlerOptions {
  /** Adds the services with their implementations. */
  readonly routes: (router: ConnectRouter) => void
  /** Called before a request is read; an error that it throws is the answer. May keep what it found out in the values of the context. */
  readonly gate?: (context: HandlerContext) => Promise<void>
  /** The status of an error that is an answer to the client; undefined: it is none. */
  readonly statusOf?: (error: unknown) => CallStatus | undefined
  /** Called with errors that are neither such answers nor a {@link ConnectError}; the client is told `internal error`. */
  readonly failed: (path: string, error: unknown) => void
  /** The messages that may stand in an `Any` of JSON. */
  readonly registry?: JsonWriteOptions['registry']
}

const callKey = createContextKey<RpcRequest | undefined>(undefined, { description: 'the request' })

/** Returns the call that an implementation answers. */
export function callOf({ values }: Pick<HandlerContext, 'values'>): Call {
  return (values.get(callKey) as RpcRequest).call
}

/** Returns the error that answers a call with a status. */
export function errorOf({ code, message, retryAfterMs }: CallStatus): ConnectError {
  return new ConnectError(message, code as Code, retryAfterMs === undefined ? {} : { [retryHeader]: String(retryAfterMs) })
}

/** The handlers of services, by path. Nothing is compressed, and compressed requests are refused. */
export function connectHandlers({ routes, gate, statusOf, failed, registry }: HandlerOptions): ReadonlyMap<string, RpcHandler> {
  const router = createConnectRouter({
    acceptCompression: [],
    interceptors: [telling(failed, statusOf)],
    jsonOptions: { ignoreUnknownFields: false, ...(registry ? { registry } : {}) },
    async requestGate(context) {
      const refusal = context.values.get(callKey)?.refusal
      if (refusal) throw errorOf(refusal)
      await gate?.(context)
    },
  })
  routes(router)
  return new Map(router.handlers.map((handler) => [handler.requestPath, asked(handler)]))
}

/** Hands a request to a handler of the library. The URL has no part that the client chose: the path is that of the handler. */
function asked(handler: UniversalHandler): RpcHandler {
  return async (request) => {
    const answer = await handler({
      httpVersion: request.httpVersion,
      method: request.method,
      url: `http://localhost${handler.requestPath}`,
      header: new Headers(request.headers),
      body: request.body,
      signal: request.call.signal,
      contextValues: createContextValues().set(callKey, request),
    })
    const { status: code, header, body = noBytes(), trailer } = answer
    const answered = { status: code, headers: plain(header), body: body as AsyncIterable<Uint8Array>, trailers: () => blamed(plain(trailer)) }
    const type = answered.headers['content-type'] ?? ''
    if (type.startsWith('application/grpc-web')) return { ...answered, body: blamedInFrames(answered.body) }
    return code === internalError && !type.startsWith('application/grpc') ? { ...answered, ...(await blamedInJson(answered.body)) } : answered
  }
}

const plain = (headers: Headers | undefined): Record<string, string> => Object.fromEntries(headers ?? [])

/** How the library begins the reason why a message cannot be read, for which it answers `Internal`. */
const unreadable = /^parse binary: /

/** The status of HTTP for `Internal` in the Connect protocol, and for `InvalidArgument`. */
const internalError = 500
const badRequest = 400

const reasonOf = (message: string): string => message.replace(unreadable, 'the request cannot be read: ')

/** Trailers of gRPC in which a message that cannot be read is the client's fault. */
function blamed(trailers: Record<string, string>): Record<string, string> {
  const message = decodeURIComponent(trailers['grpc-message'] ?? '')
  if (!unreadable.test(message)) return trailers
  return { ...trailers, 'grpc-status': String(status.invalidArgument), 'grpc-message': encodeURIComponent(reasonOf(message)) }
}

/** The same for the trailers of gRPC-Web, which are a frame of the body. The library yields frame by frame. */
async function* blamedInFrames(frames: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const frame of frames) yield frame[0] === trailerFlag ? trailerFrame(blamed(plain(trailerParse(frame.subarray(frameHead))))) : frame
}

/** The length of what precedes the content of a frame: flags, and the length of the content. */
const frameHead = 5

function trailerFrame(trailers: Record<string, string>): Uint8Array {
  const content = trailerSerialize(new Headers(trailers))
  const frame = Buffer.alloc(frameHead + content.length)
  frame.writeUInt8(trailerFlag)
  frame.writeUInt32BE(content.length, 1)
  frame.set(content, frameHead)
  return frame
}

/** The same for the error of a call by Connect, which is JSON. */
async function blamedInJson(body: AsyncIterable<Uint8Array>): Promise<{ status: number; body: AsyncIterable<Uint8Array> }> {
  const parts: Uint8Array[] = []
  for await (const part of body) parts.push(part)
  const bytes = Buffer.concat(parts)
  const error = JSON.parse(bytes.toString()) as { readonly message?: string }
  if (!unreadable.test(error.message ?? '')) return { status: internalError, body: once(bytes) }
  const corrected = { ...error, code: 'invalid_argument', message: reasonOf(error.message as string) }
  return { status: badRequest, body: once(Buffer.from(JSON.stringify(corrected))) }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

async function* noBytes(): AsyncIterable<Uint8Array> {}

/** Reports errors that are none of an implementation's answers. */
function telling(failed: HandlerOptions['failed'], statusOf: HandlerOptions['statusOf']): Interceptor {
  return (next) => async (request) => {
    const known = (error: unknown) => {
      if (error instanceof ConnectError) return error
      const answer = statusOf?.(error)
      if (answer) return errorOf(answer)
      failed(new URL(request.url).pathname, error)
      return new ConnectError('internal error', Code.Internal)
    }
    try {
      const response = await next(request)
      return response.stream ? { ...response, message: each(response.message, known) } : response
    } catch (error) {
      throw known(error)
    }
  }
}

async function* each<Message>(messages: AsyncIterable<Message>, known: (error: unknown) => Error): AsyncIterable<Message> {
  try {
    yield* messages
  } catch (error) {
    throw known(error)
  }
}
