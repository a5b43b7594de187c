/** Bounds on a run: one that takes too long or too much memory ends with a sentence instead of taking the machine. */
import { setTimeout as pause } from 'node:timers/promises'
import { type DiscoveryServer, processUsage } from './server.ts'

/** Seconds that one step may take, and MiB that the server may be resident with. */
export interface Bounds {
  readonly seconds: number
  readonly mib: number
}

/** A run went over its bounds; the message says in which step and over which. */
export class OverBounds extends Error {}

/** Milliseconds between two looks at the server. */
const lookMs = 250

/** What a step results in. Throws {@link OverBounds} when it takes too long, or the server too much memory or an end meanwhile. */
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

/** How long the server must have spent next to nothing before it counts as at rest. */
const restMs = 500
const restCpu = 0.01

/** Resolves when the server does nothing any more. */
export async function atRest(server: DiscoveryServer): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY; ; ) {
    const { cpu } = processUsage(server.pid)
    if (cpu - before <= restCpu) return
    before = cpu
    await pause(restMs)
  }
}
