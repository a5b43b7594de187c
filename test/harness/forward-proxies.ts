/** Proxies that forward connections: by CONNECT with a password, and by SOCKS 5 without one. */
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A running proxy. */
export interface ForwardProxy {
  readonly port: number
  /** The targets of its connections. */
  readonly targets: readonly string[]
  close(): void
}

async function listening(server: Server, targets: string[]): Promise<ForwardProxy> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, targets, close: () => void server.close() }
}

function join(one: Socket, other: Socket): void {
  for (const socket of [one, other]) {
    socket.on('error', () => undefined)
    socket.on('close', () => {
      one.destroy()
      other.destroy()
    })
  }
  one.pipe(other)
  other.pipe(one)
}

/** Starts a proxy that is asked by CONNECT and refuses who does not have the password; with a certificate and its key, over TLS. */
export function connectProxy(user: string, password: string, pair?: { readonly cert: string; readonly key: string }): Promise<ForwardProxy> {
  const targets: string[] = []
  const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const server = pair ? createHttpsServer(pair) : createHttpServer()
  server.on('tlsClientError', () => undefined)
  server.on('connect', ({ url = '', headers }, socket) => {
    if (headers['proxy-authorization'] !== expected) return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    targets.push(url)
    const { hostname, port } = new URL(`http://${url}`)
    const target = connect(Number(port), hostname, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    join(socket as Socket, target)
  })
  return listening(server, targets)
}

/** Starts a proxy of SOCKS 5 (RFC 1928), for addresses of IPv4. */
export function socksProxy(): Promise<ForwardProxy> {
  const targets: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(Buffer.from([5, 0]))
      socket.once('data', (request: Buffer) => {
        const host = [...request.subarray(4, 8)].join('.')
        const port = request.readUInt16BE(8)
        targets.push(`${host}:${port}`)
        const target = connect(port, host, () => socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])))
        join(socket, target)
      })
    })
  })
  return listening(server, targets)
}
