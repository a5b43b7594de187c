/** Pools of threads for stateless work (piscina). A task that exceeds its deadline ends its thread, and nothing else. */
import { Piscina } from 'piscina'

/** A pool of threads. */
export interface Pool {
  /** Runs a task. Rejects when it fails or does not finish in time. */
  run<Answer>(task: unknown, deadlineMs: number): Promise<Answer>
  /** Ends it when the tasks that it was given are done. */
  finish(): Promise<void>
  /** Ends it, and what it is doing. */
  destroy(): Promise<void>
}

/** Makes a pool for a task module (its default export is the task). Idle threads beyond those that are kept end after ten seconds. */
export function createPool(module: URL, size: { threads: number; kept?: number; queue: number }): Pool {
  // Atomics would park idle threads in Atomics.wait and stop their asynchronous work.
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
