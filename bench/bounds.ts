/** Limits on a run: a run that takes too long or too much memory ends with an error instead of exhausting the machine. */
import { setTimeout as pause } from 'node:timers/promises'
import { type DiscoveryServer, processUsage } from './server.ts'

/** The maximum duration of one step in seconds, and the maximum resident memory of the server in MiB. */
export interface Bounds {
  readonly seconds: number
  readonly mib: number
}

/** Thrown when a run exceeds its limits. The message names the step and the limit. */
export class OverBounds extends Error {}

/** The interval between two checks of the server, in milliseconds. */
const lookMs = 250

/**
 * Resolves with the result of a step. Rejects with {@link OverBounds} when the step takes too long, or when the server uses too much memory
 * or exits meanwhile.
 */
export async function within<T>({ seconds, mib }: Bounds, server: DiscoveryServer, step: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    const began = performance.now()
    timer = setInterval(() => {
      if ((performance.now() - began) / 1000 > seconds) return reject(new OverBounds(`${step} took more than ${seconds} s`))
      const rss = server.isRunning ? processUsage(server.pid).rss : undefined
      if (rss === undefined) reject(new OverBounds(`the server ended during ${step}`))
      else if (rss > mib) reject(new OverBounds(`the server was resident with more than ${mib} MiB during ${step}`))
    }, lookMs)
  })
  try {
    return await Promise.race([work, over])
  } finally {
    clearInterval(timer)
  }
}

/** The server is idle when it spends at most `restCpu` CPU seconds within `restMs` milliseconds. */
const restMs = 500
const restCpu = 0.01

/** Resolves when the server is idle. */
export async function atRest(server: DiscoveryServer): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY; ; ) {
    const { cpu } = processUsage(server.pid)
    if (cpu - before <= restCpu) return
    before = cpu
    await pause(restMs)
  }
}
