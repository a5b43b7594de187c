/**
 * Tracks a proxy's requests while they are forwarded, so that the agent can insert its own requests between two of them (docs/agent.md,
 * X3).
 */
import { WireError } from '../xds/slab/wire.ts'
import { FieldScan, type Wanted } from './field-scan.ts'
import { FrameBounds } from './frame-bounds.ts'

/** The fields with the type URL in `DiscoveryRequest` and `DeltaDiscoveryRequest`. */
const sotwType: Wanted = { 4: 'text' }
const deltaType: Wanted = { 2: 'text' }

/** Processes the bytes of one stream of requests. */
export class RequestScan {
  readonly #bounds = new FrameBounds()
  readonly #scan: FieldScan
  #typeUrl = ''
  /**
   * Whether the current message is scanned. The scan ends when the type is found, or when the message is not valid protobuf, which
   * discovery rejects.
   */
  #inspects = false

  constructor(isDelta: boolean) {
    this.#scan = new FieldScan(isDelta ? deltaType : sotwType, (_, typeUrl) => {
      this.#typeUrl = typeUrl
      this.#inspects = false
      return false
    })
  }

  /** Whether no request is partially received. */
  get isBetween(): boolean {
    return this.#bounds.isBetween
  }

  /**
   * Forwards bytes to `pass`. At the end of each request `ended` is called with its type URL and returns the messages, with prefixes, to be
   * sent after it. Throws BadFrame for a compressed request.
   */
  take(bytes: Buffer, pass: (bytes: Buffer) => void, ended: (typeUrl: string) => readonly Buffer[]): void {
    let run = 0
    for (const { part, from, to, begins, ends } of this.#bounds.pieces(bytes)) {
      if (begins !== undefined) this.#begin(begins)
      if (part === 'message' && this.#inspects) this.#inspect(bytes, from, to)
      if (!ends) continue
      const own = ended(this.#typeUrl)
      if (own.length === 0) continue
      pass(bytes.subarray(run, to))
      run = to
      for (const message of own) pass(message)
    }
    if (run < bytes.length) pass(run === 0 ? bytes : bytes.subarray(run))
  }

  #begin(length: number): void {
    this.#typeUrl = ''
    this.#inspects = true
    this.#scan.begin(length)
  }

  #inspect(bytes: Buffer, from: number, to: number): void {
    try {
      this.#scan.take(bytes, from, to)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#inspects = false
    }
  }
}
