/** Explains resources of proxies, and where these send requests, on a thread of its own, which ends ten seconds after the last explanation. */
import type { Explained, ExplainInput, Routing, RoutingInput } from '../../../protocols/messages/explain.ts'
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
    return this.#run(input)
  }

  /** Says where a proxy sends a request. Rejects when it takes too long, or too many others wait. */
  route(input: RoutingInput): Promise<Routing> {
    return this.#run(input)
  }

  #run<Answer>(input: ExplainInput | RoutingInput): Promise<Answer> {
    const module = new URL(`./explain-task${import.meta.url.slice(-3)}`, import.meta.url)
    this.#pool ??= createPool(module, { threads: 1, queue: mostWaiting, heapMib })
    return this.#pool.run<Answer>(input, deadlineMs)
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    await this.#pool?.destroy()
  }
}
