/**
 * Connections that the main thread accepts and a writer serves: gRPC on the HTTP port (docs/operation.md, "Addresses"). The bytes go through a
 * unix socket in a directory of this process. The first of them are a head that says who the client is, with a key that only this process
 * knows.
 */
import { timingSafeEqual } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { deadlineAfter, type Timer } from '../runtime/timers.ts'

/** Where a writer takes connections. */
export interface PassedListening {
  /** The path of its unix socket. */
  readonly passedAt: string
  /** The key of the process, 64 hexadecimal digits. */
  readonly key: string
}

/** The maximum length of an address in a head, in bytes; an IPv6 address with a zone has fewer. */
const longestAddress = 128
/** How long a connection may take to send its head, in milliseconds, and how many may be without one. */
const headless = { ms: 5000, connections: 256 }
/** How long a client may take to read the rest of a connection that its writer has closed, in milliseconds. */
const lastMs = 10_000
/** Connections beyond the maximum that a writer is given, so that it can decide which one gives way. */
const slack = 16

/** Settings of {@link PassedConnections}. */
export interface PassingOptions {
  /** The writers. */
  readonly writers: readonly PassedListening[]
  /** The maximum number of connections of one writer. */
  readonly ofWriter: number
  /** The time without progress after which a connection ends whose client does not read, in milliseconds. */
  readonly standstillMs: number
  /** Called for each connection that is closed because of `ofWriter`. */
  refused(): void
}

/** A writer and the connections that it was given. */
interface Target {
  readonly at: PassedListening
  readonly clients: Set<Socket>
}

/** The connections of clients that are passed to writers, each to the one that has the fewest. */
export class PassedConnections {
  readonly #options: PassingOptions
  #targets: Target[]
  #isClosed = false

  constructor(options: PassingOptions) {
    this.#options = options
    this.#targets = options.writers.map((at) => ({ at, clients: new Set() }))
  }

  /** The number of connections. */
  get size(): number {
    return this.#targets.reduce((sum, { clients }) => sum + clients.size, 0)
  }

  /** Takes the connection of a client, of which `first` was read. It is closed when no writer takes it. */
  take(client: Socket, first: Buffer): void {
    client.on('error', () => client.destroy())
    const { remoteAddress } = client
    const { ofWriter, refused } = this.#options
    // Undefined when the client has gone again.
    if (this.#isClosed || remoteAddress === undefined) return void client.destroy()
    if (this.size >= (ofWriter + slack) * this.#targets.length) {
      client.destroy()
      return refused()
    }
    client.pause()
    client.setNoDelay(true)
    // The one that was given a connection last comes last among those with equal numbers.
    this.#offer(
      client,
      { remoteAddress, first },
      [...this.#targets].sort((one, other) => one.clients.size - other.clients.size),
    )
  }

  /** Closes all connections. */
  close(): void {
    this.#isClosed = true
    for (const { clients } of this.#targets) for (const client of clients) client.destroy()
  }

  /** Offers a connection to the writers in turn: one that restarts does not listen. */
  #offer(client: Socket, head: { readonly remoteAddress: string; readonly first: Buffer }, [target, ...others]: readonly Target[]): void {
    if (!target || client.destroyed) return void client.destroy()
    this.#targets = [...this.#targets.filter((other) => other !== target), target]
    target.clients.add(client)
    const gone = () => target.clients.delete(client)
    client.once('close', gone)
    const writer = connect({ path: target.at.passedAt, allowHalfOpen: true })
    const failed = () => {
      client.off('close', gone)
      gone()
      this.#offer(client, head, others)
    }
    writer.once('error', failed)
    writer.once('connect', () => {
      writer.off('error', failed)
      if (client.destroyed) return void writer.destroy()
      writer.write(headOf(target.at.key, head.remoteAddress))
      writer.write(head.first)
      join(client, writer, this.#options.standstillMs)
    })
  }
}

/** Passes bytes and ends both ways. Neither side is read while the other one does not take what was read. */
function join(client: Socket, writer: Socket, standstillMs: number): void {
  let last: Timer | undefined
  writer.on('data', (bytes: Buffer) => {
    if (client.write(bytes)) return
    writer.pause()
    // While the writer is not read, it is not noticed that the writer gave the client up.
    client.setTimeout(standstillMs)
  })
  client.on('drain', () => {
    client.setTimeout(0)
    writer.resume()
  })
  client.on('data', (bytes: Buffer) => {
    if (!writer.write(bytes)) client.pause()
  })
  writer.on('drain', () => client.resume())
  client.on('end', () => writer.end())
  // An end without bytes before it is reported although the client is not read.
  if (client.readableEnded) writer.end()
  writer.on('end', () => client.end())
  client.on('timeout', () => client.destroy())
  client.on('close', () => {
    last?.cancel()
    writer.destroy()
  })
  writer.on('error', () => client.destroy())
  writer.on('close', () => {
    if (!client.destroyed) last = deadlineAfter(lastMs, () => client.destroy()).unref()
    client.end()
  })
  client.resume()
}

/** The head of a connection: the key, the length of the address, the address. */
function headOf(key: string, address: string): Buffer {
  const text = Buffer.from(address).subarray(0, longestAddress)
  return Buffer.concat([Buffer.from(key, 'hex'), Buffer.from([text.length]), text])
}

/**
 * Returns a server of connections that are passed on. `take` is called with each, paused, and with the address of its client as that of the
 * socket. Other connections are closed: those without the key, and those whose head does not come.
 */
export function passedServer({ key }: PassedListening, take: (socket: Socket) => void): Server {
  const expected = Buffer.from(key, 'hex')
  const waiting = new Set<Socket>()
  return createServer((socket) => {
    if (waiting.size >= headless.connections) return void socket.destroy()
    waiting.add(socket)
    const deadline = deadlineAfter(headless.ms, () => socket.destroy()).unref()
    const over = () => {
      deadline.cancel()
      waiting.delete(socket)
    }
    const destroyed = () => socket.destroy()
    let seen = Buffer.alloc(0)
    const read = () => {
      for (let bytes = socket.read(); bytes !== null; bytes = socket.read()) seen = Buffer.concat([seen, bytes])
      const address = addressIn(seen, expected)
      if (address === undefined) return
      if (address === 'wrong') return void socket.destroy()
      for (const [event, listener] of listeners) socket.off(event, listener)
      over()
      socket.unshift(seen.subarray(expected.length + 1 + address.length))
      Object.defineProperty(socket, 'remoteAddress', { value: address })
      take(socket)
    }
    const listeners = [
      ['readable', read],
      ['end', destroyed],
      ['error', destroyed],
      ['close', over],
    ] as const
    for (const [event, listener] of listeners) socket.on(event, listener)
  })
}

/** The address in a head. Undefined while it is not complete, `wrong` with another key. */
function addressIn(seen: Buffer, key: Buffer): string | undefined {
  if (seen.length <= key.length) return undefined
  if (!timingSafeEqual(seen.subarray(0, key.length), key)) return 'wrong'
  const end = key.length + 1 + (seen[key.length] ?? 0)
  return seen.length < end ? undefined : seen.toString('latin1', key.length + 1, end)
}
