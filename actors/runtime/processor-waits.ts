/** How long threads of this process waited for a processor, as Linux shows it (`/proc/<process>/task/<thread>/schedstat`). */
import { readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { readKernelFile } from './kernel-file.ts'

/** The id that the system has for the calling thread; undefined where it does not tell. */
export function systemThreadId(): number | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const id = Number(basename(readlinkSync('/proc/thread-self')))
    return Number.isSafeInteger(id) ? id : undefined
  } catch {
    return undefined
  }
}

/**
 * How long a thread could have run but had no processor since its start, in milliseconds. Undefined when that is not known. The time of a
 * wait that is not over is not counted yet.
 */
export function processorWaitMs(threadId: number): number | undefined {
  try {
    // CPU time, waiting time (both in nanoseconds), and the number of times that the thread got a processor.
    const nanoseconds = Number(readKernelFile(`/proc/self/task/${threadId}/schedstat`).split(' ')[1])
    return Number.isFinite(nanoseconds) ? nanoseconds / 1e6 : undefined
  } catch {
    return undefined
  }
}
