/** A resource in a writer: its name, its version, and its encoded bytes. */

/** An encoded resource. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** Slices of memory. Concatenated, they are one element of `resources` in a response. */
  readonly chunks: readonly Buffer[]
  readonly length: number
  /** Copies the bytes to an offset of a buffer and returns the offset after them. */
  copyTo(target: Buffer, offset: number): number
}

/** Creates an entry from its slices, of which there may be any number. */
export function entryOf({ name, version }: Pick<Entry, 'name' | 'version'>, chunks: readonly Buffer[]): Entry {
  return {
    name,
    version,
    chunks,
    length: chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    copyTo: (target, offset) => chunks.reduce((at, chunk) => at + chunk.copy(target, at), offset),
  }
}

/**
 * An entry that is one slice of a slab. Most entries are, and a writer has tens of thousands of them: the view of the slice is created when
 * the entry is written.
 */
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

  copyTo(target: Buffer, offset: number): number {
    return offset + this.#slab.copy(target, offset, this.#offset, this.#offset + this.length)
  }
}
