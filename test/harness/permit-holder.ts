/**
 * A worker thread that acquires and releases permits in a loop. It counts in shared words: the maximum number of permits that were held at
 * the same time, and how often a permit was acquired.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { SharedPermits } from '../../src/push/pacing/permits.ts'

const { shared, writer, most, out } = workerData as { shared: SharedArrayBuffer; writer: number; most: number; out: SharedArrayBuffer }
const permits = new SharedPermits(shared, writer, most, () => performance.timeOrigin + performance.now())
const words = new Int32Array(out)
const held = new Int32Array(shared)
const countHeld = () => {
  let sum = 0
  for (let at = 1; at < held.length; at += 3) sum += Atomics.load(held, at) & 0xffff
  return sum
}

// A pending wait for a permit does not keep the thread alive, the listener does.
parentPort?.on('message', () => undefined)
for (;;) {
  const since = permits.want()
  if (!permits.acquire()) {
    await new Promise<void>((resolve) => permits.whenFreed(since, resolve))
    continue
  }
  Atomics.add(words, 2, 1)
  // A thread that acquires a permit too many releases it again, so that a sum may be too high for a moment; the minimum of three readings
  // is used.
  const seen = Math.min(countHeld(), countHeld(), countHeld())
  if (seen > Atomics.load(words, 1)) Atomics.store(words, 1, seen)
  permits.release()
}
