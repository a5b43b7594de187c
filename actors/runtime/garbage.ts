/** The heap of the calling thread, and collecting its garbage at a chosen moment. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Sizes in bytes: of the objects in the heap, and of these with the memory outside of it that they hold (buffers). */
export interface HeapSize {
  readonly inHeap: number
  readonly all: number
}

/** Returns how much the heap of this thread holds, garbage included. */
export function heapSize(): HeapSize {
  const { used_heap_size: inHeap, external_memory: buffers } = getHeapStatistics()
  return { inHeap, all: inHeap + buffers }
}

/** How thoroughly: one collection, or as many as find something, after which free pages are returned to the operating system. */
type Flavor = 'regular' | 'last-resort'

let known: ((options: { type: 'major'; execution: 'sync'; flavor: Flavor }) => void) | undefined

/** Collects all garbage of this thread before it returns: about a millisecond per MiB that is in use, several times that as a last resort. */
export function collectGarbage(flavor: Flavor): void {
  if (known === undefined) {
    // Only contexts created after this have the function. The flag applies to the whole process and stays set, because another thread may
    // be between these two lines.
    setFlagsFromString('--expose-gc')
    known = runInNewContext('gc') as NonNullable<typeof known>
  }
  known({ type: 'major', execution: 'sync', flavor })
}
