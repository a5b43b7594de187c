/**
 * When a connection is asked for a sign of life, and when it is given up (`--keepaliveInterval`, `--keepaliveTimeout`). Anything
 * that comes from the peer is one, and so is anything that leaves: the answer to a ping may wait behind megabytes.
 */
export class Keepalive {
  readonly #intervalMs: number
  readonly #timeoutMs: number
  #signs = -1
  #quietMs = 0
  #pinged = false

  constructor(intervalMs: number, timeoutMs: number) {
    this.#intervalMs = intervalMs
    this.#timeoutMs = timeoutMs
  }

  /** So many milliseconds passed; `signs` is a number that grows with each sign of life. Returns what is to be done. */
  look(ms: number, signs: number): 'ping' | 'give up' | undefined {
    if (signs !== this.#signs) {
      this.#signs = signs
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
