/**
 * Tells responses that are for the agent itself from those for the proxy (docs/agent.md, X3). The type of a response is known from the
 * first of these that comes: its own type URL (`DiscoveryResponse`, `DeltaDiscoveryResponse`), or that of its first resource. Until then
 * its bytes are held back, a few hundred at most; from then on they are handed on as they come.
 */
import { ByteStore } from './byte-store.ts'
import { FieldScan, type Wanted } from './field-scan.ts'
import { FrameBounds } from './frame-bounds.ts'

/** The type URL of a response, and that of the `Any` of a resource; in delta the `Any` is in a `Resource`. */
const sotwTypes: Wanted = { 2: { 1: 'text' }, 4: 'text' }
const deltaTypes: Wanted = { 2: { 2: { 1: 'text' } }, 4: 'text' }
const nonceField: Wanted = { 5: 'text' }

const prefixLength = 5

/** Most bytes of a response that are held back. One whose type is not among them is for the proxy: those for the agent name their types early. */
const mostHeld = 2048

/** Largest response for the agent itself, in bytes. */
const largestOwn = 33_554_432

/** Where bytes and messages go. */
export interface SieveOutput {
  /** Bytes for the proxy. */
  pass(bytes: Buffer): void
  /** A response for the agent itself. */
  own(message: Buffer): void
  /** A response for the agent itself was larger than 32 MiB and was passed over, but for what answers it. */
  tooLarge(typeUrl: string, nonce: string): void
  /** A response has ended, whomever it was for. */
  ended(): void
}

/** Takes the bytes of one stream of responses. */
export class ResponseSieve {
  readonly #out: SieveOutput
  readonly #bounds = new FrameBounds()
  readonly #typeScan: FieldScan
  readonly #nonceScan: FieldScan
  #fate: 'unknown' | 'pass' | 'keep' | 'drop' = 'unknown'
  /** What came before of a response whose fate is unknown, or that is for the agent itself; with its prefix. */
  readonly #held = new ByteStore()
  #length = 0
  /** Bytes of the response in which its type was looked for. */
  #looked = 0
  #typeUrl = ''
  #nonce = ''

  /** `isOwn` says which types are for the agent itself. */
  constructor(isDelta: boolean, isOwn: (typeUrl: string) => boolean, out: SieveOutput) {
    this.#out = out
    this.#typeScan = new FieldScan(isDelta ? deltaTypes : sotwTypes, (_, typeUrl) => {
      this.#typeUrl = typeUrl
      this.#fate = !isOwn(typeUrl) ? 'pass' : this.#isTooLarge ? 'drop' : 'keep'
      return false
    })
    this.#nonceScan = new FieldScan(nonceField, (_, nonce) => {
      this.#nonce = nonce
      return true
    })
  }

  /** Whether every response that has begun has ended. */
  get isBetween(): boolean {
    return this.#bounds.isBetween
  }

  /** Takes bytes. Throws BadFrame for a response that is compressed, WireError for one that is no protobuf as far as it is looked at. */
  take(bytes: Buffer): void {
    /** Where the bytes start that are still to be passed, and those of the response under way. */
    let run = 0
    let start = 0
    for (const { part, from, to, begins, ends } of this.#bounds.pieces(bytes)) {
      if (part === 'prefix') start = from
      if (begins !== undefined) this.#begin(begins)
      if (part === 'message') this.#look(bytes, from, to)
      if (this.#fate === 'unknown' && (ends || this.#looked === mostHeld)) this.#fate = 'pass'
      if (this.#fate === 'pass') {
        // It is held from the bytes that came before: these all belong behind it.
        if (this.#held.length > 0) this.#out.pass(this.#held.take())
      } else if (this.#fate !== 'unknown') {
        this.#pass(bytes, run, start)
        this.#keep(bytes, start, to)
        run = to
        start = to
        if (ends) this.#hand()
      }
      if (!ends) continue
      this.#fate = 'unknown'
      this.#out.ended()
    }
    if (this.#fate !== 'unknown' || this.#bounds.isBetween) return this.#pass(bytes, run, bytes.length)
    this.#pass(bytes, run, start)
    this.#held.append(bytes, start)
  }

  get #isTooLarge(): boolean {
    return this.#length > largestOwn
  }

  #begin(length: number): void {
    this.#length = length
    this.#looked = 0
    this.#nonce = ''
    this.#typeScan.begin(length)
    this.#nonceScan.begin(length)
  }

  #look(bytes: Buffer, from: number, to: number): void {
    if (this.#fate === 'unknown') {
      const end = Math.min(to, from + mostHeld - this.#looked)
      this.#looked += end - from
      this.#typeScan.take(bytes, from, end)
    }
    // A response that is too large is answered all the same, and what answers it stands at its end.
    if (this.#isTooLarge && (this.#fate === 'unknown' || this.#fate === 'drop')) this.#nonceScan.take(bytes, from, to)
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    if (this.#fate === 'keep') this.#held.append(bytes, from, to)
    else this.#held.take()
  }

  /** A response for the agent itself has ended. */
  #hand(): void {
    if (this.#fate === 'keep') this.#out.own(this.#held.take().subarray(prefixLength))
    else this.#out.tooLarge(this.#typeUrl, this.#nonce)
  }

  #pass(bytes: Buffer, from: number, to: number): void {
    if (to > from) this.#out.pass(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
  }
}
