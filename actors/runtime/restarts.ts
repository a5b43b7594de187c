/** The record of one actor's ends: when it is started again, and how well it is. Times in milliseconds of any monotonic clock. */
import type { WireError } from '../../protocols/messages/errors.ts'

/** How restarts are paced; times in milliseconds. */
export interface RestartPolicy {
  readonly firstDelay: number
  readonly longestDelay: number
  /** More ends than this within `window` mean that restarting does not help: the actor is failing, until it has run for a whole window. */
  readonly intensity: number
  readonly window: number
}

/** The policy of every actor unless a test sets another. */
export const restartPolicy: RestartPolicy = { firstDelay: 50, longestDelay: 10_000, intensity: 5, window: 60_000 }

/** `unstable`: it ended, and has not run for a whole window since. `failing`: it ended more often than the policy allows. */
export type Health = 'well' | 'unstable' | 'failing'

/** What is remembered of an actor's ends. */
export class RestartRecord {
  readonly #policy: RestartPolicy
  /** When it ended, as far as that counts. */
  #ends: number[] = []
  #failing = false
  #runningSince: number | undefined
  /** Restarts since the supervisor began. */
  restarts = 0
  lastError: WireError | undefined

  constructor(policy: RestartPolicy) {
    this.#policy = policy
  }

  /** It has started and runs. */
  running(now: number): void {
    this.#runningSince = now
  }

  /** It ended with an error. Returns how long to wait before it is started again, in milliseconds. */
  ended(now: number, error: WireError): number {
    this.#settle(now)
    this.#runningSince = undefined
    this.lastError = error
    this.restarts++
    this.#ends = [...this.#ends.filter((at) => at > now - this.#policy.window), now]
    const { firstDelay, longestDelay, intensity } = this.#policy
    this.#failing ||= this.#ends.length > intensity
    return this.#failing ? longestDelay : Math.min(longestDelay, firstDelay * 2 ** (this.#ends.length - 1))
  }

  /** How well it is, and how often it ended within the last window, or since it was failing. */
  health(now: number): { readonly health: Health; readonly ends: number } {
    this.#settle(now)
    const health = this.#failing ? 'failing' : this.#ends.length > 0 ? 'unstable' : 'well'
    return { health, ends: this.#ends.length }
  }

  /** All is forgiven after a window without an end. */
  #settle(now: number): void {
    if (this.#runningSince === undefined || now - this.#runningSince < this.#policy.window) return
    this.#ends = []
    this.#failing = false
  }
}
