/** Decides when a slow response loses its permit. Also declares how much is sent before a permit is needed (docs/resources.md, Q2). */

/**
 * The number of bytes sent without a permit to a proxy that has not yet shown that it reads, after which the proxy waits for a permit. It
 * is twice the initial window of HTTP/2, so the bytes are accepted only if the client reads and grants more.
 */
export const trialBytes = 131_072

/** A permit is released early when its stream made no progress for this long, in milliseconds. */
const stillMs = 500
/** A permit is also released early when the response takes longer than `times` its length at the median pace plus `ms` milliseconds. */
const slower = { times: 4, ms: 500 }
/** The number of responses that the median is taken over, and the minimum length in bytes of a response that is counted. */
const samples = { count: 64, bytes: 16_384 }
/**
 * The assumed pace, in milliseconds a byte, before any response was recorded: 2 MB a second. Without it the first clients could keep all
 * permits by reading arbitrarily slowly.
 */
const assumedPace = 1 / 2000

/** The pace at which the streams of a writer deliver responses. */
export class PermitTimeout {
  readonly #msPerByte: number[] = [assumedPace]
  #next = 0
  #median: number | undefined

  /** Records that a response of `bytes` bytes was delivered within `ms` milliseconds. */
  record(ms: number, bytes: number): void {
    if (bytes < samples.bytes) return
    this.#msPerByte[this.#next] = ms / bytes
    this.#next = (this.#next + 1) % samples.count
    this.#median = undefined
  }

  /**
   * Whether a response loses its permit. `elapsed`: milliseconds since it began; `still`: milliseconds since its last progress; `bytes`:
   * its length.
   */
  isOver({ elapsed, still, bytes }: { elapsed: number; still: number; bytes: number }): boolean {
    return still >= stillMs || elapsed > slower.times * this.#pace() * bytes + slower.ms
  }

  #pace(): number {
    this.#median ??= this.#msPerByte.toSorted((one, other) => one - other)[this.#msPerByte.length >> 1] as number
    return this.#median
  }
}
