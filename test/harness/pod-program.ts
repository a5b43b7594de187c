/**
 * A program in the network of a pod that executes orders of the test, received over the IPC channel: an application without knowledge of
 * the mesh, or a stand-in for a proxy. It exits when the channel closes.
 */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { Agent, createServer as createHttpServer, request as httpRequest } from 'node:http'
import { connect, createServer } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { emptyResponse } from './dns-upstream.ts'

/** An HTTP request on a connection of its own. */
export interface CallOrder {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A connection over TCP: its source address, and what is sent first, if given. */
export interface DialOrder {
  readonly host: string
  readonly port: number
  readonly from?: string
  readonly say?: string
  readonly timeoutMs?: number
}

/** The response. When the connection failed, `status` is 0 and `body` is the code of the error. */
export interface CallAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The number of consecutive calls by status or error code. */
export interface Traffic {
  readonly statuses: Readonly<Record<string, number>>
}

/** The responder's name and port, and the caller's address, as JSON. */
const signed = (name: string, port: number | undefined, from: string | undefined) =>
  JSON.stringify({ name, port, from: from?.replace(/^::ffff:/, '') })

let isCalling = false
let traffic: Promise<Traffic> | undefined

/** The orders that the program executes. */
const orders = {
  /** Listens on TCP and answers every connection with its name. */
  listen({ port, host = '::', name }: { port: number; host?: string; name: string }): Promise<void> {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.end(signed(name, socket.localPort, socket.remoteAddress))
    })
    return new Promise((resolve, reject) => server.on('error', reject).listen(port, host, () => resolve()))
  },

  /** Answers datagrams with its name. */
  listenUdp({ port, name }: { port: number; name: string }): Promise<void> {
    const socket = createSocket('udp6', (_, { address, port: from }) => socket.send(signed(name, port, address), from, address))
    return new Promise((resolve, reject) => socket.on('error', reject).bind(port, '::', () => resolve()))
  },

  /** Runs a DNS server that answers every query with NXDOMAIN. */
  knowNoNames({ port }: { port: number }): Promise<void> {
    const socket = createSocket('udp6', (message, { address, port: from }) => socket.send(emptyResponse(message, 3), from, address))
    return new Promise((resolve, reject) => socket.on('error', reject).bind(port, '::', () => resolve()))
  },

  /**
   * Serves HTTP. Responses contain its name, the caller's address, the headers and the path; `/status/<n>` responds with that status,
   * `/slow/<ms>` after that delay.
   */
  serve({ port, host = '::', name }: { port: number; host?: string; name: string }): Promise<void> {
    const server = createHttpServer(({ url = '', headers, socket }, response) => {
      response.statusCode = Number(/^\/status\/(\d+)/.exec(url)?.[1] ?? 200)
      const from = socket.remoteAddress?.replace(/^::ffff:/, '')
      const answer = () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ name, from, headers, path: url }))
      setTimeout(answer, Number(/^\/slow\/(\d+)/.exec(url)?.[1] ?? 0))
    })
    return new Promise((resolve, reject) => server.on('error', reject).listen(port, host, () => resolve()))
  },

  /** Listens on TLS and sends its name after each handshake. */
  listenTls({ port, host = '::', name, cert, key }: { port: number; host?: string; name: string; cert: string; key: string }): Promise<void> {
    const server = createTlsServer({ cert, key }, (socket) => {
      socket.on('error', () => {})
      socket.end(name)
    })
    server.on('tlsClientError', () => {})
    return new Promise((resolve, reject) => server.on('error', reject).listen(port, host, () => resolve()))
  },

  /** Connects over TLS. Resolves with the text that the server sends, or with the code of the error. */
  dialTls({ host, port, servername }: { host: string; port: number; servername: string }): Promise<string> {
    return new Promise((resolve) => {
      let text = ''
      const socket = connectTls({ host, port, servername, rejectUnauthorized: false, timeout: 30_000 })
      socket.on('data', (bytes) => (text += bytes))
      socket.on('close', () => resolve(text))
      socket.on('timeout', () => socket.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })))
      socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? 'error'))
    })
  },

  /** Connects over TCP and sends `say`, if given. Resolves with the text that the server sends, or with the code of the error. */
  dial({ host, port, from, say, timeoutMs = 30_000 }: DialOrder): Promise<string> {
    return new Promise((resolve) => {
      let text = ''
      const socket = connect({ host, port, ...(from ? { localAddress: from } : {}), timeout: timeoutMs })
      if (say !== undefined) socket.write(say)
      socket.on('data', (bytes) => (text += bytes))
      socket.on('end', () => resolve(text))
      socket.on('timeout', () => socket.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })))
      socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? 'error'))
    })
  },

  /** Sends a datagram. Resolves with the response, or with `timeout`. */
  ask({ host, port }: { host: string; port: number }): Promise<string> {
    return new Promise((resolve) => {
      const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
      const end = (text: string) => {
        clearTimeout(timer)
        socket.close()
        resolve(text)
      }
      const timer = setTimeout(() => end('timeout'), 30_000)
      socket.on('message', (bytes) => end(String(bytes)))
      socket.on('error', (error) => end((error as NodeJS.ErrnoException).code ?? 'error'))
      socket.send('who', port, host)
    })
  },

  /** Resolves a name with the pod's resolver. Resolves with the addresses, or with the code of the error. */
  async resolve({ name, type = 'A' }: { name: string; type?: 'A' | 'AAAA' }): Promise<readonly string[]> {
    const resolver = new Resolver({ timeout: 10_000, tries: 3 })
    try {
      return (await resolver.resolve(name, type)).toSorted()
    } catch (error) {
      return [(error as NodeJS.ErrnoException).code ?? 'error']
    }
  },

  call,

  /** Starts to send calls in a loop. */
  begin(order: CallOrder): void {
    isCalling = true
    const statuses: Record<string, number> = {}
    const run = async (): Promise<Traffic> => {
      while (isCalling) {
        const { status, body } = await call(order)
        const key = status === 0 ? body : String(status)
        statuses[key] = (statuses[key] ?? 0) + 1
      }
      return { statuses }
    }
    traffic = run()
  },

  /** Ends the loop. Resolves with the statistics. */
  end(): Promise<Traffic> {
    isCalling = false
    return traffic ?? Promise.resolve({ statuses: {} })
  },
}

function call({ url, method = 'GET', headers = {} }: CallOrder): Promise<CallAnswer> {
  return new Promise((resolve) => {
    const failed = (error: Error) => resolve({ status: 0, headers: {}, body: (error as NodeJS.ErrnoException).code ?? error.message })
    const request = httpRequest(url, { method, headers, agent: new Agent({ keepAlive: false }), timeout: 30_000 }, (response) => {
      let body = ''
      response.on('data', (bytes) => (body += bytes))
      response.on('error', failed)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers as Record<string, string>, body }))
    })
    request.on('timeout', () => request.destroy(new Error('timeout')))
    request.on('error', failed)
    request.end()
  })
}

/** The orders, for callers of {@link PodProgram.do}. */
export type Orders = typeof orders

process.on('disconnect', () => process.exit())
process.on('message', async ({ id, order, given }: { id: number; order: keyof Orders; given: never }) => {
  const outcome = await Promise.resolve()
    .then(() => (orders[order] as (given: never) => unknown)(given))
    .then(
      (value) => ({ value }),
      (error) => ({ error: String(error.message) }),
    )
  process.send?.({ id, ...outcome })
})
process.send?.('ready')
