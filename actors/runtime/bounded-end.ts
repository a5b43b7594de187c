/** The end of a process whose parts may not end: a connection whose peer stands still, a thread that does not stop. */
import { after } from './timers.ts'

/**
 * Resolves when all parts have ended, or after `ms` milliseconds. `failed` is called with the name of each part that has not ended by then, or ended with an
 * error, and the reason: the process ends without it.
 */
export async function boundedEnd(
  parts: Readonly<Record<string, Promise<unknown> | undefined>>,
  ms: number,
  failed: (part: string, reason: string) => void,
): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = after(ms, over.resolve)
  await Promise.all(
    Object.entries(parts).map(async ([part, end]) => {
      try {
        const isLate = await Promise.race([end?.then(() => false), over.promise.then(() => true)])
        if (isLate) failed(part, `it has not ended after ${ms / 1000} s`)
      } catch (error) {
        failed(part, (error as Error).message)
      }
    }),
  )
  timer.cancel()
}
