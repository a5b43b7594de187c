/** Limits the number of connections, so that the process does not run out of file descriptors for its own files and pages. */
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { every } from '../runtime/timers.ts'

/**
 * File descriptors reserved for other uses than proxy connections: `process` for those open without any connection (52 with one writer),
 * `thread` for each writer thread, `rest` for pages, watched and read files, and logs. The reserve is at least the share `share` of all
 * descriptors and at most `atMostShare`.
 */
const reserved = { process: 64, thread: 8, rest: 96, share: 0.1, atMostShare: 0.5 }
/**
 * The share of the reserve that is for pages, the maximum number of connections of one page server, and the share of proxy connections that
 * one client address may have.
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
    limits = readFileSync('/proc/self/limits', 'utf8')
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
 * Limits the total number of connections of several servers, and of each client address to half of that. When there is no room, the newest
 * connection of the address with the most gives way to one from an address with fewer, so that many addresses cannot keep out another
 * one; otherwise the new connection is closed on accept.
 */
export function limitConnections(servers: readonly Server[], most: number, listener: ConnectionListener): { close(): void } {
  if (!Number.isFinite(most)) return { close: () => undefined }
  const ofPeers = new Map<string, Set<Socket>>()
  const maxOfPeer = Math.max(1, Math.floor(most * shares.peer))
  let total = 0
  let unsaid = 0
  let quiet = false
  let lastAddress = ''
  const flush = () => {
    if (unsaid > 0) listener.say(unsaid, lastAddress)
    quiet = unsaid > 0
    unsaid = 0
  }
  const refuse = (socket: Socket, address: string) => {
    listener.refused()
    lastAddress = address
    unsaid++
    if (!quiet) flush()
    socket.destroy()
  }
  /** The connection that gives way to one from an address with `own` connections, and its address. */
  const leaving = (peer: string, own: number): readonly [Socket, string] | undefined => {
    let largest: readonly [string, Set<Socket>] | undefined
    for (const each of ofPeers) if (each[1].size > (largest?.[1].size ?? 0) && !listener.isKept(each[0])) largest = each
    if (!largest || largest[1].size <= (listener.isKept(peer) ? 0 : own)) return undefined
    const newest = [...largest[1]].at(-1)
    return newest && [newest, largest[0]]
  }
  const leave = (socket: Socket, peer: string) => {
    const sockets = ofPeers.get(peer)
    if (!sockets?.delete(socket)) return
    total--
    if (sockets.size === 0) ofPeers.delete(peer)
  }
  for (const server of servers)
    server.prependListener('connection', (socket: Socket) => {
      const { remoteAddress: peer = '' } = socket
      const own = ofPeers.get(peer) ?? new Set()
      if (own.size >= maxOfPeer) return refuse(socket, peer)
      if (total >= most) {
        const found = leaving(peer, own.size + 1)
        if (!found) return refuse(socket, peer)
        leave(...found)
        refuse(...found)
      }
      ofPeers.set(peer, own.add(socket))
      total++
      socket.once('close', () => leave(socket, peer))
    })
  const timer = every(sayMs, flush).unref()
  return { close: () => timer.cancel() }
}
