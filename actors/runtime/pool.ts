/** Thread pools for stateless work (piscina). A task that exceeds its deadline ends its own thread only. */
import { Piscina } from 'piscina'
import { usualYoungMib } from './spawn.ts'

/** A pool of threads. */
export interface Pool {
  /** Runs a task. Rejects when it fails, its thread ends, or it exceeds the deadline. A task without a deadline may share its thread. */
  run<Answer>(task: unknown, deadlineMs?: number): Promise<Answer>
  /** Closes the pool after the queued tasks are done. */
  finish(): Promise<void>
  /** Closes the pool and aborts its tasks, at once. Resolves when the threads have ended, which blocked ones do later. */
  destroy(): Promise<void>
}

/**
 * The size of a pool. `kept`: the number of threads that stay; other idle threads end after ten seconds. `atOnce`: the number of tasks
 * without a deadline that share a thread. `heapMib`: the maximum size of a thread's heap, without its young generation of at most 6 MiB; a
 * thread that needs more ends.
 */
export interface PoolSize {
  readonly threads: number
  readonly kept?: number
  readonly queue: number
  readonly atOnce?: number
  readonly heapMib?: number
}

/** Creates a pool for a task module, whose default export is the task. */
export function createPool(module: URL, { threads, kept = 0, queue, atOnce = 1, heapMib }: PoolSize): Pool {
  // With atomics, piscina blocks idle threads in Atomics.wait, which stops their asynchronous work.
  const pool = new Piscina({
    filename: module.href,
    minThreads: kept,
    maxThreads: threads,
    maxQueue: queue,
    concurrentTasksPerWorker: atOnce,
    idleTimeout: 10_000,
    atomics: 'disabled',
    ...(heapMib === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: usualYoungMib } }),
  })
  // An error of a thread without a task concerns nobody; piscina would end the process.
  pool.on('error', () => undefined)
  return {
    run: (task, deadlineMs) => pool.run(task, deadlineMs === undefined ? {} : { signal: AbortSignal.timeout(deadlineMs) }),
    finish: () => pool.close(),
    destroy: () => pool.destroy(),
  }
}
