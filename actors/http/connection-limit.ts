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

/**
 * Limits the total number of connections of several servers, and of each client address to half of that, so that one client address
 * leaves room for the others. Further connections are closed on accept. `refused` is called for each of them; `say` is called with their
 * number at most every ten seconds.
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
  const maxOfPeer = Math.max(1, Math.floor(most * shares.peer))
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
    // Node compares this limit with the server's own connections on accept, so those of the other servers are subtracted.
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
      if (ofPeer < maxOfPeer) return
      refuse(peer)
      socket.destroy()
    })
    server.on('drop', (data) => refuse(data?.remoteAddress))
  }
  const timer = every(sayMs, flush).unref()
  return { close: () => timer.cancel() }
}
