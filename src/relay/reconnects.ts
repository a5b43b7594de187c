/** When the next stream to discovery is opened after one has ended (docs/agent.md, X5). */
import type { BackOff, Pauses } from '../model/back-off.ts'

/**
 * The delays between attempts. All streams of a proxy share one back-off, so that a quick succession of streams does not overload discovery,
 * whichever side ends them.
 */
export const reconnects: Pauses = { firstMs: 500, longestMs: 10_000, jitter: 1, longestAskedMs: 60_000 }

/**
 * The longest delay while nothing at the address of discovery accepts connections, in milliseconds, and the number of failures after which it is reached. An
 * attempt costs discovery nothing then, and proxies that hear of no endpoint for longer than pods take to end lose calls.
 */
const unanswered = { longestMs: 2000, countedUpTo: 3 }

/** A stream on which discovery sent responses for at least this time is a success, in milliseconds. */
const lastingMs = 10_000

/** The end of an attempt. Times are milliseconds. */
export interface AttemptEnd {
  /** How long discovery sent responses on the stream; 0 when it never did. */
  readonly servedMs: number
  /** The delay before the next attempt that discovery asked for; 0 when it did not ask. */
  readonly askedMs: number
  /** Whether nothing at the address accepted the connection. */
  readonly isUnanswered?: boolean
}

/** Counts an attempt that ended at the monotonic time `now`, in milliseconds. `chance` is a random number from 0 to 1. */
export function countAttempt(backOff: BackOff, { servedMs, askedMs, isUnanswered }: AttemptEnd, now: number, chance: number): void {
  if (servedMs < lastingMs) return void backOff.failed(now, chance, { askedMs, ...(isUnanswered ? unanswered : {}) })
  backOff.succeeded()
  backOff.postpone(askedMs, now, chance)
}
