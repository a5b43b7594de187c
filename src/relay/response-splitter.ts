/**
 * Separates responses for the agent from responses for the proxy (docs/agent.md, X3). The type of a response is its own type URL
 * (`DiscoveryResponse`, `DeltaDiscoveryResponse`) or that of its first resource, whichever arrives first. Until then its bytes are held
 * back, usually a few hundred. Afterwards bytes for the proxy are forwarded as they arrive.
 */
import { ByteStore } from './byte-store.ts'
import { FieldScan, type Wanted } from './field-scan.ts'
import { FrameBounds } from './frame-bounds.ts'

/** The fields with the type URL of a response, and of a resource's `Any`. In delta the `Any` is inside a `Resource`. */
const sotwTypes: Wanted = { 2: { 1: 'text' }, 4: 'text' }
const deltaTypes: Wanted = { 2: { 2: { 1: 'text' } }, 4: 'text' }
const nonceField: Wanted = { 5: 'text' }

const prefixLength = 5

/**
 * The maximum number of bytes of a response that are searched for its type. A response without a type in them is for the proxy: responses
 * for the agent have the type near the beginning.
 */
const maxHeld = 2048

/** The maximum size of a response for the agent, in bytes. */
const largestOwn = 33_554_432

/** Receives the separated bytes and messages. */
export interface SplitterOutput {
  /** Called with bytes for the proxy. */
  pass(bytes: Buffer): void
  /** Called with a response for the agent. */
  own(message: Buffer): void
  /** Called for a response for the agent that exceeds 32 MiB and was discarded, with the fields that its NACK needs. */
  tooLarge(typeUrl: string, nonce: string): void
  /** Called at the end of every response. */
  ended(): void
}

/** Processes the bytes of one stream of responses. */
export class ResponseSplitter {
  readonly #out: SplitterOutput
  readonly #bounds = new FrameBounds()
  readonly #typeScan: FieldScan
  readonly #nonceScan: FieldScan
  #fate: 'unknown' | 'pass' | 'keep' | 'drop' = 'unknown'
  /** The bytes received so far, with the prefix, of a response whose type is not yet known or that is for the agent. */
  readonly #held = new ByteStore()
  #length = 0
  /** The number of bytes of the response that were searched for its type. */
  #looked = 0
  #typeUrl = ''
  #nonce = ''

  /** `isOwn` returns whether responses of a type are for the agent. */
  constructor(isDelta: boolean, isOwn: (typeUrl: string) => boolean, out: SplitterOutput) {
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

  /** Whether no response is partially received. */
  get isBetween(): boolean {
    return this.#bounds.isBetween
  }

  /**
   * Processes bytes. Throws BadFrame for a compressed response, and WireError when the scanned part of a response is not valid protobuf.
   */
  take(bytes: Buffer): void {
    /** The start of the bytes that are still to be forwarded, and the start of the current response. */
    let run = 0
    let start = 0
    for (const { part, from, to, begins, ends } of this.#bounds.pieces(bytes)) {
      if (part === 'prefix') start = from
      if (begins !== undefined) this.#begin(begins)
      if (part === 'message') this.#inspect(bytes, from, to)
      if (this.#fate === 'unknown' && (ends || this.#looked === maxHeld)) this.#fate = 'pass'
      if (this.#fate === 'pass') {
        // The bytes held back arrived before this chunk, so they are forwarded first.
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

  #inspect(bytes: Buffer, from: number, to: number): void {
    if (this.#fate === 'unknown') {
      const end = Math.min(to, from + maxHeld - this.#looked)
      this.#looked += end - from
      this.#typeScan.take(bytes, from, end)
    }
    // A discarded response is answered with a NACK, whose nonce is near the end of the response.
    if (this.#isTooLarge && (this.#fate === 'unknown' || this.#fate === 'drop')) this.#nonceScan.take(bytes, from, to)
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    if (this.#fate === 'keep') this.#held.append(bytes, from, to)
    else this.#held.take()
  }

  /** Called at the end of a response for the agent. */
  #hand(): void {
    if (this.#fate === 'keep') this.#out.own(this.#held.take().subarray(prefixLength))
    else this.#out.tooLarge(this.#typeUrl, this.#nonce)
  }

  #pass(bytes: Buffer, from: number, to: number): void {
    if (to > from) this.#out.pass(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
  }
}
