/** Which other clusters ready replicas of discovery have, for one that starts and cannot read them (docs/operation.md, J5). */
import { monotonicMs } from '../../runtime/clock.ts'

/** For how long an answer of the other replicas counts, in milliseconds. */
const countsMs = 5000

/** What the other replicas have answered last. */
export class HeldElsewhere {
  readonly #ask: (() => Promise<readonly string[]>) | undefined
  readonly #answered: () => void
  #ids: ReadonlySet<string> = new Set()
  #until = Number.NEGATIVE_INFINITY
  #isAsking = false

  /** `ask`: asks the others for the clusters that those of them have that are ready; undefined: there are none. `answered`: called after each answer. */
  constructor(ask: (() => Promise<readonly string[]>) | undefined, answered: () => void) {
    this.#ask = ask
    this.#answered = answered
  }

  /** Until when the last answer counts, in monotonic milliseconds. */
  get until(): number {
    return this.#until
  }

  /** Whether a ready replica has a cluster, by the last answer. */
  has(id: string): boolean {
    return this.#ids.has(id)
  }

  /** Forgets the last answer: nothing waits any more. */
  forget(): void {
    this.#ids = new Set()
  }

  /** Asks, unless the last answer counts still. Returns whether an answer is waited for. */
  asks(): boolean {
    if (this.#isAsking || !this.#ask || monotonicMs() < this.#until) return this.#isAsking
    this.#isAsking = true
    void this.#ask()
      .catch(() => [])
      .then((ids) => {
        this.#isAsking = false
        this.#ids = new Set(ids)
        this.#until = monotonicMs() + countsMs
        this.#answered()
      })
    return true
  }
}
