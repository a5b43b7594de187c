/** The right to do what only one replica may do, and the only way to write with it. */
import { setMaxListeners } from 'node:events'
import type { Duty } from '../../../protocols/messages/leadership.ts'
import type { ClusterApi, ClusterCalls, Fence } from '../cluster/cluster-api.ts'

/** A call was refused because this process does not lead, or leads in another term than that in which the call was decided on. */
export class NotLeading extends Error {}

/** What a leadership is made of. */
export interface LeadershipParts {
  readonly duty: Duty
  readonly api: Pick<ClusterApi, 'fenced'>
  /** Whether this process leads at this moment, by its own clock. */
  readonly isLeading: () => boolean
}

interface Term {
  readonly number: number
  readonly ended: AbortController
  readonly fence: Fence
  readonly calls: ClusterCalls
}

/**
 * The leadership of one duty. What is written for the duty is written with {@link Leadership.inTerm}: each request asks whether the term goes
 * on at the moment at which it is sent, so that a process that was paused, or whose requests had to wait, writes nothing any more.
 */
export class Leadership {
  readonly duty: Duty
  readonly #parts: LeadershipParts
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #waiting = new Set<() => void>()
  #term: Term | undefined

  constructor(parts: LeadershipParts) {
    this.duty = parts.duty
    this.#parts = parts
  }

  /** The number of the term in which this process leads; 0: it does not. */
  get term(): number {
    return this.#term && this.#parts.isLeading() ? this.#term.number : 0
  }

  /**
   * What calls the API server in a term, as {@link ClusterApi.call} does. Its calls reject with {@link NotLeading} when the term is over, without
   * having been sent or given up. It need not be used for what is only read. `api`: that of another cluster.
   */
  inTerm(number: number, api?: Pick<ClusterApi, 'fenced'>): Pick<ClusterCalls, 'call' | 'request'> {
    const of = (term: Term) => (api ? api.fenced(term.fence) : term.calls)
    return {
      call: (name, apiOf, operation) => this.#made(number, (term) => of(term).call(name, apiOf, operation)),
      request: (name, request) => this.#made(number, (term) => of(term).request(name, request)),
    }
  }

  async #made<Answer>(number: number, make: (term: Term) => Promise<Answer>): Promise<Answer> {
    const term = this.#term
    if (!term || term.number !== number) throw this.#refusal()
    const call = make(term).catch((error: unknown) => {
      throw this.#goesOn(term) ? error : this.#refusal()
    })
    this.#underWay.add(call)
    return call.finally(() => this.#underWay.delete(call))
  }

  /** Resolves with {@link Leadership.term} when it is another than `known`, or when the signal is aborted. */
  async changed(known: number, signal: AbortSignal): Promise<number> {
    while (this.term === known && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      this.#waiting.delete(resolve)
    }
    return this.term
  }

  /** A term begins. Calls of an earlier one that have not been sent are refused, also where its end was patient. */
  begin(number: number): void {
    const ended = new AbortController()
    // Each call under way listens.
    setMaxListeners(0, ended.signal)
    const fence = {
      signal: ended.signal,
      permit: () => {
        if (ended.signal.aborted || this.#term?.ended !== ended || !this.#parts.isLeading()) throw this.#refusal()
      },
    }
    this.#term = { number, ended, fence, calls: this.#parts.api.fenced(fence) }
    this.#tell()
  }

  /** The term is over. Calls under way are given up, unless `isPatient`: then those that have been sent may end. */
  end(isPatient = false): void {
    const term = this.#term
    this.#term = undefined
    if (!isPatient) term?.ended.abort()
    this.#tell()
  }

  /** Whether no call is under way. */
  get isSettled(): boolean {
    return this.#underWay.size === 0
  }

  /** Resolves when no call is under way. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  #goesOn(term: Term): boolean {
    return this.#term === term && this.#parts.isLeading()
  }

  #refusal(): NotLeading {
    return new NotLeading(`this replica does not lead (${this.duty}), or not any more: nothing is written`)
  }

  #tell(): void {
    for (const resolve of this.#waiting) resolve()
  }
}
