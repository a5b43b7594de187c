/** Gives the memory of a thread back once the thread is at rest. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { every, type Timer } from './timers.ts'

/** Between two looks at a thread, in milliseconds. */
const lookMs = 10_000
/** Share of the time between two looks that a thread at rest is busy at most: a scrape, and signs of life. */
const restShare = 0.02
/** Growth since the last collection, in bytes, below which none is worth its time; of a large heap, a quarter. */
const worthBytes = 12 * 2 ** 20
/** The same of a thread that has been at rest for longer, where a collection is in nobody's way. */
const worthAtLengthBytes = 2 * 2 ** 20
/** Looks that find a thread at rest, one after the other, before it counts as at rest for longer. */
const atLength = 2
/** A heap with more bytes in use is left to V8: a collection holds its thread up for about a millisecond for each MiB. */
const defaultMost = 256 * 2 ** 20

/**
 * From now on, collects the garbage of this thread each time it has been at rest from one look to the next and something is to be had.
 * V8 collects when memory is allocated, so a thread that falls silent after a storm keeps its garbage, and free pages around it, for good.
 * `everyMs` is the time between two looks; a heap with more than `mostBytes` in use is left alone.
 */
export function collectAtRest(everyMs = lookMs, mostBytes = defaultMost): Timer {
  let since = performance.eventLoopUtilization()
  let kept = 0
  let rests = 0
  return every(everyMs, () => {
    const { utilization } = performance.eventLoopUtilization(since)
    since = performance.eventLoopUtilization()
    const { used_heap_size: inHeap, external_memory: buffers } = getHeapStatistics()
    const used = inHeap + buffers
    rests = utilization > restShare ? 0 : rests + 1
    if (rests === 0 || inHeap > mostBytes) return
    if (used - kept < (rests < atLength ? Math.max(worthBytes, kept / 4) : worthAtLengthBytes)) return
    collect()
    const left = getHeapStatistics()
    kept = left.used_heap_size + left.external_memory
  }).unref()
}

let known: ((options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void) | undefined

/** Collects everything and gives free pages back. */
function collect(): void {
  if (known === undefined) {
    // Only contexts that are made from here on have the function. The flag is of the process and stays: another thread may be between these lines.
    setFlagsFromString('--expose-gc')
    known = runInNewContext('gc') as NonNullable<typeof known>
  }
  known({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
