/**
 * Detects hung actors. An actor on a worker thread is pinged at each beat; an actor whose event loop is blocked does not answer. Only
 * time during which the watching thread itself runs is counted, so that a stopped process or a busy watching thread ends no actor, and of
 * the time in which the actor's thread had no processor only a part, so that a busy machine ends none. An actor that shares the watching
 * thread cannot be watched.
 */

/** Timeouts in milliseconds; infinite means none. */
export interface WatchPolicy {
  /** Timeout of the answer to a ping. */
  readonly deadline: number
  /** Timeout of the start of an actor, including the loading of its modules. */
  readonly startDeadline: number
}

/** The part of the time without a processor that is counted: an actor that loops for ever is ended on a busy machine too, later. */
const countedOfWaiting = 0.25

/** Returns the policy for a timeout in milliseconds; 0 disables the watchdog. */
export function watchPolicy(deadline: number): WatchPolicy {
  const limit = deadline > 0 ? deadline : Number.POSITIVE_INFINITY
  return { deadline: limit, startDeadline: Math.max(60_000, 6 * limit) }
}

/** Milliseconds between two beats: a quarter of the timeout. */
export function beatInterval({ deadline }: WatchPolicy): number {
  return deadline / 4
}

/** Liveness of one actor. */
export class Liveness {
  readonly #policy: WatchPolicy
  #started = false
  #asked = false
  /** How long the actor has not answered a ping, or has been starting, in milliseconds. */
  silentMs = 0

  constructor(policy: WatchPolicy) {
    this.#policy = policy
  }

  /** The actor has started. */
  started(): void {
    this.#started = true
    this.silentMs = 0
  }

  /** The actor answered a ping. */
  answered(): void {
    this.#asked = false
    this.silentMs = 0
  }

  /**
   * Called at each beat with the milliseconds since the one before, and those of them in which the actor's thread waited for a processor.
   * Returns the action that is due: ping the actor (`ask`), end it, or wait.
   */
  beat(elapsedMs: number, waitedMs = 0): 'ask' | 'end' | 'wait' {
    if (this.#started && !this.#asked) {
      this.#asked = true
      return 'ask'
    }
    this.silentMs += elapsedMs - Math.min(elapsedMs, waitedMs) * (1 - countedOfWaiting)
    return this.silentMs >= (this.#started ? this.#policy.deadline : this.#policy.startDeadline) ? 'end' : 'wait'
  }
}
