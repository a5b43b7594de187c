/** Bounds the young generation of the main thread's heap. That of an actor's thread is bounded when it starts (`spawn.ts`). */
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** The size that it may grow to, in bytes. A load whose objects survive some collections takes 0.29 s with it, 0.25 s with 128 MiB, 0.50 s with 16. */
const mostBytes = 32 * 2 ** 20

/**
 * Lets the young generation of this thread's heap grow to 32 MiB. V8 doubles it up to 128 MiB while many objects survive collections, as
 * with thousands of calls that wait, and has a bound for it on the command line only. Here each collection is followed by a look at its
 * size, and growth stops for the whole process while it is at the bound: that of other threads stays as it is then.
 */
export function boundYoungGeneration(): void {
  let isStopped = false
  new PerformanceObserver(() => {
    const isAtBound = youngBytes() >= mostBytes
    if (isAtBound === isStopped) return
    isStopped = isAtBound
    setFlagsFromString(`--semi-space-growth-factor=${isStopped ? 1 : 2}`)
  }).observe({ entryTypes: ['gc'] })
}

const youngBytes = (): number => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
