/** How many connections a process may take, so that it never runs out of file descriptors for its own files and pages. */
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { every } from '../runtime/timers.ts'

/** Descriptors that are not for connections: files that are watched and read, pages, logs, and the threads' own. */
const reserved = { least: 128, share: 0.1, atMostShare: 0.5 }

/** Connections that one of so many writers may have, from the limit of descriptors. */
export function connectionShare(descriptors: number, writers: number): number {
  return Math.max(1, Math.floor((descriptors - reserveOf(descriptors)) / writers))
}

/** Connections that one of so many HTTP servers for pages may have: half of what is reserved. */
export function pageShare(descriptors: number, servers: number): number {
  return Math.max(1, Math.floor(reserveOf(descriptors) / 2 / servers))
}

function reserveOf(descriptors: number): number {
  return Math.min(Math.max(reserved.least, descriptors * reserved.share), descriptors * reserved.atMostShare)
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
 * Holds several servers together to a number of connections. One more is closed as soon as it is accepted; `refused` hears of
 * each, `say` of how many at most every ten seconds.
 */
export function limitConnections(
  servers: readonly Server[],
  most: number,
  refused: () => void,
  say: (count: number, lastAddress: string) => void,
): { close(): void } {
  if (!Number.isFinite(most)) return { close: () => undefined }
  const open = new Map<Server, number>(servers.map((server) => [server, 0]))
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
    server.prependListener('connection', (socket: Socket) => {
      open.set(server, own() + 1)
      socket.once('close', () => open.set(server, own() - 1))
    })
    server.on('drop', (data) => {
      refused()
      lastAddress = data?.remoteAddress ?? ''
      unsaid++
      if (!quiet) flush()
    })
  }
  const timer = every(sayMs, flush).unref()
  return { close: () => timer.cancel() }
}
