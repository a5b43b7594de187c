/** One resource as a writer has it: its name, its version, and where its bytes are. */

/** One resource, ready to be written. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** Slices of memory; one after another they are a list element of a response. */
  readonly chunks: readonly Buffer[]
  readonly length: number
}

/** A resource of several slices, or of none. */
export function entryOf({ name, version }: Pick<Entry, 'name' | 'version'>, chunks: readonly Buffer[]): Entry {
  return { name, version, chunks, length: chunks.reduce((sum, chunk) => sum + chunk.length, 0) }
}

/** A resource that is one slice of a slab. Most are, and a writer has tens of thousands of them: its buffer is made when it is written. */
export class SliceEntry implements Entry {
  readonly name: string
  readonly version: string
  readonly length: number
  readonly #slab: Buffer
  readonly #offset: number

  constructor({ name, version }: Pick<Entry, 'name' | 'version'>, slab: Buffer, offset: number, length: number) {
    this.name = name
    this.version = version
    this.length = length
    this.#slab = slab
    this.#offset = offset
  }

  get chunks(): readonly Buffer[] {
    return [this.#slab.subarray(this.#offset, this.#offset + this.length)]
  }
}
