/** Opens connections of TLS to an API server, directly or through a proxy, and makes sure that the server speaks the protocol that is needed. */
// biome-ignore lint/style/noRestrictedImports: CONNECT, whose answer is a connection; within the time for connecting
import { request as httpRequest } from 'node:http'
// biome-ignore lint/style/noRestrictedImports: the same
import { request as httpsRequest } from 'node:https'
import { isIP, isIPv6, type Socket } from 'node:net'
import { connect, getCACertificates, type TLSSocket } from 'node:tls'
import type { ClusterAccess } from '../../../protocols/messages/orchestrator.ts'
import { type ProxyAddress, readProxy } from '../../../src/orchestrator/proxies.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

/** How long connecting may take, in milliseconds. */
const connectMs = 10_000

/** Opens a connection for HTTP/2, or for what is asked for over HTTP/1.1. Rejects with the reason. */
export async function openApiSocket(access: ClusterAccess, protocol: 'h2' | 'http/1.1' = 'h2'): Promise<TLSSocket> {
  const { hostname, port: given } = new URL(access.server)
  const [host, port] = [hostname.replace(/^\[|\]$/g, ''), given === '' ? 443 : Number(given)]
  const opening = new Opening(`no connection to ${access.server} within ${connectMs / 1000} s`)
  try {
    const below = access.proxy === undefined ? undefined : await opening.of(through(readProxy(access.proxy), access, host, port, opening))
    const { ca, cert, key, serverName, verifies } = access
    const name = serverName ?? (isIP(host) === 0 ? host : undefined)
    const socket = connect({
      ...(below ? { socket: below, host } : { host, port }),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert, key }),
      ...(name === undefined ? {} : { servername: name }),
      rejectUnauthorized: verifies,
      ALPNProtocols: protocol === 'h2' ? ['h2', 'http/1.1'] : ['http/1.1'],
    })
    opening.ends(() => socket.destroy())
    await opening.of(
      new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve)
        socket.once('error', reject)
        socket.once('close', () => reject(new Error(`${access.server} ended the connection during the TLS handshake`)))
      }),
    )
    if (protocol === 'http/1.1' || socket.alpnProtocol === 'h2') return socket
    socket.destroy()
    throw new Error(`${access.server} does not speak HTTP/2, which is needed; it, or what is in front of it, offers HTTP/1.1 alone`)
  } finally {
    opening.close()
  }
}

/** The steps of opening a connection, which have one deadline. */
class Opening {
  readonly #late = Promise.withResolvers<never>()
  readonly #timer
  #end: () => void = () => undefined

  constructor(reason: string) {
    this.#late.promise.catch(() => undefined)
    this.#timer = deadlineAfter(connectMs, () => {
      this.#end()
      this.#late.reject(new Error(reason))
    })
  }

  /** Sets what ends the step that has begun. */
  ends(end: () => void): void {
    this.#end = end
  }

  of<T>(step: Promise<T>): Promise<T> {
    return Promise.race([step, this.#late.promise])
  }

  close(): void {
    this.#timer.cancel()
  }
}

async function through(proxy: ProxyAddress, access: ClusterAccess, host: string, port: number, opening: Opening): Promise<Socket> {
  const where = `proxy-url: ${proxy.type}://${isIPv6(proxy.host) ? `[${proxy.host}]` : proxy.host}:${proxy.port}`
  const step = proxy.type === 'socks5' ? throughSocks(proxy, host, port) : throughConnect(proxy, access, host, port, opening)
  return step.catch((error: Error) => Promise.reject(new Error(`${where}: ${error.message}`)))
}

function throughConnect(
  { type, host: at, port: by, user, password }: ProxyAddress,
  { ca, verifies }: ClusterAccess,
  host: string,
  port: number,
  opening: Opening,
): Promise<Socket> {
  const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`
  const credential = user === '' ? {} : { 'proxy-authorization': `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
  return new Promise((resolve, reject) => {
    const asked = (type === 'https' ? httpsRequest : httpRequest)({
      ...{ host: at, port: by, method: 'CONNECT', path: target, agent: false },
      // The authorities of the cluster count for its proxy too, as they do for kubectl, and those of the system, which most proxies are of.
      ...(type === 'https' ? { ca: [...getCACertificates('default'), ...(ca === undefined ? [] : [ca])], rejectUnauthorized: verifies } : {}),
      headers: { host: target, ...credential },
    })
    opening.ends(() => asked.destroy())
    asked.on('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) return resolve(socket as Socket)
      socket.destroy()
      reject(new Error(`the proxy refused the connection with status ${statusCode}`))
    })
    asked.on('response', ({ statusCode }) => {
      asked.destroy()
      reject(new Error(`the proxy refused the connection with status ${statusCode}`))
    })
    asked.on('error', reject)
    asked.end()
  })
}

async function throughSocks({ host: at, port: by, user, password }: ProxyAddress, host: string, port: number): Promise<Socket> {
  const { SocksClient } = await import('socks')
  const credential = user === '' ? {} : { userId: user, password }
  const { socket } = await SocksClient.createConnection({
    proxy: { host: at, port: by, type: 5, ...credential },
    command: 'connect',
    destination: { host, port },
    timeout: connectMs,
  })
  return socket
}
