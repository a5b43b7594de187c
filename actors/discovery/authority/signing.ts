/** Signs on a pool of threads: a bounded queue, fair among callers. A thread that dies fails only the calls that it was processing. */
import { randomInt } from 'node:crypto'
import type { Validity } from '../../../src/ca/lifetime.ts'
import { FairQueue } from '../../../src/model/fair-queue.ts'
import { type Asking, patient } from '../../runtime/ask.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { createPool, type Pool } from '../../runtime/pool.ts'
import { HeldKeys } from './held-keys.ts'
import type { JobOutcome, KeyedReference, MadeRoot, SignerAnswer, SignerTask, SigningJob, SigningReference } from './sign-task.ts'

/** A certificate to be signed. */
export interface WantedCertificate {
  /** Identifies the caller for fair queueing. */
  readonly caller: string
  /** The signing request, PEM. */
  readonly csr: string
  /** The identity of the workload; undefined for a serving certificate. */
  readonly identity: string | undefined
  /** The other cluster that vouches for the identity, which the certificate then names; undefined: the own one. */
  readonly cluster?: string | undefined
  /**
   * Returns the signing certificate and the validity; called when the request's turn comes. Undefined when no authority is in force any
   * more.
   */
  readonly grant: () => (Validity & { readonly by: SigningReference }) | undefined
  /** Whoever waits for the certificate, and until when; without it, for any length of time. */
  readonly asking?: Asking
}

/**
 * `full`: the queue is full; `late`: the call waited too long; `died`: the thread ended; `keyless`: the thread cannot read the key;
 * `unready`: no authority is in force; `gone`: nobody waits for the certificate any more.
 */
type Refused = 'full' | 'late' | 'died' | 'keyless' | 'unready' | 'gone'

/** The result of a call. */
export type SigningResult =
  | (Extract<JobOutcome, { certificate: string }> & { readonly by: SigningReference; readonly notAfter: number })
  | Extract<JobOutcome, { fault: string }>
  | {
      readonly refused: Refused
      /** For the log. */
      readonly reason: string
      /** Suggested retry delay, in milliseconds. */
      readonly retryAfterMs: number
    }

/** Maximum number of queued calls, and of the bytes of their requests. */
const bounds = { calls: 4096, bytes: 16_777_216 }
/** Maximum queueing time of a call, in milliseconds. With {@link taskDeadline} it is within the deadline of the question (questions.ts). */
const longestWait = 4000
/** Timeout of a task, in milliseconds, including the start of its thread; the thread is ended then. */
const taskDeadline = 8000
/** Timeout of the creation of a root, in milliseconds: a large RSA key takes long to generate. */
const rootDeadline = 120_000
/** Maximum number of certificates in one task: a batch saves messages between threads, and the limit keeps the queue fair. */
const largestBatch = 16
/** Number of batches per thread: the next one is queued while one is being processed. */
const batchesAhead = 2
/** Limits of the suggested retry delay, in milliseconds. */
const retry = { least: 250, most: 30_000 }
/** Weight of one batch in the moving average of the time per certificate. */
const averageShare = 0.1

const nobodyWaits = 'nobody waits for the certificate'

interface Waiting {
  readonly wanted: WantedCertificate
  readonly since: number
  readonly settle: (result: SigningResult) => void
}

/** Calls `then` when nobody waits for a certificate any more. */
function whenGone({ asking }: WantedCertificate, then: () => void): void {
  if (asking?.signal.aborted) then()
  else asking?.signal.addEventListener('abort', then, { once: true })
}

/** Whether nobody waits for a certificate any more. A busy thread fires the timer of a deadline late, so the time counts as well. */
const isGone = ({ asking }: WantedCertificate): boolean => asking !== undefined && (asking.signal.aborted || asking.restMs() <= 0)

/** Signs each call with the authority that is in force when its turn comes. */
export class Signing {
  /** The keys that tasks bring with them. */
  readonly held = new HeldKeys()
  readonly #threads: number
  readonly #module: URL
  #pool: Pool
  readonly #queue = new FairQueue<Waiting>(bounds)
  #running = 0
  /** Moving average of the time per certificate, in milliseconds. */
  #average = 1

  /** `module`: the pool task, if not the one beside this file. */
  constructor(threads: number, module = new URL(`./sign-task${import.meta.url.slice(-3)}`, import.meta.url)) {
    this.#threads = threads
    this.#module = module
    this.#pool = this.#newPool(0)
  }

  /** Number of queued calls. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Signs a certificate. Never rejects. */
  sign(wanted: WantedCertificate): Promise<SigningResult> {
    return new Promise((settle) => {
      const waiting = { wanted, since: monotonicMs(), settle }
      const dropped = this.#queue.add(wanted.caller, waiting, wanted.csr.length)
      whenGone(wanted, () => {
        if (this.#queue.remove(wanted.caller, waiting)) settle(this.#refusal('gone', nobodyWaits))
      })
      for (const one of dropped)
        one.settle(this.#refusal('full', `more than ${bounds.calls} requests, or ${bounds.bytes} bytes of them, wait to be signed`))
      this.#work()
    })
  }

  /** Creates a root. Its key is stored then, or held until its storage stores it with the state. Rejects with an Error that says why it failed. */
  async makeRoot(task: Extract<SignerTask, { type: 'make-root' }>): Promise<MadeRoot> {
    const { cross } = task
    const keyed = cross ? { ...task, cross: { ...cross, by: this.#keyed(cross.by) } } : task
    const answer = await this.#pool.run<SignerAnswer>(keyed, rootDeadline)
    if ('made' in answer) {
      const { made, key } = answer
      if (key !== undefined) this.held.set('made', new Map([[made.id, key]]))
      return made
    }
    throw new Error('error' in answer ? answer.error : 'no root was made')
  }

  /**
   * Reads the key of a plugged-in signing certificate in a new set of threads, which stay alive while idle: thus all of them have the key
   * even if its file changes later. `pem` is the key where it is in no file. Rejects with an Error that says why it cannot be used.
   */
  async adopt(by: SigningReference, pem = ''): Promise<Adopted> {
    const [threads, arrived] = [this.#threads, new SharedArrayBuffer(4)]
    const pool = this.#newPool(threads)
    const task: SignerTask = { type: 'adopt', by: pem === '' ? by : { ...by, pem }, threads, arrived }
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
    for (let one = this.#queue.take(); one; one = this.#queue.take()) one.settle(this.#refusal('died', 'the certificate authority is shutting down'))
    await this.#pool.destroy()
  }

  #keyed(by: SigningReference): KeyedReference {
    return by.key.kind === 'tasks' ? { ...by, pem: this.held.get(by.id) } : by
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

  /** Takes the next calls from the queue, grouped by signing certificate. */
  #batches(): Batch[] {
    const size = Math.min(largestBatch, Math.ceil(this.#queue.size / (this.#threads * batchesAhead)))
    const batches = new Map<string, Batch>()
    const oldest = monotonicMs() - longestWait
    for (let taken = 0; taken < size; ) {
      const next = this.#queue.take()
      if (!next) break
      if (next.since < oldest) {
        next.settle(this.#refusal('late', `the request waited for more than ${longestWait} ms`))
        continue
      }
      if (isGone(next.wanted)) {
        next.settle(this.#refusal('gone', nobodyWaits))
        continue
      }
      const { csr, identity, cluster, grant, asking = patient } = next.wanted
      const granted = grant()
      if (!granted) {
        next.settle(this.#refusal('unready', 'no signing certificate is available'))
        continue
      }
      taken++
      const { by, notBefore, notAfter } = granted
      const batch = batches.get(by.id) ?? { by, calls: [], jobs: [] }
      batches.set(by.id, batch)
      batch.calls.push(next)
      batch.jobs.push({ csr, identity, cluster, notBefore, notAfter, until: monotonicMs() + asking.restMs() })
    }
    return [...batches.values()]
  }

  async #run({ by, calls, jobs }: Batch): Promise<void> {
    const began = monotonicMs()
    let outcomes: readonly JobOutcome[]
    const gone = new SharedArrayBuffer(jobs.length)
    for (const [index, { wanted }] of calls.entries()) whenGone(wanted, () => Atomics.store(new Uint8Array(gone), index, 1))
    try {
      const answer = await this.#pool.run<SignerAnswer>({ type: 'sign', by: this.#keyed(by), jobs, gone } satisfies SignerTask, taskDeadline)
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
    for (const [index, { wanted, settle }] of calls.entries()) {
      const outcome = outcomes[index] as JobOutcome
      if (isGone(wanted)) settle(this.#refusal('gone', nobodyWaits))
      else settle('fault' in outcome ? outcome : { ...outcome, by, notAfter: (jobs[index] as SigningJob).notAfter })
    }
  }

  /** The retry delay is randomized over its own length again, so that callers refused together do not retry together. */
  #refusal(refused: Refused, reason: string): Extract<SigningResult, { refused: string }> {
    const wait = Math.min(Math.max(retry.least, (this.#queue.size * this.#average) / this.#threads), retry.most)
    return { refused, reason, retryAfterMs: Math.round(wait) + randomInt(Math.ceil(wait)) }
  }
}

/** A set of threads that have read a key. */
export interface Adopted {
  /** Uses these threads from now on; the previous ones finish their tasks first. */
  use(): void
  /** Discards these threads. */
  drop(): void
}

interface Batch {
  readonly by: SigningReference
  readonly calls: Waiting[]
  readonly jobs: SigningJob[]
}
