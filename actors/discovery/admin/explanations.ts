/**
 * Explains resources of proxies, and where these send requests, on a thread of its own, and makes dry runs on another one. A thread ends ten seconds
 * after the last of its tasks.
 */
import type { DryRun, DryRunInput } from '../../../protocols/messages/dry-run.ts'
import type { Explained, ExplainInput, Routing, RoutingInput } from '../../../protocols/messages/explain.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'

/** Maximum time of an explanation, the start of the thread included, in milliseconds; below the deadline of questions. */
const deadlineMs = 4500
/** Maximum number of explanations that wait for their turn. */
const mostWaiting = 8
/** Maximum heap of the thread, in MiB. */
const heapMib = 512

/** The same of dry runs. One of 10,000 services and 200 proxies takes 8 s of CPU time and 400 MiB. */
const ofDryRuns = { deadlineMs: 50_000, queue: 1, heapMib: 3072 }

/** The threads that explain. */
export class Explanations {
  #pool: Pool | undefined
  #dryRuns: Pool | undefined

  /** Explains a resource. Rejects when it takes too long, or too many others wait. */
  explain(input: ExplainInput): Promise<Explained> {
    return this.#run(input)
  }

  /** Says where a proxy sends a request. Rejects when it takes too long, or too many others wait. */
  route(input: RoutingInput): Promise<Routing> {
    return this.#run(input)
  }

  /** Makes a dry run. Rejects when it takes too long, needs too much memory, or one more waits. */
  dryRun(input: DryRunInput): Promise<DryRun> {
    const { deadlineMs: longest, ...size } = ofDryRuns
    this.#dryRuns ??= createPool(taskModule('dry-run-task'), { threads: 1, ...size })
    return this.#dryRuns.run<DryRun>(input, longest)
  }

  #run<Answer>(input: ExplainInput | RoutingInput): Promise<Answer> {
    this.#pool ??= createPool(taskModule('explain-task'), { threads: 1, queue: mostWaiting, heapMib })
    return this.#pool.run<Answer>(input, deadlineMs)
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    await Promise.all([this.#pool?.destroy(), this.#dryRuns?.destroy()])
  }
}

const taskModule = (name: string): URL => new URL(`./${name}${import.meta.url.slice(-3)}`, import.meta.url)
