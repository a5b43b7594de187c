/** The restart record of one actor: when it is restarted, and its health. Times are milliseconds of any monotonic clock. */
import type { WireError } from '../../protocols/messages/errors.ts'
import { type Pauses, pauseAfter } from '../../src/model/back-off.ts'

/** Delays of restarts and their limits, in milliseconds. */
export interface RestartPolicy extends Pauses {
  /** With more ends than this within `window`, the actor counts as failing until it has run for a whole window. */
  readonly intensity: number
  readonly window: number
}

/** The policy of every actor unless a test sets another. */
export const restartPolicy: RestartPolicy = { firstMs: 50, longestMs: 10_000, intensity: 5, window: 60_000 }

/** `unstable`: the actor ended and has not run for a whole window since. `failing`: it ended more often than the policy allows. */
export type Health = 'well' | 'unstable' | 'failing'

/** Records the ends of one actor. */
export class RestartRecord {
  readonly #policy: RestartPolicy
  /** Times of the ends that still count. */
  #ends: number[] = []
  #failing = false
  #runningSince: number | undefined
  /** Number of restarts since the supervisor started. */
  restarts = 0
  lastError: WireError | undefined

  constructor(policy: RestartPolicy) {
    this.#policy = policy
  }

  /** The actor has started. */
  running(now: number): void {
    this.#runningSince = now
  }

  /** The actor ended with an error. Returns the delay before its restart, in milliseconds. */
  ended(now: number, error: WireError): number {
    this.#clearAfterWindow(now)
    this.#runningSince = undefined
    this.lastError = error
    this.restarts++
    this.#ends = [...this.#ends.filter((at) => at > now - this.#policy.window), now]
    const { longestMs, intensity } = this.#policy
    this.#failing ||= this.#ends.length > intensity
    return this.#failing ? longestMs : pauseAfter(this.#ends.length, this.#policy)
  }

  /** The health of the actor, and how often it ended within the last window or since it began to fail. */
  health(now: number): { readonly health: Health; readonly ends: number } {
    this.#clearAfterWindow(now)
    const health = this.#failing ? 'failing' : this.#ends.length > 0 ? 'unstable' : 'well'
    return { health, ends: this.#ends.length }
  }

  /** Clears the record after a window without an end. */
  #clearAfterWindow(now: number): void {
    if (this.#runningSince === undefined || now - this.#runningSince < this.#policy.window) return
    this.#ends = []
    this.#failing = false
  }
}
