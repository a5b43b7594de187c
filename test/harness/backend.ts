/** Workloads that receive traffic, and clients that send it. */
import { createServer as createHttpServer, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders, type Server } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { freePort } from '../../bench/ports.ts'

/** A request that an HTTP workload received. */
export interface Seen {
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** An HTTP workload that answers with its name, or with the next queued failure. */
export class HttpBackend {
  readonly name: string
  readonly seen: Seen[] = []
  /** The status codes of the next responses. When empty, the status is 200. */
  readonly failures: number[] = []
  /** Responses are delayed until this promise resolves. */
  until: Promise<void> | undefined
  port = 0
  #server: Server | undefined

  constructor(name: string) {
    this.name = name
  }

  async start(): Promise<this> {
    this.#server = createHttpServer((request, response) => {
      this.seen.push({ path: request.url ?? '', headers: request.headers })
      response.statusCode = this.failures.shift() ?? 200
      response.setHeader('x-backend', this.name)
      void Promise.resolve(this.until).then(() => response.end(this.name))
    })
    this.port = await freePort()
    await new Promise<void>((resolve) => this.#server?.listen(this.port, '127.0.0.1', resolve))
    return this
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
  }
}

/** Starts a TCP workload that sends its name and closes the connection, at once or after it has received data. */
export async function tcpBackend(name: string, waits = false): Promise<{ port: number; stop(): Promise<void> }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    if (waits) socket.once('data', () => socket.end(name))
    else socket.end(name)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { port, stop: () => new Promise((resolve) => server.close(() => resolve())) }
}

/** A response. */
export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: IncomingHttpHeaders
}

/** Sends one HTTP request on a connection of its own. */
export function call(
  address: string,
  port: number,
  path: string,
  options: { host?: string; method?: string; headers?: Record<string, string | string[]>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers: OutgoingHttpHeaders = { ...options.headers, host: options.host ?? `${address}:${port}`, connection: 'close' }
    const request = httpRequest(
      { host: address, port, path, method: options.method ?? 'GET', headers, agent: false, timeout: 30_000 },
      (response) => {
        let body = ''
        response.on('data', (bytes) => (body += bytes))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }))
        response.on('error', reject)
      },
    )
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', reject)
    request.end(options.body)
  })
}

/** Connects and reads until the peer closes the connection. */
export const readAll = (address: string, port: number): Promise<string> => exchange(address, port, '')

/** Connects, from `localAddress` if given, sends `says`, and reads until the peer closes the connection. */
export function exchange(address: string, port: number, says: string, localAddress?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: address, port, ...(localAddress ? { localAddress } : {}) }, () => socket.write(says))
    socket.on('data', (bytes) => (text += bytes))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
