/** How long a message of a peer may take to come. */
export interface ArrivalLimits {
  /** Milliseconds without a byte in the middle of a message, and milliseconds that any message may take. */
  readonly stillMs: number
  /** Bytes a second that a message must come at after that. */
  readonly bytesPerSecond: number
}

/** A minute, and longer only for what comes at 10 KiB a second: a peer that sends a byte now and then cannot hold a message open. */
export const arrivalLimits: ArrivalLimits = { stillMs: 60_000, bytesPerSecond: 10_240 }

/** Times the message in whose middle a stream stands. */
export class Arrival {
  readonly #limits: ArrivalLimits
  #still = 0
  #elapsed = 0

  constructor(limits: ArrivalLimits) {
    this.#limits = limits
  }

  /** A message begins. */
  begin(): void {
    this.#still = 0
    this.#elapsed = 0
  }

  /** More of the message came. */
  came(): void {
    this.#still = 0
  }

  /** So many milliseconds passed; the message is so many bytes long. Returns whether it took too long. */
  charge(ms: number, length: number): boolean {
    this.#still += ms
    this.#elapsed += ms
    const { stillMs, bytesPerSecond } = this.#limits
    return this.#still >= stillMs || this.#elapsed >= stillMs + (length / bytesPerSecond) * 1000
  }
}
