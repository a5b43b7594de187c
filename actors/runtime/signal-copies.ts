/** Recognizes duplicates of a signal that arrives both directly and through the wrapper process. */

/** `direct`: sent to this process. `passed`: sent to the wrapper and forwarded. */
export type Way = 'direct' | 'passed'

/** Maximum delay between a signal and its duplicate, in milliseconds. */
const copyMs = 1000

/**
 * A signal to the whole process group arrives directly and again through the wrapper; a signal to one of the two processes arrives once.
 * A signal is a duplicate of one with the same name that arrived the other way at most a second before and has no duplicate yet.
 */
export class SignalCopies {
  readonly #now: () => number
  /** Signals of the last second without a duplicate, oldest first. */
  #single: { readonly signal: string; readonly way: Way; readonly at: number }[] = []

  /** `now` returns monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Records a signal that arrives now. Returns whether it is a duplicate. */
  isCopy(signal: string, way: Way): boolean {
    const at = this.#now()
    this.#single = this.#single.filter((known) => at - known.at <= copyMs)
    const original = this.#single.findIndex((known) => known.signal === signal && known.way !== way)
    if (original < 0) this.#single.push({ signal, way, at })
    else this.#single.splice(original, 1)
    return original >= 0
  }
}
