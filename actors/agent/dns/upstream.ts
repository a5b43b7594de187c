/** Forwards queries to the DNS servers of the system (docs/agent.md, D4). */
import { randomInt } from 'node:crypto'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import { isAnswerTo, type Query, withId } from '../../../src/dns/message.ts'
import { sourcePorts } from '../../../src/dns/source-ports.ts'
import { FairSlots } from '../../../src/model/fair-slots.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { readKernelFile } from '../../runtime/kernel-file.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import type { DnsMetrics } from './metrics.ts'
import { framed, MessageReader } from './stream-messages.ts'

/** The timeouts of a query at one server and at all servers together, in milliseconds. */
const timeouts = { server: 2000, all: 10_000 }
/** The maximum number of concurrent queries, of all clients and of one. Each has a socket of its own. */
const maxQueries = { all: 512, ofClient: 128 }
/** The maximum number of messages of a server that are not the response, over UDP, where others can send them under its address, and over TCP. */
const maxStrays = { udp: 100, tcp: 0 }

/** How many random ports are tried while they are in use, before the kernel chooses the port. */
const maxPorts = 5

/** A query that is being forwarded. */
interface Asking {
  readonly query: Query
  /** The query's message as received. */
  readonly message: Buffer
  readonly isStream: boolean
  /** Who asks; clients share out the concurrent queries. */
  readonly client: string
}

/** Forwards queries. Each has a random source port and a random id, against spoofed responses. */
export class Upstream {
  readonly #port: number
  readonly #metrics: DnsMetrics
  /** The ids of outstanding queries by the local port of their sockets. The keys begin with `udp|` or `tcp|`. */
  readonly #sockets = new Map<string, number>()
  readonly #sources = ownSourcePorts()
  /** The functions that abandon the concurrent queries; those of a client with many give way to those of others. */
  readonly #asking = new FairSlots<() => void>(maxQueries.all, maxQueries.ofClient)
  /** Functions that abandon the outstanding queries. */
  readonly #open = new Set<() => void>()

  /** `port` is the port of all servers. */
  constructor(port: number, metrics: DnsMetrics) {
    this.#port = port
    this.#metrics = metrics
  }

  /** Abandons all outstanding queries. Each resolves with undefined. */
  close(): void {
    for (const giveUp of this.#open) giveUp()
  }

  /** Whether a message is one of this agent's own forwarded queries, redirected back to the agent by rules that do not exclude its user. */
  isOwn(message: Buffer, port: number, isStream: boolean): boolean {
    const id = this.#sockets.get(keyOf(port, isStream))
    return id !== undefined && message.length >= 2 && message.readUInt16BE(0) === id
  }

  /**
   * Asks the servers in order until one responds, with any response code. Resolves with the response under the query's id, or with
   * undefined when no server responded, too many queries of the client are outstanding, or the query gave way to another client.
   */
  async ask(asking: Asking, servers: readonly string[]): Promise<Buffer | undefined> {
    const done = this.#metrics.forwarded()
    const started = monotonicMs()
    if (this.#asking.countOf(asking.client) >= maxQueries.ofClient) {
      done(0, false)
      return undefined
    }
    let isAbandoned = false
    let abandon = () => {}
    const leave = () => {
      isAbandoned = true
      abandon()
    }
    this.#asking.take(asking.client, leave)?.()
    try {
      for (const server of servers) {
        const left = started + timeouts.all - monotonicMs()
        if (left <= 0 || isAbandoned) break
        const response = await this.#askOne(asking, server, Math.min(left, timeouts.server), (giveUp) => (abandon = giveUp))
        if (!response) continue
        done((monotonicMs() - started) / 1000, true)
        return withId(response, asking.query.id)
      }
    } finally {
      this.#asking.release(leave)
    }
    done(0, false)
    return undefined
  }

  #askOne(asking: Asking, server: string, ms: number, began: (giveUp: () => void) => void): Promise<Buffer | undefined> {
    const id = randomInt(0x1_0000)
    const ask = asking.isStream ? this.#overTcp : this.#overUdp
    return new Promise((resolve) => {
      const settle = (response: Buffer | undefined) => {
        this.#open.delete(giveUp)
        timer.cancel()
        close()
        resolve(response)
      }
      const giveUp = () => settle(undefined)
      const most = asking.isStream ? maxStrays.tcp : maxStrays.udp
      let strays = 0
      const take = (response: Buffer) => {
        if (isAnswerTo(asking.query, id, response)) settle(response)
        else if (++strays > most) giveUp()
      }
      const timer = deadlineAfter(ms, giveUp)
      const close = ask.call(this, server, withId(asking.message, id), id, take, giveUp)
      this.#open.add(giveUp)
      began(giveUp)
    })
  }

  /** The socket is connected, so the kernel drops packets from any address and port other than the server's. */
  #overUdp(server: string, message: Buffer, id: number, take: (response: Buffer) => void, failed: () => void): () => void {
    const socket: UdpSocket = createSocket({ type: isIPv6(server.replace(/%.*$/, '')) ? 'udp6' : 'udp4' })
    let key = ''
    let isOpen = true
    let tries = this.#sources ? maxPorts : 0
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
    const each = (response: Buffer) => {
      take(response)
      return !socket.destroyed
    }
    socket.on('data', (bytes: Buffer) => reader.take(bytes, each))
    for (const event of ['error', 'end', 'close']) socket.on(event, failed)
    return () => {
      this.#sockets.delete(key)
      socket.destroy()
    }
  }
}

/** The source ports outside the kernel's ephemeral range (`sourcePorts`). Undefined where the range cannot be read. */
function ownSourcePorts(): ReturnType<typeof sourcePorts> {
  try {
    return sourcePorts(readKernelFile('/proc/sys/net/ipv4/ip_local_port_range'))
  } catch {
    return undefined
  }
}

const keyOf = (port: number, isStream: boolean): string => `${isStream ? 'tcp' : 'udp'}|${port}`
