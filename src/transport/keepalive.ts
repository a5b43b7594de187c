/**
 * Decides when a connection is pinged and when it is given up (`--keepaliveInterval`, `--keepaliveTimeout`). Both received bytes and
 * written bytes count as activity, because the answer to a ping may wait behind megabytes of responses.
 */
export class Keepalive {
  readonly #intervalMs: number
  readonly #timeoutMs: number
  #activity = -1
  #quietMs = 0
  #pinged = false

  constructor(intervalMs: number, timeoutMs: number) {
    this.#intervalMs = intervalMs
    this.#timeoutMs = timeoutMs
  }

  /**
   * Adds `ms` milliseconds. `activity` is a counter that grows with any activity of the connection. Returns the action that is due, if any.
   */
  check(ms: number, activity: number): 'ping' | 'give up' | undefined {
    if (activity !== this.#activity) {
      this.#activity = activity
      this.#quietMs = 0
      this.#pinged = false
      return undefined
    }
    this.#quietMs += ms
    if (this.#quietMs < (this.#pinged ? this.#timeoutMs : this.#intervalMs)) return undefined
    if (this.#pinged) return 'give up'
    this.#pinged = true
    this.#quietMs = 0
    return 'ping'
  }
}
