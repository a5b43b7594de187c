/**
 * A worker thread that takes and gives back permits without end. It counts in shared words: permits out (as far as no thread was
 * killed with one), the most that were counted at once, and how often one was taken.
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

// Waiting for a permit does not keep a thread alive.
parentPort?.on('message', () => undefined)
for (;;) {
  const since = permits.want()
  if (!permits.acquire()) {
    await new Promise<void>((resolve) => permits.whenFreed(since, resolve))
    continue
  }
  Atomics.add(words, 2, 1)
  // A thread that counts itself and then sees that it was one too many takes itself back, so a sum may be too high for a moment.
  const seen = Math.min(countHeld(), countHeld(), countHeld())
  if (seen > Atomics.load(words, 1)) Atomics.store(words, 1, seen)
  permits.release()
}
