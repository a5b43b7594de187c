/** The periodic checks of all connections of a server, on one timer: a timer for each connection costs a thousand times more wake-ups. */
import { checkEvery, type Timer } from '../runtime/timers.ts'

/** A connection with a periodic check. */
interface Checked {
  check(): void
}

/** Number of timer ticks per period, and the minimum interval of the ticks in milliseconds. */
const ticks = 8
const shortestTickMs = 10

/**
 * Checks each of its members once per period or more often. The members take turns, so that one tick checks, and pings, a fraction of
 * them. There is no timer without members.
 */
export class ConnectionChecks {
  readonly #tickMs: number
  /** Share of the members that a tick checks. */
  readonly #share: number
  readonly #members = new Set<Checked>()
  /** The members left in this round. */
  #round: SetIterator<Checked> = this.#members.values()
  #timer: Timer | undefined

  constructor(periodMs: number) {
    this.#tickMs = Math.max(shortestTickMs, periodMs / ticks)
    this.#share = Math.min(1, this.#tickMs / periodMs)
  }

  add(member: Checked): void {
    this.#members.add(member)
    this.#timer ??= checkEvery(this.#tickMs, () => this.#tick()).unref()
  }

  delete(member: Checked): void {
    this.#members.delete(member)
    if (this.#members.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #tick(): void {
    for (let left = Math.ceil(this.#members.size * this.#share); left > 0; left--) this.#next()?.check()
  }

  #next(): Checked | undefined {
    const next = this.#round.next()
    if (!next.done) return next.value
    this.#round = this.#members.values()
    return this.#round.next().value
  }
}
