/** Returns unused memory of a thread with no or little work to the operating system. */
import { loopTimes, threadCpuMs } from './clock.ts'
import { collectGarbage, heapSize } from './garbage.ts'
import { every, type Timer } from './timers.ts'

/** Interval between two checks of a thread, in milliseconds. */
const checkMs = 10_000
/**
 * Maximum share of CPU time between two checks of a thread that is idle, since scrapes and watchdog pings take some, and of one with little
 * work.
 */
const shares = { idle: 0.02, littleWork: 0.25 }
/** Minimum growth since the last collection that justifies another one: this share of the size after the last one. */
const worthShare = { idle: 0.25, littleWork: 1 }
/** The same minimum in bytes, for small heaps. It is smaller for a thread that has been idle for longer, where a collection disturbs nothing. */
const worthBytes = { idle: 12 * 2 ** 20, idleAtLength: 2 * 2 ** 20, littleWork: 16 * 2 ** 20 }
/** Number of consecutive idle checks after which a thread counts as idle for longer. */
const atLength = 2
/**
 * Maximum heap size for collections here, in bytes: larger heaps are left to V8, because a collection blocks the thread for about a
 * millisecond per MiB. V8 does not mark heaps at all that are below the size for a thread with little work (`initialHeapMb`).
 */
const defaultMost = { idle: 256 * 2 ** 20, littleWork: 96 * 2 ** 20 }

/**
 * Collects the garbage of this thread whenever it had no or little work between two checks and enough has accumulated. V8 collects only on
 * allocation, so a thread that becomes idle after a storm would keep its garbage and free pages for good, and one with little work for long.
 * `everyMs`: interval of the checks. `most`: heaps larger than this are not collected.
 */
export function collectGarbageWhenIdle(everyMs = checkMs, most = defaultMost): Timer {
  const share = shareOfTime()
  // A collection beside work leaves what the work still needs, and is no reason to skip the first one after it.
  const kept = { idle: 0, littleWork: 0 }
  let rests = 0
  let isDue = false
  return every(everyMs, () => {
    const busy = share()
    const wasDue = isDue
    isDue = false
    rests = busy > shares.idle ? 0 : rests + 1
    if (busy > shares.littleWork) return
    const work = rests > 0 ? 'idle' : 'littleWork'
    const { inHeap, all } = heapSize()
    if (inHeap > most[work]) return
    const worth = worthBytes[rests < atLength ? work : 'idleAtLength']
    if (all - kept[work] < Math.max(worth, kept[work] * worthShare[work])) return
    // Beside work it waits for the next check: a storm of connections, which allocates much in a few seconds, may still go on.
    if (work === 'littleWork' && !wasDue) {
      isDue = true
      return
    }
    collectGarbage('last-resort')
    kept.littleWork = heapSize().all
    if (work === 'idle') kept.idle = kept.littleWork
  }).unref()
}

/**
 * Returns a function that returns which share of the time since its last call this thread used the CPU. Time in which other programs had the
 * CPU does not count.
 */
function shareOfTime(): () => number {
  let since = { ...loopTimes(), cpu: threadCpuMs() }
  return () => {
    const now = { ...loopTimes(), cpu: threadCpuMs() }
    const [active, idle, cpu] = [now.active - since.active, now.idle - since.idle, now.cpu - since.cpu]
    since = now
    return Math.min(active, cpu) / Math.max(1, active + idle)
  }
}
