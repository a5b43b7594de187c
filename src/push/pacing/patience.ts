/** When a response takes so long that its permit goes to another, and what is sent before there is one (docs/resources.md, Q2). */

/**
 * Bytes that a proxy of which it is not known that it reads is sent without a permit, before it may ask for one: twice what HTTP/2 lets a client be sent before it
 * grants more, which leaves whether it reads or not.
 */
export const trialBytes = 131_072

/** A permit is released early when its stream took nothing for this long, in milliseconds. */
const stillMs = 500
/** Or when the response takes this many times as long as its length takes at the median pace, and this many milliseconds more. */
const slower = { times: 4, ms: 500 }
/** Responses that the median is made of, and the bytes that one must have to say something about pace. */
const samples = { count: 64, bytes: 16_384 }
/** The pace, in milliseconds a byte, until a response was taken: 2 MB a second. Without one, the first readers could keep all permits as slowly as they like. */
const assumedPace = 1 / 2000

/** The pace at which the streams of a writer take responses. */
export class Patience {
  readonly #msPerByte: number[] = [assumedPace]
  #next = 0
  #median: number | undefined

  /** A response of so many bytes was taken within so many milliseconds. */
  record(ms: number, bytes: number): void {
    if (bytes < samples.bytes) return
    this.#msPerByte[this.#next] = ms / bytes
    this.#next = (this.#next + 1) % samples.count
    this.#median = undefined
  }

  /** Whether a response of so many bytes that is under way for `elapsed` milliseconds, the last `still` of them without progress, keeps its permit no longer. */
  isOver({ elapsed, still, bytes }: { elapsed: number; still: number; bytes: number }): boolean {
    return still >= stillMs || elapsed > slower.times * this.#pace() * bytes + slower.ms
  }

  #pace(): number {
    this.#median ??= this.#msPerByte.toSorted((one, other) => one - other)[this.#msPerByte.length >> 1] as number
    return this.#median
  }
}
