/** Time limits for receiving one message from a peer. */
export interface MessageTimeLimits {
  /**
   * The longest time without a byte in the middle of a message, and the time that every message may take whatever its length, in
   * milliseconds.
   */
  readonly stillMs: number
  /** The minimum rate, in bytes a second, at which a message that takes longer than `stillMs` has to arrive. */
  readonly bytesPerSecond: number
}

/**
 * One minute, extended only for a message that arrives at 10 KiB a second or faster. A peer that sends a byte now and then cannot keep a
 * message open.
 */
export const messageTimeLimits: MessageTimeLimits = { stillMs: 60_000, bytesPerSecond: 10_240 }

/** Times the message that a stream is receiving. */
export class MessageTimer {
  readonly #limits: MessageTimeLimits
  #still = 0
  #elapsed = 0

  constructor(limits: MessageTimeLimits) {
    this.#limits = limits
  }

  /** Called at the first byte of a message. */
  begin(): void {
    this.#still = 0
    this.#elapsed = 0
  }

  /** Called when more bytes of the message have arrived. */
  came(): void {
    this.#still = 0
  }

  /**
   * Adds `ms` milliseconds of elapsed time. `length` is the length of the whole message in bytes. Returns whether the message has exceeded
   * a limit.
   */
  charge(ms: number, length: number): boolean {
    this.#still += ms
    this.#elapsed += ms
    const { stillMs, bytesPerSecond } = this.#limits
    return this.#still >= stillMs || this.#elapsed >= stillMs + (length / bytesPerSecond) * 1000
  }
}
