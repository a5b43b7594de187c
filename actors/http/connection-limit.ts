/** How many connections a process may take, so that it never runs out of file descriptors for its own files and pages. */
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { every } from '../runtime/timers.ts'

/**
 * Descriptors that are not for proxies: those that the process has while nobody is connected (with one writer 52, and 8 more for the thread of each further one), and as many
 * again for pages, for files that are watched and read, and for logs.
 */
const reserved = { process: 64, thread: 8, rest: 96, share: 0.1, atMostShare: 0.5 }
/** Part of the reserve that is for pages, and part of the connections of proxies that one address may have. */
const shares = { pages: 0.25, peer: 0.5 }

/** Connections that one of so many writers may have, from the limit of descriptors. */
export function connectionShare(descriptors: number, writers: number): number {
  return Math.max(1, Math.floor((descriptors - reserveOf(descriptors, writers)) / writers))
}

/** Connections that one of so many HTTP servers for pages may have: a quarter of what is reserved for them all. */
export function pageShare(descriptors: number, writers: number, servers: number): number {
  return Math.max(1, Math.floor((reserveOf(descriptors, writers) * shares.pages) / servers))
}

function reserveOf(descriptors: number, writers: number): number {
  const least = reserved.process + reserved.thread * writers + reserved.rest
  return Math.min(Math.max(least, descriptors * reserved.share), descriptors * reserved.atMostShare)
}

/** Open files that the process may have; infinite where the system does not say. */
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

/** How often refusals are said, in milliseconds. */
const sayMs = 10_000

/**
 * Holds several servers together to a number of connections, and each address to half of that: whoever holds connections open from one place
 * leaves room for all others. One more is closed as soon as it is accepted; `refused` hears of each, `say` of how many at most every ten seconds.
 */
export function limitConnections(
  servers: readonly Server[],
  most: number,
  refused: () => void,
  say: (count: number, lastAddress: string) => void,
): { close(): void } {
  if (!Number.isFinite(most)) return { close: () => undefined }
  const open = new Map<Server, number>(servers.map((server) => [server, 0]))
  const ofPeers = new Map<string, number>()
  const mostOfPeer = Math.max(1, Math.floor(most * shares.peer))
  const total = () => [...open.values()].reduce((sum, count) => sum + count, 0)
  let unsaid = 0
  let quiet = false
  let lastAddress = ''
  const flush = () => {
    if (unsaid > 0) say(unsaid, lastAddress)
    quiet = unsaid > 0
    unsaid = 0
  }
  for (const server of servers) {
    const own = () => open.get(server) ?? 0
    // The server compares this with its own connections when it accepts one.
    Object.defineProperty(server, 'maxConnections', { get: () => most - (total() - own()), set: () => undefined, configurable: true })
    const refuse = (address = '') => {
      refused()
      lastAddress = address
      unsaid++
      if (!quiet) flush()
    }
    server.prependListener('connection', (socket: Socket) => {
      const { remoteAddress: peer = '' } = socket
      const ofPeer = ofPeers.get(peer) ?? 0
      open.set(server, own() + 1)
      ofPeers.set(peer, ofPeer + 1)
      socket.once('close', () => {
        open.set(server, own() - 1)
        const left = (ofPeers.get(peer) ?? 1) - 1
        if (left > 0) ofPeers.set(peer, left)
        else ofPeers.delete(peer)
      })
      if (ofPeer < mostOfPeer) return
      refuse(peer)
      socket.destroy()
    })
    server.on('drop', (data) => refuse(data?.remoteAddress))
  }
  const timer = every(sayMs, flush).unref()
  return { close: () => timer.cancel() }
}
