/** Requests byte for byte as given: paths that no client would send, headers twice, hosts in any case. */
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** One request. */
export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** Certificate and key of the client, to speak mutual TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly servername?: string }
}

/** Sends it over a connection of its own. Resolves to the status, 0 when the connection was closed without an answer. */
export function send(address: string, port: number, request: RawRequest): Promise<number> {
  const { method = 'GET', path = '/', host = 'app', headers = [], tls } = request
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`, 'connection: close', ...headers.map(([name, value]) => `${name}: ${value}`)]
  return new Promise((resolve) => {
    const text = `${lines.join('\r\n')}\r\n\r\n`
    const options = { host: address, port }
    const socket = tls
      ? connectTls({ ...options, ...tls, rejectUnauthorized: false, ALPNProtocols: ['istio-http/1.1'] }, () => socket.write(text))
      : connect(options, () => socket.write(text))
    let answer = ''
    const done = () => {
      socket.destroy()
      resolve(Number(/^HTTP\/1\.\d (\d{3})/.exec(answer)?.[1] ?? 0))
    }
    socket.setTimeout(5000, done)
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      if (/^HTTP\/1\.\d \d{3}/.test(answer)) done()
    })
    socket.on('error', done)
    socket.on('close', done)
  })
}
