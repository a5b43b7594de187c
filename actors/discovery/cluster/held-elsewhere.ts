/**
 * What ready replicas of discovery have, for one that starts and cannot have it: other clusters (docs/operation.md, J5), certificates of its ports
 * (docs/certificates.md, V2).
 */
import type { ReplicaQuestion } from '../../../protocols/messages/replicas.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { OtherReplicas } from '../admin/other-replicas.ts'

/** For how long an answer of the other replicas counts, in milliseconds. */
const countsMs = 5000

/** The ids of what ready replicas have, as far as they have answered. */
export interface Held {
  readonly ids: readonly string[]
  /** Whether all that live have answered: one that has not may have any. */
  readonly isWhole: boolean
}

/** Asks the other replicas. */
export type AskHeld = () => Promise<Held>

/** Returns what asks the other replicas for what those of them have that are ready. */
export const askHeld =
  (others: OtherReplicas, question: ReplicaQuestion & ('heldClusters' | 'openPorts')): AskHeld =>
  async () => {
    const { answers, replicas } = await others.ask<readonly string[]>(question)
    const isWhole = others.isListed && replicas.every(({ name, answered }) => answered || others.isDead(name))
    return { ids: answers.flatMap(({ value }) => value), isWhole }
  }

/** What the other replicas have answered last. */
export class HeldElsewhere {
  readonly #ask: AskHeld | undefined
  readonly #answered: () => void
  #ids: ReadonlySet<string> = new Set()
  #isWhole = true
  #until = Number.NEGATIVE_INFINITY
  #isAsking = false

  /** `ask`: asks the others for what those of them have that are ready; undefined: there are none. `answered`: called after each answer. */
  constructor(ask: AskHeld | undefined, answered: () => void) {
    this.#ask = ask
    this.#answered = answered
  }

  /** Until when the last answer counts, in monotonic milliseconds. */
  get until(): number {
    return this.#until
  }

  /** Whether a ready replica has something, by the last answer, or one that has not answered may have it. */
  has(id: string): 'yes' | 'maybe' | 'no' {
    return this.#ids.has(id) ? 'yes' : this.#isWhole ? 'no' : 'maybe'
  }

  /** The clusters that ready replicas have, by the last answer. */
  get ids(): readonly string[] {
    return [...this.#ids]
  }

  /** Whether all that live have answered. */
  get isWhole(): boolean {
    return this.#isWhole
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
      .catch((): Held => ({ ids: [], isWhole: false }))
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
