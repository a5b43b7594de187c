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
/** A place has 40 bits of the digest of an address and 24 of its time: a word of the digest, and one of the rest and the time. */
const wordsOfPlace = 2
const wordsOfBucket = shape.places * wordsOfPlace
const timeMask = 0xff_ffff
const restMask = 0xff00_0000
/** The number of addresses whose digest an object remembers. */
const remembered = 4096

/** Returns the memory for the known addresses of a process. */
export function knownAddressWords(): SharedArrayBuffer {
  return new SharedArrayBuffer(shape.buckets * wordsOfBucket * Int32Array.BYTES_PER_ELEMENT)
}

/**
 * At most 16,384 known addresses, as keyed digests, so that no client can choose an address that counts as another. In a full bucket the
 * one whose credential is oldest is forgotten.
 */
export class KnownAddresses {
  readonly #words: Int32Array
  readonly #key: string
  readonly #asked = new Map<string, KnownAddress>()

  constructor(words: SharedArrayBuffer, key: string) {
    this.#words = new Int32Array(words)
    this.#key = key
  }

  /** Returns what is kept of an address. */
  at(address: string): KnownAddress {
    const asked = this.#asked.get(address)
    if (asked) return asked
    const bytes = hash('sha256', `${this.#key} ${address}`, 'buffer')
    const first = (bytes.readUInt32BE(8) % shape.buckets) * wordsOfBucket
    const known = new KnownAddress(this.#words.subarray(first, first + wordsOfBucket), bytes.readInt32BE(0), bytes.readInt32BE(4) & restMask)
    if (this.#asked.size >= remembered) this.#asked.delete(this.#asked.keys().next().value as string)
    this.#asked.set(address, known)
    return known
  }
}

/**
 * What is kept of one address. Times are monotonic milliseconds of a clock that all threads share. The two words of a place are not written
 * at once: an address that another thread replaces at this moment may be known for a moment longer, or not yet.
 */
export class KnownAddress {
  readonly #bucket: Int32Array
  readonly #digest: number
  readonly #rest: number

  /** `digest` and `rest`: the words of the digest, of the second one only the bits that a place has. */
  constructor(bucket: Int32Array, digest: number, rest: number) {
    this.#bucket = bucket
    this.#digest = digest
    this.#rest = rest
  }

  /** A client at the address presented a valid credential. */
  add(now: number): void {
    const place = this.#place ?? this.#oldest()
    Atomics.store(this.#bucket, place + 1, this.#rest | (Math.floor((now + knownForMs) / unitMs) & timeMask))
    Atomics.store(this.#bucket, place, this.#digest)
  }

  has(now: number): boolean {
    const place = this.#place
    return place !== undefined && this.#until(place) * unitMs > now
  }

  /** Forgets the address: a handshake from there was costly. */
  delete(): void {
    const place = this.#place
    if (place !== undefined) for (const word of [place, place + 1]) Atomics.store(this.#bucket, word, 0)
  }

  /** The index of the first word of the address's place. */
  get #place(): number | undefined {
    for (let place = 0; place < wordsOfBucket; place += wordsOfPlace)
      if (Atomics.load(this.#bucket, place) === this.#digest && (Atomics.load(this.#bucket, place + 1) & restMask) === this.#rest) return place
    return undefined
  }

  /** The free place, or the one of the oldest credential. */
  #oldest(): number {
    let oldest = 0
    for (let place = wordsOfPlace; place < wordsOfBucket; place += wordsOfPlace) if (this.#until(place) < this.#until(oldest)) oldest = place
    return oldest
  }

  #until(place: number): number {
    return Atomics.load(this.#bucket, place + 1) & timeMask
  }
}
