/** Signing on a pool of threads: calls wait in a bounded queue, callers take turns, and a thread that dies fails its own calls only. */
import { randomInt } from 'node:crypto'
import { FairQueue } from '../../../src/ca/fair-queue.ts'
import type { Validity } from '../../../src/ca/lifetime.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'
import type { JobOutcome, MadeRoot, SignerAnswer, SignerTask, SigningJob, SigningReference } from './sign-task.ts'

/** A certificate that is wanted. */
export interface WantedCertificate {
  /** Callers take turns by this name. */
  readonly caller: string
  /** A request in PEM. */
  readonly csr: string
  /** The workload that it is for; undefined for a serving certificate. */
  readonly identity: string | undefined
  /** What signs it, and how long it is valid: asked for when its turn comes. Undefined when there is nothing to sign with any more. */
  readonly grant: () => (Validity & { readonly by: SigningReference }) | undefined
}

/** `full` and `late`: more was asked for than could be done; `died`: the thread ended; `keyless`: it cannot read the key; `unready`: there is nothing to sign with. */
type Refused = 'full' | 'late' | 'died' | 'keyless' | 'unready'

/** What became of it. */
export type SigningResult =
  | (Extract<JobOutcome, { certificate: string }> & { readonly by: SigningReference; readonly notAfter: number })
  | Extract<JobOutcome, { fault: string }>
  | {
      readonly refused: Refused
      /** For the log. */
      readonly reason: string
      /** When it is worth another try, in milliseconds. */
      readonly retryAfterMs: number
    }

/** Calls that may wait, and the bytes of their requests. */
const bounds = { calls: 4096, bytes: 16_777_216 }
/** How long a call may wait for its turn, in milliseconds: whoever asked gives up after five seconds. */
const longestWait = 4000
/** How long a thread may take for what it was given, in milliseconds, its own start included; then it is ended. */
const taskDeadline = 8000
/** The same for a new root: a large RSA key takes long to find. */
const rootDeadline = 120_000
/** Most certificates that a thread is given at once: hand-overs cost less, and callers still take turns. */
const largestBatch = 16
/** Batches for each thread: while one is worked on, the next is there. */
const batchesAhead = 2
/** Bounds of what callers are told about when to try again, in milliseconds. */
const retry = { least: 250, most: 30_000 }
/** How much one batch counts in the average time of a certificate. */
const averageShare = 0.1

interface Waiting {
  readonly wanted: WantedCertificate
  readonly since: number
  readonly settle: (result: SigningResult) => void
}

/** Signs with whatever is in force when the turn of a call comes. */
export class Signing {
  readonly #threads: number
  readonly #module: URL
  #pool: Pool
  readonly #queue = new FairQueue<Waiting>(bounds)
  #running = 0
  /** Milliseconds that a thread takes for a certificate, on average. */
  #average = 1

  /** `module` is the task that threads run, if not the one beside this file. */
  constructor(threads: number, module = new URL(`./sign-task${import.meta.url.slice(-3)}`, import.meta.url)) {
    this.#threads = threads
    this.#module = module
    this.#pool = this.#newPool(0)
  }

  /** Calls that wait for their turn. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Has a certificate made. Never rejects. */
  sign(wanted: WantedCertificate): Promise<SigningResult> {
    return new Promise((settle) => {
      const dropped = this.#queue.add(wanted.caller, { wanted, since: monotonicMs(), settle }, wanted.csr.length)
      for (const one of dropped)
        one.settle(this.#refusal('full', `more than ${bounds.calls} requests, or ${bounds.bytes} bytes of them, wait to be signed`))
      this.#work()
    })
  }

  /** Makes a root and stores its key. Rejects with an Error that says why there is none. */
  async makeRoot(task: Extract<SignerTask, { type: 'make-root' }>): Promise<MadeRoot> {
    const answer = await this.#pool.run<SignerAnswer>(task, rootDeadline)
    if ('made' in answer) return answer.made
    throw new Error('error' in answer ? answer.error : 'no root was made')
  }

  /**
   * Reads the key of a plugged-in signing certificate in threads of its own, which stay though they are idle: so the key is at hand in all
   * of them when its file is changed. Rejects with an Error that says why the key cannot be used.
   */
  async adopt(by: SigningReference): Promise<Adopted> {
    const [threads, arrived] = [this.#threads, new SharedArrayBuffer(4)]
    const pool = this.#newPool(threads)
    const task: SignerTask = { type: 'adopt', by, threads, arrived }
    try {
      const answers = await Promise.all(Array.from({ length: threads }, () => pool.run<SignerAnswer>(task, taskDeadline)))
      for (const answer of answers) if ('error' in answer) throw new Error(answer.error)
    } catch (error) {
      void pool.destroy()
      throw error
    }
    return {
      use: () => {
        void this.#pool.finish()
        this.#pool = pool
      },
      drop: () => void pool.destroy(),
    }
  }

  async close(): Promise<void> {
    for (let one = this.#queue.take(); one; one = this.#queue.take()) one.settle(this.#refusal('died', 'the authority ends'))
    await this.#pool.destroy()
  }

  #newPool(kept: number): Pool {
    return createPool(this.#module, { threads: this.#threads, kept, queue: this.#threads * batchesAhead + 8 })
  }

  #work(): void {
    while (this.#running < this.#threads * batchesAhead && this.#queue.size > 0) {
      for (const batch of this.#batches()) {
        this.#running++
        void this.#run(batch).finally(() => {
          this.#running--
          this.#work()
        })
      }
    }
  }

  /** The next calls, together where the same certificate signs them. */
  #batches(): Batch[] {
    const size = Math.min(largestBatch, Math.ceil(this.#queue.size / (this.#threads * batchesAhead)))
    const batches = new Map<string, Batch>()
    const oldest = monotonicMs() - longestWait
    for (let taken = 0; taken < size; ) {
      const next = this.#queue.take()
      if (!next) break
      if (next.since < oldest) {
        next.settle(this.#refusal('late', `waited for more than ${longestWait} ms`))
        continue
      }
      const { csr, identity, grant } = next.wanted
      const granted = grant()
      if (!granted) {
        next.settle(this.#refusal('unready', 'there is nothing to sign with'))
        continue
      }
      taken++
      const { by, notBefore, notAfter } = granted
      const batch = batches.get(by.id) ?? { by, calls: [], jobs: [] }
      batches.set(by.id, batch)
      batch.calls.push(next)
      batch.jobs.push({ csr, identity, notBefore, notAfter })
    }
    return [...batches.values()]
  }

  async #run({ by, calls, jobs }: Batch): Promise<void> {
    const began = monotonicMs()
    let outcomes: readonly JobOutcome[]
    try {
      const answer = await this.#pool.run<SignerAnswer>({ type: 'sign', by, jobs } satisfies SignerTask, taskDeadline)
      if ('error' in answer) {
        const refusal = this.#refusal('keyless', answer.error)
        for (const { settle } of calls) settle(refusal)
        return
      }
      outcomes = 'outcomes' in answer ? answer.outcomes : []
    } catch (error) {
      const refusal = this.#refusal('died', `a signer thread ended: ${(error as Error).message}`)
      for (const { settle } of calls) settle(refusal)
      return
    }
    this.#average += (Math.min(1000, (monotonicMs() - began) / jobs.length) - this.#average) * averageShare
    for (const [index, { settle }] of calls.entries()) {
      const outcome = outcomes[index] as JobOutcome
      settle('fault' in outcome ? outcome : { ...outcome, by, notAfter: (jobs[index] as SigningJob).notAfter })
    }
  }

  /** Callers that are turned away together come back spread over as long again. */
  #refusal(refused: Refused, reason: string): Extract<SigningResult, { refused: string }> {
    const wait = Math.min(Math.max(retry.least, (this.#queue.size * this.#average) / this.#threads), retry.most)
    return { refused, reason, retryAfterMs: Math.round(wait) + randomInt(Math.ceil(wait)) }
  }
}

/** Threads that have read a key. */
export interface Adopted {
  /** They sign from now on; what others are doing is still done. */
  use(): void
  /** They are not wanted. */
  drop(): void
}

interface Batch {
  readonly by: SigningReference
  readonly calls: Waiting[]
  readonly jobs: SigningJob[]
}
