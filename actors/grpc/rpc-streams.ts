/** RPCs by the gRPC protocol, on the streams of a gRPC server. */
import { clientKey } from '../../src/model/client-address.ts'
import { status } from '../../src/model/status-codes.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { CallSlots } from '../rpc/call-slots.ts'
import { type RpcRequest, retryHeader, type StreamRpc, type UnaryRpc } from '../rpc/rpc-methods.ts'
import { UnaryCalls } from '../rpc/unary-calls.ts'
import type { GrpcStream } from './grpc-stream.ts'

/** Accepts the streams of a method. */
export type OpenStream = (stream: GrpcStream) => void

/** Returns the function that handles the streams of a unary method. `failed` is called with errors that are not the client's. */
export function unaryStreams(path: string, method: UnaryRpc, failed: (error: unknown) => void): OpenStream {
  const calls = new UnaryCalls(method, failed)
  return (stream) => {
    const refuse = (code: number, message: string, retryAfterMs?: number) => stream.end(code, message, retryAfterMs)
    const call = calls.begin(stream, ({ code, message, retryAfterMs }) => refuse(code, message, retryAfterMs))
    if (!call) return
    let message: Buffer | undefined
    stream.onClose(() => call.over())
    stream.onBorrowed((bytes) => {
      if (message) refuse(status.unimplemented, 'the method is unary: it takes exactly one request message')
      else message = messageFrame(bytes)
    })
    stream.onEnd(async () => {
      if (stream.status !== undefined) return
      if (!message) return refuse(status.unimplemented, 'the method is unary: no request message was received')
      const answer = await call.answer({ ...requestOf(path, stream), body: once(message) })
      if (!answer) return
      call.over()
      const end = () => endWith(stream, answer.trailers)
      if (answer.body.length === 0) end()
      else stream.write(answer.body.map(bufferOf), (isLost) => isLost || end())
    })
  }
}

/**
 * Returns the function that handles the streams of a method with several messages. A message is read when the implementation asks for it,
 * and the next answer is made when the kernel has accepted the one before. `failed` is called with errors that are not the client's.
 */
export function messageStreams(path: string, method: StreamRpc, failed: (error: unknown) => void): OpenStream {
  const { concurrent } = method.bounds
  const slots = new CallSlots(concurrent)
  return async (stream) => {
    const isOver = new AbortController()
    const slot = slots.enter(clientKey(stream.peer), () =>
      stream.end(status.resourceExhausted, `more than ${concurrent} concurrent streams of this method`),
    )
    stream.onClose(() => {
      slot?.gone()
      isOver.abort()
    })
    const { peer, headers, isSecure, isLocal, ends, certificateCaller, connection } = stream
    const origin = { peer, headers, isSecure, isLocal, ends, certificateCaller, connection }
    const call = { ...origin, signal: isOver.signal, restMs: () => Number.POSITIVE_INFINITY }
    const messages = new StreamMessages(stream, isOver.signal)
    try {
      const handler = await method.load()
      const { body, trailers } = await handler({ ...requestOf(path, stream), body: messages, call })
      for await (const frame of body) {
        if (isOver.signal.aborted) return
        const isLost = await new Promise<boolean>((resolve) => stream.write([bufferOf(frame)], resolve))
        if (isLost) return
      }
      endWith(stream, trailers())
    } catch (error) {
      failed(error)
      stream.end(status.internal, 'internal error')
    }
  }
}

const requestOf = (path: string, { headers }: GrpcStream): Pick<RpcRequest, 'path' | 'httpVersion' | 'method' | 'headers'> => ({
  ...{ path, httpVersion: '2.0', method: 'POST' },
  headers: { 'content-type': 'application/grpc', ...('grpc-encoding' in headers ? { 'grpc-encoding': String(headers['grpc-encoding']) } : {}) },
})

async function* once(frame: Buffer): AsyncIterable<Uint8Array> {
  yield frame
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

/** Ends a stream with the status in trailers. A trailer for a retry becomes details of the status as well. */
function endWith(stream: GrpcStream, trailers: Readonly<Record<string, string>>): void {
  const retry = trailers[retryHeader]
  const message = decodeURIComponent(trailers['grpc-message'] ?? '')
  stream.end(Number(trailers['grpc-status'] ?? status.internal), message, retry === undefined ? undefined : Number(retry))
}

/** The messages of a client as frames. The stream is read from the first call of `next` on, and no further than to the next message. */
class StreamMessages implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #stream: GrpcStream
  readonly #over: AbortSignal
  #isReading = false
  #isOver = false
  /** Called with the next message, or that there is none. */
  #wanted: ((result: IteratorResult<Uint8Array>) => void) | undefined
  /** Has the stream deliver the next message. */
  #readOn: () => void = () => undefined

  constructor(stream: GrpcStream, over: AbortSignal) {
    this.#stream = stream
    this.#over = over
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    return new Promise((resolve) => {
      this.#wanted = resolve
      if (this.#isOver || this.#over.aborted) this.#end()
      else if (this.#isReading) this.#readOn()
      else this.#read()
    })
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#end()
    return { done: true, value: undefined }
  }

  #read(): void {
    this.#isReading = true
    this.#over.addEventListener('abort', () => this.#end(), { once: true })
    this.#stream.onMessage(async (message) => {
      if (this.#isOver) return
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#readOn = resolve
      this.#deliver({ done: false, value: messageFrame(message) })
      await promise
    })
    this.#stream.onEnd(() => this.#end())
  }

  #end(): void {
    this.#isOver = true
    this.#readOn()
    this.#deliver({ done: true, value: undefined })
  }

  #deliver(result: IteratorResult<Uint8Array>): void {
    const wanted = this.#wanted
    this.#wanted = undefined
    wanted?.(result)
  }
}
