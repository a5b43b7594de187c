/** Tracks which streams share a transport connection, so that connections can be counted and moved as a whole. */

/** A transport connection with its streams. */
export interface Transport<Stream> {
  /** Unique among all connections of the writer, past ones included. */
  readonly number: number
  readonly streams: Set<Stream>
}

/** The transport connections of a writer that have at least one stream. */
export class Transports<Stream> {
  /** By the object that identifies the connection, oldest first. */
  readonly #open = new Map<object, Transport<Stream>>()
  #opened = 0

  get size(): number {
    return this.#open.size
  }

  /** Adds a stream. Returns the connection that the stream is on. */
  add(connection: object, stream: Stream): Transport<Stream> {
    let transport = this.#open.get(connection)
    if (!transport) this.#open.set(connection, (transport = { number: this.#opened++, streams: new Set() }))
    transport.streams.add(stream)
    return transport
  }

  /** Removes a stream, and its connection with the last stream. */
  remove(connection: object, stream: Stream): void {
    const transport = this.#open.get(connection)
    transport?.streams.delete(stream)
    if (transport?.streams.size === 0) this.#open.delete(connection)
  }

  /** The `count` oldest connections, oldest first. */
  oldest(count: number): Transport<Stream>[] {
    return [...this.#open.values()].slice(0, Math.max(0, count))
  }

  /** The `count` newest connections, newest first. */
  newest(count: number): Transport<Stream>[] {
    return [...this.#open.values()].reverse().slice(0, Math.max(0, count))
  }
}
