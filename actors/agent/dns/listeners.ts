/** The UDP and TCP sockets on which the DNS server receives queries, on each address of the configured host (docs/agent.md, D1, D6). */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, isIP, isIPv6, type Server, type Socket } from 'node:net'
import { clientKey } from '../../../src/model/client-address.ts'
import { FairQueue } from '../../../src/model/fair-queue.ts'
import { FairSlots } from '../../../src/model/fair-slots.ts'
import { isLoopbackAddress } from '../../http/loopback.ts'
import { leftGarbage } from '../../runtime/refused-garbage.ts'
import { deadlineAfter, type Timer } from '../../runtime/timers.ts'
import { framed, MessageReader } from './stream-messages.ts'

/** A received message and the function that answers it. */
export interface Incoming {
  readonly message: Buffer
  /** The sender's port. */
  readonly port: number
  /** Whether the message was received over TCP. */
  readonly isStream: boolean
  /** Who sent it, for turns among clients: a connection, a socket of this machine, or another machine. */
  readonly client: string
  /** Sends a response; undefined sends none. Called once. */
  answer(response: Buffer | undefined): void
}

/** Limits on TCP: connections; per connection, unanswered queries, bytes of unsent responses, and milliseconds without a query. */
const bounds = { connections: 128, queries: 32, bytes: 262_144, idleMs: 10_000 }
/**
 * Limits on messages that wait for their turn: their number, which has room for those of all connections, their bytes, and how many are
 * passed on in a turn of the event loop. That is less than Node receives in a turn, so that a flood waits here and not in the kernel, which
 * would drop the messages of others.
 */
const queue = { calls: 8192, bytes: 4_194_304, ofTurn: 8 }
/** The wanted size of the kernel's buffer of received packets, in bytes. The kernel gives less where it is configured so. */
const receiveBytes = 4_194_304
/** The number of connections that the kernel keeps until they are accepted. */
const backlog = 4096

/**
 * Returns the addresses of a host: both loopback addresses for `localhost`, both wildcard addresses for an empty host, or the IP address
 * itself. Throws an Error for any other name.
 */
function addressesOf(host: string): readonly string[] {
  if (host === 'localhost') return ['127.0.0.1', '::1']
  if (host === '') return ['0.0.0.0', '::']
  if (isIP(host) === 0) throw new Error(`${host} is neither localhost nor an IP address`)
  return [host]
}

/** Error codes for an address family that the machine does not have. */
const absent: ReadonlySet<unknown> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/**
 * Listens on all addresses and passes received messages on, in turns of their clients. When too many wait, the newest of the client with the
 * most is dropped. There is room for a new connection: the one that has been without a query for longest is closed.
 */
export class Listeners {
  readonly #take: (incoming: Incoming) => void
  readonly #idleMs: number
  readonly #udp: UdpSocket[] = []
  readonly #tcp: Server[] = []
  readonly #connections = new FairSlots<Socket>(bounds.connections, bounds.connections)
  #opened = 0
  readonly #waiting = new FairQueue<Incoming>(queue)
  #turn: NodeJS.Immediate | undefined
  readonly addresses: string[] = []

  /** `idleMs` is the maximum time that a connection may be without a query, in milliseconds. */
  constructor(take: (incoming: Incoming) => void, idleMs = bounds.idleMs) {
    this.#take = take
    this.#idleMs = idleMs
  }

  /**
   * Listens on a host and a port, the same port for both protocols and all addresses; 0 chooses a free one. An address family that the
   * machine does not have is skipped. Rejects, and listens on nothing, when an address cannot be bound or none is left.
   */
  async open(host: string, port: number): Promise<void> {
    const addresses = addressesOf(host)
    let chosen = port
    try {
      for (const address of addresses) {
        try {
          chosen = await this.#openUdp(address, chosen)
        } catch (error) {
          if (addresses.length === 1 || !absent.has((error as NodeJS.ErrnoException).code)) throw error
          continue
        }
        await this.#openTcp(address, chosen)
        this.addresses.push(`${isIPv6(address) ? `[${address}]` : address}:${chosen}`)
      }
      if (this.addresses.length === 0) throw new Error(`this machine has no address of ${host}`)
    } catch (error) {
      await this.close()
      throw new Error(`DNS on ${host}:${port}: ${(error as Error).message}`, { cause: error })
    }
  }

  async close(): Promise<void> {
    clearImmediate(this.#turn)
    for (const socket of this.#connections.holders) socket.destroy()
    await Promise.all([
      ...this.#udp.splice(0).map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))),
      ...this.#tcp.splice(0).map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    ])
  }

  #openUdp(address: string, port: number): Promise<number> {
    const isV6 = isIPv6(address)
    const socket = createSocket({ type: isV6 ? 'udp6' : 'udp4', ipv6Only: isV6 })
    socket.on('message', (message, { address: from, port: fromPort }) => {
      // A response cannot be sent to port 0.
      if (fromPort === 0) return
      this.#receive({
        message,
        port: fromPort,
        isStream: false,
        client: isLoopbackAddress(from) ? `${from}|${fromPort}` : clientKey(from),
        answer: (response) => {
          // A send error is ignored: there is no one to report it to.
          if (response && this.#udp.includes(socket)) socket.send(response, fromPort, from, () => undefined)
        },
      })
    })
    return new Promise((resolve, reject) => {
      socket.once('error', (error) => {
        socket.close()
        reject(error)
      })
      socket.bind({ address, port, exclusive: true }, () => {
        socket.removeAllListeners('error')
        socket.setRecvBufferSize(receiveBytes)
        // An error with one packet must not stop the server.
        socket.on('error', () => undefined)
        this.#udp.push(socket)
        resolve(socket.address().port)
      })
    })
  }

  #openTcp(address: string, port: number): Promise<void> {
    // A client may half-close its connection before it has all responses.
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket))
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host: address, port, exclusive: true, ipv6Only: isIPv6(address), backlog }, () => {
        server.removeListener('error', reject)
        server.on('error', () => undefined)
        this.#tcp.push(server)
        resolve()
      })
    })
  }

  #receive(incoming: Incoming): void {
    for (const dropped of this.#waiting.add(incoming.client, incoming, incoming.message.length)) {
      dropped.answer(undefined)
      leftGarbage()
    }
    this.#turn ??= setImmediate(() => this.#pass())
  }

  #pass(): void {
    this.#turn = undefined
    for (let passed = 0; passed < queue.ofTurn; passed++) {
      const next = this.#waiting.take()
      if (!next) return
      this.#take(next)
    }
    this.#turn = setImmediate(() => this.#pass())
  }

  /** Reads the queries of a connection. Responses are sent in any order, as they become available (RFC 7766, 6.2.1.1). */
  #accept(socket: Socket): void {
    this.#connections.take(clientKey(socket.remoteAddress), socket)?.destroy()
    const client = `connection ${++this.#opened}`
    const reader = new MessageReader()
    const port = socket.remotePort ?? 0
    let waiting = 0
    let isEnding = false
    let idle: Timer | undefined
    const restart = () => {
      idle?.cancel()
      idle = deadlineAfter(this.#idleMs, () => socket.destroy())
    }
    const settle = () => {
      if (waiting === 0) this.#connections.mark(socket, false)
      if (waiting < bounds.queries) socket.resume()
      if (waiting === 0 && isEnding) socket.end()
    }
    const take = (message: Buffer): boolean => {
      restart()
      if (waiting++ === 0) this.#connections.mark(socket, true)
      const answer = (response: Buffer | undefined) => {
        waiting--
        if (socket.destroyed) return
        if (response) socket.write(framed(response))
        // A client that sends queries and does not read the responses is disconnected.
        if (socket.writableLength > bounds.bytes) socket.destroy()
        else settle()
      }
      this.#receive({ message, port, isStream: true, client, answer })
      return waiting < bounds.queries
    }
    restart()
    socket.on('data', (bytes: Buffer) => {
      const taken = reader.take(bytes, take)
      if (waiting >= bounds.queries) socket.pause()
      if (taken < bytes.length) socket.unshift(bytes.subarray(taken))
    })
    socket.on('end', () => {
      isEnding = true
      settle()
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      idle?.cancel()
      this.#connections.release(socket)
    })
  }
}
