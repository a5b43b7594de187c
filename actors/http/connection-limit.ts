/** Limits the number of connections, so that the process does not run out of file descriptors for its own files and pages. */
import type { Server, Socket } from 'node:net'
import { clientKey, plainAddress } from '../../src/model/client-address.ts'
import { readKernelFile } from '../runtime/kernel-file.ts'
import { every } from '../runtime/timers.ts'

/**
 * File descriptors reserved for other uses than proxy connections: `process` for those open without any connection (52 with one writer),
 * `thread` for each writer thread, `rest` for pages, watched and read files, and logs. The reserve is at least the share `share` of all
 * descriptors and at most `atMostShare`.
 */
const reserved = { process: 64, thread: 8, rest: 96, share: 0.1, atMostShare: 0.5 }
/**
 * The share of the reserve that is for pages, the maximum number of connections of one page server, and the share of proxy connections that
 * one client may have.
 */
const shares = { pages: 0.25, ofPageServer: 512, peer: 0.5 }

/** Maximum number of connections of one writer, from the limit of file descriptors and the number of writers. */
export function connectionShare(descriptors: number, writers: number): number {
  return Math.max(1, Math.floor((descriptors - reserveOf(descriptors, writers)) / writers))
}

/** Maximum number of connections of one page server: an equal part of a quarter of the reserve, and at most 512. */
export function pageShare(descriptors: number, writers: number, servers: number): number {
  return Math.min(shares.ofPageServer, Math.max(1, Math.floor((reserveOf(descriptors, writers) * shares.pages) / servers)))
}

function reserveOf(descriptors: number, writers: number): number {
  const least = reserved.process + reserved.thread * writers + reserved.rest
  return Math.min(Math.max(least, descriptors * reserved.share), descriptors * reserved.atMostShare)
}

/** The limit of open files of this process; infinite where it cannot be determined. */
export function descriptorLimit(): number {
  let limits: string
  try {
    limits = readKernelFile('/proc/self/limits')
  } catch {
    return Number.POSITIVE_INFINITY
  }
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1]
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}

/** Minimum interval between reports of refusals, in milliseconds. */
const sayMs = 10_000

/** What is called when connections are refused, and whose connections do not give way. */
export interface ConnectionListener {
  /** Called for each connection that is refused, or gives way. */
  refused(): void
  /** Called with the number of these connections at most every ten seconds. */
  say(count: number, lastAddress: string): void
  /** Whether clients at an address have presented a credential: their connections never give way. */
  isKept(address: string): boolean
}

/**
 * Limits the total number of connections of several servers, and of each client to half of that. A client is a known address, or else
 * {@link clientKey}. When there is no room, the newest connection of the client with the most gives way to one from a client with fewer, so
 * that many addresses cannot keep out another one; otherwise the new connection is closed on accept.
 */
export function limitConnections(servers: readonly Server[], most: number, listener: ConnectionListener): { close(): void } {
  if (!Number.isFinite(most)) return { close: () => undefined }
  const connections = new CountedConnections(most, listener)
  const refusals = new Refusals(listener)
  for (const server of servers)
    server.prependListener('connection', (socket: Socket) => {
      const refused = connections.add(socket)
      if (refused) refusals.refuse(refused)
    })
  return { close: () => refusals.close() }
}

/** The open connections by client. */
class CountedConnections {
  readonly #most: number
  readonly #listener: ConnectionListener
  /** The connections of each client, the newest last. */
  readonly #clients = new Map<string, Set<Socket>>()
  readonly #owners = new Map<Socket, string>()

  constructor(most: number, listener: ConnectionListener) {
    this.#most = most
    this.#listener = listener
  }

  /** Counts a new connection. Returns the one that is refused for it, which may be itself; undefined when there is room. */
  add(socket: Socket): Socket | undefined {
    const { remoteAddress: address = '' } = socket
    const isKept = this.#listener.isKept(address)
    const client = isKept ? plainAddress(address) : clientKey(address)
    const own = this.#clients.get(client)?.size ?? 0
    if (own >= Math.max(1, Math.floor(this.#most * shares.peer))) return socket
    const leaving = this.#owners.size >= this.#most ? this.#leavingFor(isKept ? 0 : own + 1) : undefined
    if (this.#owners.size >= this.#most && !leaving) return socket
    if (leaving) this.#delete(leaving)
    this.#set(socket, client)
    socket.once('close', () => this.#delete(socket))
    return leaving
  }

  /** The newest connection of the client that has the most, more than `own`, and is not kept. */
  #leavingFor(own: number): Socket | undefined {
    let found: Socket | undefined
    let most = own
    for (const [client, sockets] of this.#clients) {
      if (sockets.size <= most) continue
      const newest = this.#newest(client, sockets)
      if (!newest || sockets.size <= most) continue
      found = newest
      most = sockets.size
    }
    return found
  }

  /** The newest connection of a client that is not kept. Those of addresses that have become known are counted as their own from now on. */
  #newest(client: string, sockets: ReadonlySet<Socket>): Socket | undefined {
    for (const socket of [...sockets].reverse()) {
      const { remoteAddress: address = '' } = socket
      if (!this.#listener.isKept(address)) return socket
      if (plainAddress(address) === client) return undefined
      this.#delete(socket)
      this.#set(socket, plainAddress(address))
    }
    return undefined
  }

  #set(socket: Socket, client: string): void {
    this.#owners.set(socket, client)
    this.#clients.set(client, (this.#clients.get(client) ?? new Set()).add(socket))
  }

  #delete(socket: Socket): void {
    const client = this.#owners.get(socket)
    if (client === undefined) return
    this.#owners.delete(socket)
    const sockets = this.#clients.get(client)
    sockets?.delete(socket)
    if (sockets?.size === 0) this.#clients.delete(client)
  }
}

/** Closes refused connections, and reports them. */
class Refusals {
  readonly #listener: ConnectionListener
  readonly #timer = every(sayMs, () => this.#flush()).unref()
  #unsaid = 0
  #isQuiet = false
  #lastAddress = ''

  constructor(listener: ConnectionListener) {
    this.#listener = listener
  }

  refuse(socket: Socket): void {
    this.#listener.refused()
    this.#lastAddress = socket.remoteAddress ?? ''
    this.#unsaid++
    if (!this.#isQuiet) this.#flush()
    socket.destroy()
  }

  close(): void {
    this.#timer.cancel()
  }

  #flush(): void {
    if (this.#unsaid > 0) this.#listener.say(this.#unsaid, this.#lastAddress)
    this.#isQuiet = this.#unsaid > 0
    this.#unsaid = 0
  }
}
