/**
 * The number of proxies that all writers of the process serve, and whether another one may be added (`PILOT_XDS_MAX_PROXIES`). Each writer
 * keeps its number in a word of shared memory and reads those of the others; a writer that starts again begins with none.
 */

/** Allocates the shared memory for the numbers of `writers` writers. */
export const proxySlotWords = (writers: number): SharedArrayBuffer => new SharedArrayBuffer(writers * Int32Array.BYTES_PER_ELEMENT)

/** The proxies of one writer. */
export class ProxySlots {
  readonly #words: Int32Array
  readonly #writer: number
  readonly #most: number

  /** `most`: the maximum number of proxies over all writers; 0: there is none. */
  constructor(shared: SharedArrayBuffer, writer: number, most: number) {
    this.#words = new Int32Array(shared)
    this.#writer = writer
    this.#most = most
    Atomics.store(this.#words, writer, 0)
  }

  /**
   * Adds a proxy. Returns whether there is room for it; if not, it is not added. Of several writers that add one at the same moment the last
   * that look find no room, so that the maximum is never exceeded.
   */
  take(): boolean {
    Atomics.add(this.#words, this.#writer, 1)
    if (this.#most === 0 || this.#sum() <= this.#most) return true
    this.free()
    return false
  }

  free(): void {
    Atomics.sub(this.#words, this.#writer, 1)
  }

  #sum(): number {
    let sum = 0
    for (let writer = 0; writer < this.#words.length; writer++) sum += Atomics.load(this.#words, writer)
    return sum
  }
}
