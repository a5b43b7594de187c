/**
 * Fetches documents on a thread that nobody waits for, because a server can make verifying its certificates and reading its documents
 * costly (docs/resources.md, A15; docs/identity.md, K8). The thread is started by the first fetch and ends ten seconds after the last.
 */
import { FairQueue } from '../../src/model/fair-queue.ts'
import { TimeShares } from '../../src/policy/fetch-shares.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { currentOwner } from '../runtime/owner.ts'
import { createPool, type Pool } from '../runtime/pool.ts'
import { after, checkEvery, type Timer } from '../runtime/timers.ts'
import type { FetchBounds } from './bounded-fetch.ts'
import { type Documents, type FetchAnswer, type FetchTask, marks } from './fetch-task.ts'

/** Maximum number of fetches that wait, and of fetches at once: each has a socket and at most a megabyte of what was received. */
const most = { waiting: 4096, atOnce: 32 }
/** The thread's time that an asker may use at once, in milliseconds, and its share of later time. A usual fetch takes 3 ms. */
const timeBounds = { burstMs: 2000, share: 0.05 }
/** Maximum size of the thread's heap, in MiB. */
const heapMib = 64
/** Interval at which the thread is looked at, in milliseconds. */
const lookMs = 250
/** After how many looks the thread is ended: in which one fetch blocks it, and in which it has not ended a fetch that is overdue. */
const patience = { blocked: 2000 / lookMs, overdue: 10_000 / lookMs }
/** How often a fetch is begun again whose thread was ended for another one. */
const restarts = 4

/** A document that somebody asks for. */
export interface Wanted<Kind extends keyof Documents> {
  /** Who asks: fetches of one asker wait for each other sooner than for those of others. */
  readonly asker: string
  readonly kind: Kind
  readonly url: string
  readonly bounds: FetchBounds
  /** Called when the fetch leaves the queue. */
  readonly begun?: () => void
  /** Takes the fetch out of the queue. */
  readonly signal?: AbortSignal | undefined
}

interface Fetch {
  readonly wanted: Wanted<keyof Documents>
  readonly resolve: (document: never) => void
  readonly reject: (error: Error) => void
  /** How often its thread was ended for another fetch. */
  restarts: number
  /** Number of looks at the thread since the fetch began. */
  looks: number
}

/**
 * A thread that fetches. An asker begins another fetch only while it has fewer under way than are free, so that one asker leaves half of
 * them to others; an asker whose fetches blocked the thread for long waits.
 */
export class FetchThread {
  readonly #module: URL
  readonly #queue = new FairQueue<Fetch>({ calls: most.waiting, bytes: Number.POSITIVE_INFINITY })
  readonly #shares = new TimeShares(timeBounds)
  readonly #running = new Map<number, Fetch>()
  #pool: Pool | undefined
  #words = newWords()
  #lastId = 0
  /** Number of looks for which one fetch has blocked the thread, and the number of times that one had begun to at the last look. */
  #blocked = { looks: 0, times: 0 }
  #looking: Timer | undefined
  #waiting: Timer | undefined
  #isClosed = false
  /** The thread ends with the actor that started it. */
  readonly #end = { cancel: () => this.close() }
  readonly #owner = currentOwner()

  /** `module`: the task, if not the one beside this file. */
  constructor(module = new URL(`./fetch-task${import.meta.url.slice(-3)}`, import.meta.url)) {
    this.#module = module
    this.#owner?.keep(this.#end)
  }

  /** Fetches a document. Rejects with the reason. */
  fetch<Kind extends keyof Documents>(wanted: Wanted<Kind>): Promise<Documents[Kind]> {
    if (this.#isClosed) return Promise.reject(new Error('the service stops'))
    const { promise, resolve, reject } = Promise.withResolvers<Documents[Kind]>()
    const dropped = this.#queue.add(wanted.asker, { wanted, resolve, reject, restarts: 0, looks: 0 }, 0)
    for (const { reject } of dropped) reject(new Error(`more than ${most.waiting} fetches wait`))
    this.#begin()
    return promise
  }

  /** Ends the thread. Fetches that wait or are under way are rejected. */
  close(): void {
    this.#isClosed = true
    this.#owner?.release(this.#end)
    this.#waiting?.cancel()
    const open = [...this.#running.values()]
    for (let next = this.#queue.take(); next; next = this.#queue.take()) open.push(next)
    this.#endThread()
    for (const { reject } of open) reject(new Error('the service stops'))
  }

  /** Begins the fetches whose turn it is. */
  #begin(): void {
    this.#waiting?.cancel()
    this.#waiting = undefined
    while (this.#running.size < most.atOnce) {
      const now = monotonicMs()
      let soonestMs = Number.POSITIVE_INFINITY
      const next = this.#queue.take((asker) => {
        if (this.#runningOf(asker) >= most.atOnce - this.#running.size) return false
        const waitMs = this.#shares.waitMs(asker, now)
        if (waitMs > 0) soonestMs = Math.min(soonestMs, waitMs)
        return waitMs === 0
      })
      if (!next) {
        if (soonestMs < Number.POSITIVE_INFINITY) this.#waiting = after(Math.ceil(soonestMs), () => this.#begin()).unref()
        return
      }
      if (next.wanted.signal?.aborted) next.reject(new Error('it is not needed any more'))
      else {
        next.wanted.begun?.()
        this.#run(next)
      }
    }
  }

  #runningOf(asker: string): number {
    let number = 0
    for (const { wanted } of this.#running.values()) if (wanted.asker === asker) number++
    return number
  }

  #run(fetch: Fetch): void {
    const { asker, kind, url, bounds } = fetch.wanted
    this.#lastId = (this.#lastId % 2_147_483_647) + 1
    const id = this.#lastId
    fetch.looks = 0
    this.#running.set(id, fetch)
    this.#looking ??= checkEvery(lookMs, () => this.#look()).unref()
    this.#pool ??= createPool(this.#module, { threads: 1, queue: most.atOnce, atOnce: most.atOnce, heapMib })
    const task: FetchTask = { id, asker, kind, url, bounds, shared: this.#words.buffer }
    this.#pool.run<FetchAnswer>(task).then(
      (answer) => this.#ended(id, fetch, answer),
      // The thread has ended. The fetches of a thread that this one ended are not among those that run, or run again by another number.
      (error: Error) =>
        this.#running.get(id) === fetch && this.#restart(Atomics.load(this.#words, marks.fetch), `its thread ended: ${error.message}`),
    )
  }

  #ended(id: number, fetch: Fetch, answer: FetchAnswer): void {
    if (this.#running.get(id) !== fetch) return
    this.#running.delete(id)
    this.#shares.spend(fetch.wanted.asker, answer.blockedMs, monotonicMs())
    if ('document' in answer) fetch.resolve(answer.document as never)
    else fetch.reject(new Error(answer.fault))
    if (this.#running.size === 0) this.#rest()
    this.#begin()
  }

  /** Finds out whether the thread is blocked, or has not ended a fetch in time. Counts looks, so that the time of a halted process does not count. */
  #look(): void {
    const [fetch, times] = [Atomics.load(this.#words, marks.fetch), Atomics.load(this.#words, marks.times)]
    this.#blocked = { looks: fetch !== 0 && times === this.#blocked.times ? this.#blocked.looks + 1 : 0, times }
    if (this.#blocked.looks >= patience.blocked) {
      const ms = patience.blocked * lookMs
      return this.#restart(fetch, `its certificates or its content took longer than ${ms} ms to check`)
    }
    for (const [id, { looks, wanted }] of this.#running)
      if (looks * lookMs > wanted.bounds.timeoutMs + patience.overdue * lookMs)
        return this.#restart(id, `no answer within ${wanted.bounds.timeoutMs} ms`)
    for (const one of this.#running.values()) one.looks++
  }

  /** Ends the thread for a fetch, which fails with a reason. The others begin again on a new thread. 0: no fetch is known to be the cause. */
  #restart(cause: number, reason: string): void {
    const running = [...this.#running]
    this.#endThread()
    for (const [id, fetch] of running) {
      if (id === cause) this.#shares.spend(fetch.wanted.asker, timeBounds.burstMs, monotonicMs())
      if (id === cause || fetch.restarts >= restarts) fetch.reject(new Error(reason))
      else {
        fetch.restarts++
        this.#run(fetch)
      }
    }
    this.#begin()
  }

  /** Ends the thread, also while it is blocked: nobody waits until it has ended. */
  #endThread(): void {
    this.#running.clear()
    this.#rest()
    void this.#pool?.destroy()
    this.#pool = undefined
    this.#words = newWords()
  }

  #rest(): void {
    this.#looking?.cancel()
    this.#looking = undefined
    this.#blocked = { looks: 0, times: 0 }
  }
}

function newWords(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(marks.count * Int32Array.BYTES_PER_ELEMENT))
}
