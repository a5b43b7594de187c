/**
 * The bare server that figures are compared with: `node:http2` writing given bytes and nothing else. It answers each stream's first request
 * of a type with that type's bytes, and on command writes one more message to every stream. One process, with as many threads as the server
 * under test has writers.
 */
import { createSecureServer, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { scanFields } from '../src/xds/slab/wire.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../src/xds/stream/frames.ts'

/** Commands of the driver to the bare server. */
export type BareCommand =
  | {
      readonly type: 'start'
      readonly port: number
      readonly threads: number
      readonly sizes: Readonly<Record<string, number>>
      /** With `ca`, clients must present a certificate of these authorities. */
      readonly tls: { readonly cert: string; readonly key: string; readonly ca: string | undefined } | undefined
    }
  | { readonly type: 'push'; readonly marker: string; readonly size: number }

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))])
const field = (number: number, content: Buffer): Buffer => Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(content.length)]), content])

/** Encodes a response of a given size, with filler in place of resources. */
function response(typeUrl: string, size: number, marker: string): Buffer {
  const rest = Buffer.concat([field(4, Buffer.from(typeUrl)), field(5, Buffer.from('nonce')), field(1, Buffer.from(marker))])
  return messageFrame(Buffer.concat([field(9, Buffer.alloc(Math.max(1, size - rest.length), 7)), rest]))
}

function serve({ port, sizes, tls }: Extract<BareCommand, { type: 'start' }>): void {
  const buffers = new FrameBuffers()
  const streams = new Set<ServerHttp2Stream>()
  const frames = new Map(Object.entries(sizes).map(([typeUrl, size]) => [typeUrl, response(typeUrl, size, 'v')]))
  const settings = { initialWindowSize: 1_048_576, maxConcurrentStreams: 1000 }
  const server = tls
    ? createSecureServer({ settings, ...tls, ...(tls.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true }) })
    : createServer({ settings })
  server.on('session', (session: ServerHttp2Session) => session.setLocalWindowSize(1_048_576))
  server.on('stream', (stream: ServerHttp2Stream) => {
    streams.add(stream)
    stream.on('close', () => streams.delete(stream))
    stream.on('error', () => undefined)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
    const reader = new FrameReader(1 << 26, buffers)
    const sent = new Set<string>()
    stream.on('data', (bytes: Buffer) => {
      reader.take(bytes, (message) => {
        // The names of an acknowledgement come after its type URL: they are not looked at.
        for (const part of scanFields(message)) {
          const typeUrl = part.bytes?.toString('latin1', 0, 200) ?? ''
          const frame = typeUrl.startsWith('type.googleapis.com/') ? frames.get(typeUrl) : undefined
          if (!frame) continue
          if (!sent.has(typeUrl)) stream.write(frame)
          sent.add(typeUrl)
          break
        }
      })
    })
  })
  server.listen({ host: '127.0.0.1', port, reusePort: true }, () => parentPort?.postMessage('listening'))
  parentPort?.on('message', (command: Extract<BareCommand, { type: 'push' }>) => {
    const frame = response('type.googleapis.com/bare', command.size, command.marker)
    for (const stream of streams) stream.write(frame)
  })
}

if (isMainThread) {
  let workers: Worker[] = []
  // The driver has exited.
  process.on('disconnect', () => process.exit(0))
  process.on('message', (command: BareCommand) => {
    if (command.type === 'push') for (const worker of workers) worker.postMessage(command)
    else {
      let listening = 0
      workers = Array.from({ length: command.threads }, () => new Worker(new URL(import.meta.url), { workerData: command }))
      for (const worker of workers) worker.on('message', () => ++listening === workers.length && process.send?.('listening'))
    }
  })
} else {
  serve(workerData as Extract<BareCommand, { type: 'start' }>)
}
