/** The budget of requests to an API server: so many at once, and so many a second (`--orchestratorApiBurst`, `--orchestratorApiQPS`). */
export class RequestBudget {
  readonly #perMs: number
  readonly #burst: number
  /** The requests that may begin now. Negative: so many wait. */
  #left: number
  #at: number

  /** `perSecond` 0: there is no limit. `now`: monotonic milliseconds, as everywhere here. */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1000
    this.#burst = Math.max(1, burst)
    this.#left = this.#burst
    this.#at = now
  }

  /** Takes the place of one request. Returns the milliseconds until it may begin. */
  take(now: number): number {
    if (this.#perMs <= 0) return 0
    this.#left = Math.min(this.#burst, this.#left + Math.max(0, now - this.#at) * this.#perMs) - 1
    this.#at = now
    return this.#left >= 0 ? 0 : -this.#left / this.#perMs
  }

  /** Returns the milliseconds until a request could begin that takes its place then. */
  waitMs(now: number): number {
    if (this.#perMs <= 0) return 0
    const left = Math.min(this.#burst, this.#left + Math.max(0, now - this.#at) * this.#perMs)
    return left >= 1 ? 0 : (1 - left) / this.#perMs
  }
}
