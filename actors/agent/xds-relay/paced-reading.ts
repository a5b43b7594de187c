/** Reads one HTTP/2 stream. Reading pauses under back-pressure, and for a while when data arrives in very many small frames. */
import type { Readable } from 'node:stream'
import { FrameBudget } from '../../../src/xds/stream/frames.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after } from '../../runtime/timers.ts'

/** The paced reading of one stream. */
export class PacedReading {
  readonly #stream: Readable
  readonly #budget = new FrameBudget(monotonicMs())
  #isPaused = false
  #isHeld = false

  /** Passes the bytes of a stream to `take` as they arrive. */
  constructor(stream: Readable, take: (bytes: Buffer) => void) {
    this.#stream = stream
    stream.on('data', (bytes: Buffer) => {
      const wait = this.#budget.spend(bytes.length, monotonicMs)
      if (wait > 0) this.#hold(wait)
      take(bytes)
    })
  }

  /** Stops reading until {@link resume}. */
  pause(): void {
    this.#isPaused = true
    this.#stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isHeld) this.#stream.resume()
  }

  #hold(ms: number): void {
    this.#isHeld = true
    this.#stream.pause()
    after(ms, () => {
      this.#isHeld = false
      if (!this.#isPaused) this.#stream.resume()
    }).unref()
  }
}
