/** When a process stands for election: while it is ready (docs/operation.md, L1 and L5). */
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { every, type Timer } from '../../runtime/timers.ts'

/** How long a process that stands for election may be not ready, and the interval at which that is looked at, in milliseconds. */
export interface UnreadyTimes {
  readonly longestMs: number
  readonly everyMs: number
}

/** The usual times. A restart of an actor takes less: a replica that gave its Leases back at each would have the duties go round. */
export const unreadyTimes: UnreadyTimes = { longestMs: 30_000, everyMs: 1000 }

/** What {@link standWhileReady} needs. */
export interface StandingParts {
  readonly elections: { stand(): void; withdraw(reason: string): Promise<void> }
  /** Whether the process is ready now. */
  readonly isReady: () => boolean
  readonly log: ScopedLogger
  readonly times: UnreadyTimes
}

/**
 * Has a process stand for election once it is ready, give its Leases back when it has not been ready for `times.longestMs` without a break, and
 * stand again when it is ready. Returns the timer that looks.
 */
export function standWhileReady({ elections, isReady, log, times }: StandingParts): Timer {
  let isStanding = false
  /** Since when a process that stands is not ready. */
  let since: number | undefined
  const look = () => {
    const now = monotonicMs()
    if (isReady()) {
      since = undefined
      if (!isStanding) elections.stand()
      isStanding = true
      return
    }
    since ??= now
    if (!isStanding || now - since < times.longestMs) return
    isStanding = false
    const reason = `this replica has not been ready for ${times.longestMs / 1000} s`
    log.warn(`${reason}: it gives its leases back, and stands for election when it is ready again`)
    void elections.withdraw(reason)
  }
  look()
  return every(times.everyMs, look).unref()
}
