/** Collects the garbage that refused clients leave, before V8 would. */
import { monotonicMs } from './clock.ts'
import { collectGarbage, heapSize } from './garbage.ts'

/** The heap is looked at once in so many refusals. */
const lookEvery = 256
/** Minimum growth since the last collection that justifies another one, in bytes. */
const worthBytes = 12 * 2 ** 20
/** Maximum heap size for collections here, in bytes: a larger one takes long, and V8 marks it by itself, in parallel to the work. */
const mostBytes = 96 * 2 ** 20
/** After a collection there is none for so many times as long as it took. */
const pausesForEach = 19

/**
 * State of one thread: the number of refusals, what was left of the heap after the last collection in bytes, and when the next one may be.
 */
let [refusals, keptBytes, nextMs] = [0, 0, Number.NEGATIVE_INFINITY]

/**
 * Called for each thing of a client that was made and achieved nothing: a handshake that is ended unfinished, a stream that is refused, a
 * message that is dropped. Under a load of these, objects outlive the collections of young objects and fill the heap until V8 marks it,
 * which takes up to 100 MiB a thread; the load of clients that are served must not pay for collections that are earlier than that. At most a
 * twentieth of the time is taken.
 */
export function leftGarbage(): void {
  if (++refusals % lookEvery !== 0) return
  const began = monotonicMs()
  if (began < nextMs) return
  const { inHeap, all } = heapSize()
  keptBytes = Math.min(keptBytes, all)
  if (inHeap > mostBytes || all - keptBytes < worthBytes) return
  collectGarbage('regular')
  keptBytes = heapSize().all
  const ended = monotonicMs()
  nextMs = ended + (ended - began) * pausesForEach
}
