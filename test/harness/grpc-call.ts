/** Unary gRPC calls over raw HTTP/2. */
import { connect, type SecureClientSessionOptions } from 'node:http2'
import { FrameBuffers, FrameReader, messageFrame } from '../../src/xds/stream/frames.ts'

/**
 * Calls a method with one message and returns the response messages and the status. `url` is `http://...`, or `https://...` with a client
 * certificate in `tls`.
 */
export function grpcCall(
  url: string,
  path: string,
  message: Uint8Array,
  { tls = {}, headers = {} }: { tls?: SecureClientSessionOptions; headers?: Record<string, string> } = {},
): Promise<{ messages: Buffer[]; status: string }> {
  return new Promise((resolve, reject) => {
    const session = connect(url, tls)
    session.on('error', reject)
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...headers })
    const reader = new FrameReader(1 << 26, new FrameBuffers())
    const messages: Buffer[] = []
    let status = ''
    stream.on('error', reject)
    stream.on('data', (bytes: Buffer) => reader.take(bytes, (message) => messages.push(Buffer.from(message))))
    // A response without messages has its status in the headers.
    stream.on('response', (headers) => (status = String(headers['grpc-status'] ?? '')))
    stream.on('trailers', (trailers) => (status = String(trailers['grpc-status'])))
    stream.on('close', () => {
      session.close()
      resolve({ messages, status })
    })
    stream.end(messageFrame(message))
  })
}
