import type { Keyed } from '../../protocols/messages/envelope.ts'

/**
 * A first-in, first-out queue that coalesces by key: a newer message takes the place of an older one with the same key, at
 * the end of the queue. With every message keyed by what it is about, the queue cannot outgrow the number of such things.
 */
export class Mailbox {
  readonly #entries = new Map<string, unknown>()
  #anonymous = 0
  /** Messages that were replaced before anybody took them. */
  coalesced = 0

  /** Number of messages that wait. */
  get size(): number {
    return this.#entries.size
  }

  /** Adds a message; an empty key is never replaced. */
  put([key, message]: Keyed): void {
    const own = key === '' ? `\u0000${this.#anonymous++}` : key
    if (this.#entries.delete(own)) this.coalesced++
    this.#entries.set(own, message)
  }

  /** Takes the oldest message, or undefined when there is none. */
  take(): Keyed | undefined {
    for (const [key, message] of this.#entries) {
      this.#entries.delete(key)
      return [key.startsWith('\u0000') ? '' : key, message]
    }
    return undefined
  }
}
