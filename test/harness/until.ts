/** Waiting for conditions. */
import { setTimeout as pause } from 'node:timers/promises'

/** Waits until a condition holds; exceptions count as "not yet". Throws after `deadlineMs` with the last exception. */
export async function until(what: string, condition: () => Promise<boolean> | boolean, deadlineMs = 90_000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  let last: unknown
  for (;;) {
    try {
      if (await condition()) return
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause: last })
    await pause(20)
  }
}
