/** Sends requests byte for byte as given: paths that HTTP clients reject, repeated headers, hosts in any case. */
import { connect } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

/** One request. */
export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** The client's certificate and key, for mutual TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly servername?: string }
}

/** The response to a raw request. The status is 0 when the connection ended without a response. */
export interface RawAnswer {
  readonly status: number
  readonly body: string
}

/** Sends a request on a connection of its own. Resolves with the status, 0 when the connection was closed without a response. */
export async function send(address: string, port: number, request: RawRequest): Promise<number> {
  const { method = 'GET', path = '/', host = 'app', headers = [], tls } = request
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`, 'connection: close', ...headers.map(([name, value]) => `${name}: ${value}`)]
  const options = tls && { ...tls, rejectUnauthorized: false, ALPNProtocols: ['istio-http/1.1'] }
  return (await sendBytes(address, port, [`${lines.join('\r\n')}\r\n\r\n`], options)).status
}

/**
 * Sends parts as they are on a connection of their own. The response is read until it is complete, the peer closes the connection, or
 * nothing arrives for 30 s.
 */
export function sendBytes(address: string, port: number, parts: readonly (string | Buffer)[], tls?: ConnectionOptions): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const write = () => {
      for (const part of parts) socket.write(part)
    }
    const options = { host: address, port }
    const socket = tls ? connectTls({ ...options, ...tls }, write) : connect(options, write)
    let answer = ''
    const done = () => {
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.\d (\d{3})/.exec(answer)?.[1] ?? 0), body: answer.slice(answer.indexOf('\r\n\r\n') + 4) })
    }
    socket.setTimeout(30_000, done)
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      if (isWhole(answer)) done()
    })
    socket.on('error', done)
    socket.on('close', done)
  })
}

/** Whether an HTTP/1.1 response is complete by its content length or its last chunk. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const [head, rest] = [text.slice(0, end), text.slice(end + 4)]
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  if (length !== undefined) return rest.length >= Number(length)
  return /^transfer-encoding: *chunked/im.test(head) && rest.endsWith('0\r\n\r\n')
}
