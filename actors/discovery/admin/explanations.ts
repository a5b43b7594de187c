/** Explains resources of proxies on a thread of its own, which ends ten seconds after the last explanation. */
import type { Explained, ExplainInput } from '../../../protocols/messages/explain.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'

/** Maximum time of an explanation, the start of the thread included, in milliseconds; below the deadline of questions. */
const deadlineMs = 4500
/** Maximum number of explanations that wait for their turn. */
const mostWaiting = 8
/** Maximum heap of the thread, in MiB. */
const heapMib = 512

/** The thread that explains. */
export class Explanations {
  #pool: Pool | undefined

  /** Explains a resource. Rejects when it takes too long, or too many others wait. */
  explain(input: ExplainInput): Promise<Explained> {
    const module = new URL(`./explain-task${import.meta.url.slice(-3)}`, import.meta.url)
    this.#pool ??= createPool(module, { threads: 1, queue: mostWaiting, heapMib })
    return this.#pool.run<Explained>(input, deadlineMs)
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    await this.#pool?.destroy()
  }
}
