/** Tells a signal from its copy, where a signal may come by two ways. */

/** `direct`: sent to this process. `passed`: sent to its wrapper, which passes it on. */
export type Way = 'direct' | 'passed'

/** How long after a signal its copy may come by the other way, in milliseconds. */
const copyMs = 1000

/**
 * A signal to the whole process group comes directly and, once more, through the wrapper; one to either process comes by one way
 * only. A signal is the copy of one of the same name that came by the other way at most a second before and has no copy yet.
 */
export class SignalCopies {
  readonly #now: () => number
  /** Signals of the last second that have no copy yet, oldest first. */
  #single: { readonly signal: string; readonly way: Way; readonly at: number }[] = []

  /** `now` gives milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Notes a signal that came now. Returns whether it is a copy. */
  isCopy(signal: string, way: Way): boolean {
    const at = this.#now()
    this.#single = this.#single.filter((known) => at - known.at <= copyMs)
    const original = this.#single.findIndex((known) => known.signal === signal && known.way !== way)
    if (original < 0) this.#single.push({ signal, way, at })
    else this.#single.splice(original, 1)
    return original >= 0
  }
}
