/** Waiting for conditions. */
import { setTimeout as pause } from 'node:timers/promises'

/**
 * The pause between two looks, in milliseconds: three times as long as a look takes, within bounds. One that runs a command costs a tenth of a second of CPU,
 * there and at the server that it asks, and what is waited for needs that CPU.
 */
const [shortest, longest] = [20, 500]

/**
 * How long a machine may need for what takes seconds on a free one, in milliseconds: a busy one starts a process in half a minute, and a rollout starts
 * several in a row. Nothing is judged by it, it only has a test end at all.
 */
export const patienceMs = 200_000

/** Waits until a condition holds; exceptions count as "not yet". Throws after `deadlineMs` with the last exception. */
export async function until(what: string, condition: () => Promise<boolean> | boolean, deadlineMs = patienceMs): Promise<void> {
  const deadline = performance.now() + deadlineMs
  let last: unknown
  for (;;) {
    const began = performance.now()
    try {
      if (await condition()) return
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause: last })
    await pause(Math.min(longest, Math.max(shortest, 3 * (performance.now() - began))))
  }
}
