/** Asks the servers of the system what the agent does not answer itself (docs/agent.md, D4). */
import { randomInt } from 'node:crypto'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { connect, isIPv6 } from 'node:net'
import { isAnswerTo, type Query, withId } from '../../../src/dns/message.ts'
import { sourcePorts } from '../../../src/dns/source-ports.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import type { DnsMetrics } from './metrics.ts'
import { framed, MessageReader } from './stream-messages.ts'

/** How long one server may take, and all of them together, in milliseconds. */
const patience = { server: 2000, all: 10_000 }
/** Queries that are asked at a time; each has a socket of its own. */
const mostQueries = 512

/** How many ports are tried that others have taken, before one is left to the kernel. */
const mostPorts = 5

/** A query on its way. */
interface Asking {
  readonly query: Query
  /** The query as it came. */
  readonly message: Buffer
  readonly isStream: boolean
}

/** Asks servers, each query from a port and under an id that nobody can guess. */
export class Upstream {
  readonly #port: number
  readonly #metrics: DnsMetrics
  /** Ids of queries under way by the local port of their socket, `udp|` or `tcp|` before it. */
  readonly #sockets = new Map<string, number>()
  readonly #sources = ownSourcePorts()
  #asking = 0
  /** Give up what is under way. */
  readonly #open = new Set<() => void>()

  /** `port` is that of all servers. */
  constructor(port: number, metrics: DnsMetrics) {
    this.#port = port
    this.#metrics = metrics
  }

  /** Gives up all queries that are under way: none is answered. */
  close(): void {
    for (const giveUp of this.#open) giveUp()
  }

  /** Whether a message is a query of this agent that has come back to it: its own queries are redirected like those of others. */
  isOwn(message: Buffer, port: number, isStream: boolean): boolean {
    const id = this.#sockets.get(keyOf(port, isStream))
    return id !== undefined && message.length >= 2 && message.readUInt16BE(0) === id
  }

  /** Asks one server after the other until one answers, whatever it says. Resolves with its response under the query's id, or undefined when none did, or too many queries are under way. */
  async ask(asking: Asking, servers: readonly string[]): Promise<Buffer | undefined> {
    const done = this.#metrics.forwarded()
    const started = monotonicMs()
    if (this.#asking >= mostQueries) {
      done(0, false)
      return undefined
    }
    this.#asking++
    try {
      for (const server of servers) {
        const left = started + patience.all - monotonicMs()
        if (left <= 0) break
        const response = await this.#askOne(asking, server, Math.min(left, patience.server))
        if (!response) continue
        done((monotonicMs() - started) / 1000, true)
        return withId(response, asking.query.id)
      }
    } finally {
      this.#asking--
    }
    done(0, false)
    return undefined
  }

  #askOne(asking: Asking, server: string, ms: number): Promise<Buffer | undefined> {
    const id = randomInt(0x1_0000)
    const ask = asking.isStream ? this.#overTcp : this.#overUdp
    return new Promise((resolve) => {
      const settle = (response: Buffer | undefined) => {
        this.#open.delete(giveUp)
        timer.cancel()
        close()
        resolve(response)
      }
      const take = (response: Buffer) => {
        if (isAnswerTo(asking.query, id, response)) settle(response)
      }
      const giveUp = () => settle(undefined)
      const timer = deadlineAfter(ms, giveUp)
      const close = ask.call(this, server, withId(asking.message, id), id, take, giveUp)
      this.#open.add(giveUp)
    })
  }

  /** The socket is connected: the kernel takes packets from the server's address and port alone. */
  #overUdp(server: string, message: Buffer, id: number, take: (response: Buffer) => void, failed: () => void): () => void {
    const socket: UdpSocket = createSocket({ type: isIPv6(server.replace(/%.*$/, '')) ? 'udp6' : 'udp4' })
    let key = ''
    let isOpen = true
    let tries = this.#sources ? mostPorts : 0
    const close = () => {
      if (!isOpen) return
      isOpen = false
      this.#sockets.delete(key)
      socket.close()
    }
    socket.on('message', take)
    const send = () =>
      socket.connect(this.#port, server, (error?: Error) => {
        if (!isOpen) return
        if (error) return failed()
        key = keyOf(socket.address().port, false)
        this.#sockets.set(key, id)
        socket.send(message)
      })
    const bind = () => {
      if (tries-- <= 0 || !this.#sources) return send()
      const [first, last] = this.#sources
      socket.bind({ port: randomInt(first, last + 1), exclusive: true }, send)
    }
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (isOpen) code === 'EADDRINUSE' && tries >= 0 ? bind() : failed()
    })
    bind()
    return close
  }

  #overTcp(server: string, message: Buffer, id: number, take: (response: Buffer) => void, failed: () => void): () => void {
    const socket = connect({ host: server, port: this.#port })
    const reader = new MessageReader()
    let key = ''
    socket.on('connect', () => {
      key = keyOf(socket.localPort ?? 0, true)
      this.#sockets.set(key, id)
      socket.write(framed(message))
    })
    socket.on('data', (bytes: Buffer) => reader.take(bytes, take))
    for (const event of ['error', 'end', 'close']) socket.on(event, failed)
    return () => {
      this.#sockets.delete(key)
      socket.destroy()
    }
  }
}

/** By what this machine says; undefined where it says nothing. */
function ownSourcePorts(): ReturnType<typeof sourcePorts> {
  try {
    return sourcePorts(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'))
  } catch {
    return undefined
  }
}

const keyOf = (port: number, isStream: boolean): string => `${isStream ? 'tcp' : 'udp'}|${port}`
