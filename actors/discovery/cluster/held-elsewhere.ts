/** Which other clusters ready replicas of discovery have, for one that starts and cannot read them (docs/operation.md, J5). */
import { monotonicMs } from '../../runtime/clock.ts'

/** For how long an answer of the other replicas counts, in milliseconds. */
const countsMs = 5000

/** The clusters that ready replicas have, as far as they have answered. */
export interface HeldClusters {
  readonly ids: readonly string[]
  /** Whether all that live have answered: one that has not may have any. */
  readonly isWhole: boolean
}

/** Asks the other replicas. */
export type AskHeld = () => Promise<HeldClusters>

/** What the other replicas have answered last. */
export class HeldElsewhere {
  readonly #ask: AskHeld | undefined
  readonly #answered: () => void
  #ids: ReadonlySet<string> = new Set()
  #isWhole = true
  #until = Number.NEGATIVE_INFINITY
  #isAsking = false

  /** `ask`: asks the others for the clusters that those of them have that are ready; undefined: there are none. `answered`: called after each answer. */
  constructor(ask: AskHeld | undefined, answered: () => void) {
    this.#ask = ask
    this.#answered = answered
  }

  /** Until when the last answer counts, in monotonic milliseconds. */
  get until(): number {
    return this.#until
  }

  /** Whether a ready replica has a cluster, by the last answer, or one that has not answered may have it. */
  has(id: string): 'yes' | 'maybe' | 'no' {
    return this.#ids.has(id) ? 'yes' : this.#isWhole ? 'no' : 'maybe'
  }

  /** Forgets the last answer: nothing waits any more. */
  forget(): void {
    this.#ids = new Set()
    this.#isWhole = true
  }

  /** Asks, unless the last answer counts still. Returns whether an answer is waited for. */
  asks(): boolean {
    if (this.#isAsking || !this.#ask || monotonicMs() < this.#until) return this.#isAsking
    this.#isAsking = true
    void this.#ask()
      .catch((): HeldClusters => ({ ids: [], isWhole: false }))
      .then(({ ids, isWhole }) => {
        this.#isAsking = false
        this.#ids = new Set(ids)
        this.#isWhole = isWhole
        this.#until = monotonicMs() + countsMs
        this.#answered()
      })
    return true
  }
}
