/**
 * The addresses of clients that presented a valid certificate or token, in memory that all writers share: a client is known wherever it
 * connects next, also to a writer that has just started.
 */
import { hash } from 'node:crypto'

/** Buckets and places in each; an address has a place in one bucket. */
const shape = { buckets: 2048, places: 8 }
/** How long an address is known after its last credential, and the unit of recorded times, in milliseconds. */
const knownForMs = 24 * 3_600_000
const unitMs = 60_000
/** Bits of a place that hold the time; the rest holds a part of the digest. */
const timeBits = 24n
const timeMask = (1n << timeBits) - 1n

/** Returns the memory for the known addresses of a process. */
export function knownAddressWords(): SharedArrayBuffer {
  return new SharedArrayBuffer(shape.buckets * shape.places * BigUint64Array.BYTES_PER_ELEMENT)
}

/**
 * At most 16,384 known addresses, as keyed digests, so that no client can choose an address that counts as another. In a full bucket the
 * one whose credential is oldest is forgotten.
 */
export class KnownAddresses {
  readonly #places: BigUint64Array
  readonly #key: string

  constructor(words: SharedArrayBuffer, key: string) {
    this.#places = new BigUint64Array(words)
    this.#key = key
  }

  /** Returns what is kept of an address. */
  at(address: string): KnownAddress {
    const bytes = hash('sha256', `${this.#key} ${address}`, 'buffer')
    const first = (bytes.readUInt32BE(8) % shape.buckets) * shape.places
    return new KnownAddress(this.#places.subarray(first, first + shape.places), bytes.readBigUInt64BE(0) >> timeBits)
  }
}

/** What is kept of one address. Times are monotonic milliseconds of a clock that all threads share. */
export class KnownAddress {
  readonly #bucket: BigUint64Array
  readonly #digest: bigint

  constructor(bucket: BigUint64Array, digest: bigint) {
    this.#bucket = bucket
    this.#digest = digest
  }

  /** A client at the address presented a valid credential. */
  add(now: number): void {
    const until = BigInt(Math.floor((now + knownForMs) / unitMs)) & timeMask
    Atomics.store(this.#bucket, this.#place ?? this.#oldest(), (this.#digest << timeBits) | until)
  }

  has(now: number): boolean {
    const place = this.#place
    return place !== undefined && Number(Atomics.load(this.#bucket, place) & timeMask) * unitMs > now
  }

  /** Forgets the address: a handshake from there was costly. */
  delete(): void {
    const place = this.#place
    if (place !== undefined) Atomics.store(this.#bucket, place, 0n)
  }

  get #place(): number | undefined {
    for (let place = 0; place < shape.places; place++) if (Atomics.load(this.#bucket, place) >> timeBits === this.#digest) return place
    return undefined
  }

  /** The free place, or the one of the oldest credential. */
  #oldest(): number {
    let oldest = 0
    const until = (place: number) => Atomics.load(this.#bucket, place) & timeMask
    for (let place = 1; place < shape.places; place++) if (until(place) < until(oldest)) oldest = place
    return oldest
  }
}
