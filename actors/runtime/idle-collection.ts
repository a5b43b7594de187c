/** Returns unused memory of an idle thread to the operating system. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { every, type Timer } from './timers.ts'

/** Interval between two checks of a thread, in milliseconds. */
const checkMs = 10_000
/** Maximum share of time that an idle thread is busy between two checks: scrapes and watchdog pings take some. */
const restShare = 0.02
/** Minimum growth since the last collection that justifies another one: this share of the size after the last one. */
const worthShare = 0.25
/** The same minimum in bytes, for small heaps. It is smaller for a thread that has been idle for longer, where a collection disturbs nothing. */
const worthBytes = 12 * 2 ** 20
const worthAtLengthBytes = 2 * 2 ** 20
/** Number of consecutive idle checks after which a thread counts as idle for longer. */
const atLength = 2
/**
 * Maximum heap size for collections here, in bytes: larger heaps are left to V8, because a collection blocks the thread for about a
 * millisecond per MiB.
 */
const defaultMost = 256 * 2 ** 20

/**
 * Collects the garbage of this thread whenever it was idle between two checks and enough has accumulated. V8 collects only on allocation,
 * so a thread that becomes idle after a storm would keep its garbage and free pages for good. `everyMs`: interval of the checks.
 * `maxBytes`: heaps larger than this are not collected.
 */
export function collectGarbageWhenIdle(everyMs = checkMs, maxBytes = defaultMost): Timer {
  let since = performance.eventLoopUtilization()
  let kept = 0
  let rests = 0
  return every(everyMs, () => {
    const { utilization } = performance.eventLoopUtilization(since)
    since = performance.eventLoopUtilization()
    const { used_heap_size: inHeap, external_memory: buffers } = getHeapStatistics()
    const used = inHeap + buffers
    rests = utilization > restShare ? 0 : rests + 1
    if (rests === 0 || inHeap > maxBytes) return
    if (used - kept < Math.max(rests < atLength ? worthBytes : worthAtLengthBytes, kept * worthShare)) return
    collect()
    const left = getHeapStatistics()
    kept = left.used_heap_size + left.external_memory
  }).unref()
}

let known: ((options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void) | undefined

/** Runs a full collection and returns free pages. */
function collect(): void {
  if (known === undefined) {
    // Only contexts created after this have the function. The flag applies to the whole process and stays set, because another thread may
    // be between these two lines.
    setFlagsFromString('--expose-gc')
    known = runInNewContext('gc') as NonNullable<typeof known>
  }
  known({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
