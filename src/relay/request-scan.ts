/** Follows the requests of a proxy as they pass, to put the agent's own between two of them (docs/agent.md, X3). */
import { WireError } from '../xds/slab/wire.ts'
import { FieldScan, type Wanted } from './field-scan.ts'
import { FrameBounds } from './frame-bounds.ts'

/** The type URL of a `DiscoveryRequest` and of a `DeltaDiscoveryRequest`. */
const sotwType: Wanted = { 4: 'text' }
const deltaType: Wanted = { 2: 'text' }

/** Takes the bytes of one stream of requests. */
export class RequestScan {
  readonly #bounds = new FrameBounds()
  readonly #scan: FieldScan
  #typeUrl = ''
  /** Whether the message is looked at: not any more once its type is known, or when it is no protobuf, which is the server's to refuse. */
  #looks = false

  constructor(isDelta: boolean) {
    this.#scan = new FieldScan(isDelta ? deltaType : sotwType, (_, typeUrl) => {
      this.#typeUrl = typeUrl
      this.#looks = false
      return false
    })
  }

  /** Whether every request that has begun has ended. */
  get isBetween(): boolean {
    return this.#bounds.isBetween
  }

  /**
   * Takes bytes and passes them on. `ended` hears the type of each request that has ended, and gives the messages, with their prefixes, that
   * follow it. Throws BadFrame for a request that is compressed.
   */
  take(bytes: Buffer, pass: (bytes: Buffer) => void, ended: (typeUrl: string) => readonly Buffer[]): void {
    let run = 0
    for (const { part, from, to, begins, ends } of this.#bounds.pieces(bytes)) {
      if (begins !== undefined) this.#begin(begins)
      if (part === 'message' && this.#looks) this.#look(bytes, from, to)
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
    this.#looks = true
    this.#scan.begin(length)
  }

  #look(bytes: Buffer, from: number, to: number): void {
    try {
      this.#scan.take(bytes, from, to)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#looks = false
    }
  }
}
