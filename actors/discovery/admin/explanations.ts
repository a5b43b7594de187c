/**
 * Explains resources of proxies, and where these send requests, on a thread of its own, and makes dry runs on another one. A thread ends ten seconds
 * after the last of its tasks.
 */
import type { DryRun, DryRunInput } from '../../../protocols/messages/dry-run.ts'
import type { Explained, ExplainInput, Routing, RoutingInput } from '../../../protocols/messages/explain.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'
import { within } from '../../runtime/timers.ts'
import { Unavailable } from './unavailable.ts'

/** Maximum time of an explanation, the start of the thread included, in milliseconds; below the deadline of questions. */
const deadlineMs = 4500
/** Maximum number of explanations that wait for their turn. */
const mostWaiting = 8
/** Maximum heap of the thread, in MiB. */
const heapMib = 512

/** The same of dry runs. One of 10,000 services and 200 proxies takes 8 s of CPU time and 400 MiB. */
const ofDryRuns = { deadlineMs: 50_000, queue: 1, heapMib: 3072 }

/** Thrown when an answer takes longer than its bound. The first one waits for the start of its thread, so that the next may be in time. */
export class Overdue extends Unavailable {
  constructor(what: string, ms: number) {
    super(`${what} took longer than ${ms / 1000} s: ask again`)
  }
}

/** The threads that explain. `longestMs`: the maximum time of an explanation, in milliseconds. */
export class Explanations {
  readonly #longestMs: number
  #pool: Pool | undefined
  #dryRuns: Pool | undefined

  constructor(longestMs = deadlineMs) {
    this.#longestMs = longestMs
  }

  /** Explains a resource. Rejects with {@link Overdue} when it takes too long, otherwise when it fails, or too many others wait. */
  explain(input: ExplainInput): Promise<Explained> {
    return this.#run(input)
  }

  /** Says where a proxy sends a request. Rejects with {@link Overdue} when it takes too long, otherwise when it fails, or too many others wait. */
  route(input: RoutingInput): Promise<Routing> {
    return this.#run(input)
  }

  /** Makes a dry run. Rejects with {@link Overdue} when it takes too long, otherwise when it fails, needs too much memory, or one more waits. */
  dryRun(input: DryRunInput): Promise<DryRun> {
    const { deadlineMs: longest, ...size } = ofDryRuns
    this.#dryRuns ??= createPool(taskModule('dry-run-task'), { threads: 1, ...size })
    return inTime('the dry run', longest, this.#dryRuns.run<DryRun>(input, longest))
  }

  async #run<Answer>(input: ExplainInput | RoutingInput): Promise<Answer> {
    this.#pool ??= createPool(taskModule('explain-task'), { threads: 1, queue: mostWaiting, heapMib })
    const until = monotonicMs() + this.#longestMs
    // An explanation that is overdue ends its thread; one that still starts goes on, so that it is there for whoever asks again.
    await within(this.#longestMs, this.#pool.run(undefined))
    return inTime('the explanation', this.#longestMs, this.#pool.run<Answer>(input, Math.max(1, Math.ceil(until - monotonicMs()))))
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    await Promise.all([this.#pool?.destroy(), this.#dryRuns?.destroy()])
  }
}

/** The answer of a thread; names what was not done in time, of which the thread says only that it was aborted. */
async function inTime<Answer>(what: string, ms: number, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? new Overdue(what, ms) : error
  }
}

const taskModule = (name: string): URL => new URL(`./${name}${import.meta.url.slice(-3)}`, import.meta.url)
