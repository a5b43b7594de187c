/** Thread pools for stateless work (piscina). A task that exceeds its deadline ends its own thread only. */
import { Piscina } from 'piscina'

/** A pool of threads. */
export interface Pool {
  /** Runs a task. Rejects when it fails or exceeds the deadline. */
  run<Answer>(task: unknown, deadlineMs: number): Promise<Answer>
  /** Closes the pool after the queued tasks are done. */
  finish(): Promise<void>
  /** Closes the pool and aborts its tasks. */
  destroy(): Promise<void>
}

/**
 * Creates a pool for a task module, whose default export is the task. `kept`: the number of threads that stay; other idle threads end
 * after ten seconds.
 */
export function createPool(module: URL, size: { threads: number; kept?: number; queue: number }): Pool {
  // With atomics, piscina blocks idle threads in Atomics.wait, which stops their asynchronous work.
  const pool = new Piscina({
    filename: module.href,
    minThreads: size.kept ?? 0,
    maxThreads: size.threads,
    maxQueue: size.queue,
    idleTimeout: 10_000,
    atomics: 'disabled',
  })
  return {
    run: (task, deadlineMs) => pool.run(task, { signal: AbortSignal.timeout(deadlineMs) }),
    finish: () => pool.close(),
    destroy: () => pool.destroy(),
  }
}
