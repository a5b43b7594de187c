/**
 * Notices actors that hang. An actor on a thread of its own is asked for a sign of life at each beat; one whose event loop is
 * blocked does not answer. Only time that passes while the watching thread itself is awake is counted, so that a process that
 * was stopped, or a watcher that was busy, ends nobody. An actor that shares the watching thread cannot be watched from there.
 */

/** Limits in milliseconds; an infinite one is none. */
export interface WatchPolicy {
  /** How long an actor may owe an answer. */
  readonly deadline: number
  /** How long an actor may take from its start, modules included, until it is up. */
  readonly startDeadline: number
}

/** The policy for a deadline in milliseconds; 0 watches nobody. */
export function watchPolicy(deadline: number): WatchPolicy {
  const limit = deadline > 0 ? deadline : Number.POSITIVE_INFINITY
  return { deadline: limit, startDeadline: Math.max(60_000, 6 * limit) }
}

/** Milliseconds between two beats: four within the deadline. */
export function beatOf({ deadline }: WatchPolicy): number {
  return deadline / 4
}

/** What is known of the life of one actor. */
export class Pulse {
  readonly #policy: WatchPolicy
  #started = false
  #asked = false
  /** How long it has owed an answer, or has been starting, in milliseconds. */
  silentMs = 0

  constructor(policy: WatchPolicy) {
    this.#policy = policy
  }

  /** It is up. */
  started(): void {
    this.#started = true
    this.silentMs = 0
  }

  /** It gave a sign of life. */
  answered(): void {
    this.#asked = false
    this.silentMs = 0
  }

  /** So many milliseconds have passed. Says what to do: ask for a sign of life, or end it. */
  beat(elapsedMs: number): 'ask' | 'end' | 'wait' {
    if (this.#started && !this.#asked) {
      this.#asked = true
      return 'ask'
    }
    this.silentMs += elapsedMs
    return this.silentMs >= (this.#started ? this.#policy.deadline : this.#policy.startDeadline) ? 'end' : 'wait'
  }
}
