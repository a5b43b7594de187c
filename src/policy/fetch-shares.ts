/** How fetches for users share what is scarce: places for key sets, and the time of the thread that fetches (docs/resources.md, A15). */
import { compare } from '../model/order.ts'

/**
 * Chooses the sources that get one of `places`, and the namespace that each is counted for: of those that need it, the one that needs the
 * fewest sources. The namespaces take turns, so each of them gets what it needs or as many places as the others; what a namespace needs
 * beyond that gets only free places. Within a namespace sources that have a place (`has`) come first.
 */
export function sharedPlaces(
  wanted: ReadonlyMap<string, readonly string[]>,
  places: number,
  has: (source: string) => boolean,
): ReadonlyMap<string, string> {
  const needs = new Map<string, number>()
  for (const namespaces of wanted.values()) for (const namespace of namespaces) needs.set(namespace, (needs.get(namespace) ?? 0) + 1)
  const need = (namespace: string) => needs.get(namespace) as number
  const lists = new Map<string, { readonly first: string[]; readonly others: string[] }>()
  for (const [source, namespaces] of wanted) {
    const [payer = ''] = [...namespaces].sort((one, other) => need(one) - need(other) || compare(one, other))
    const list = lists.get(payer) ?? { first: [], others: [] }
    lists.set(payer, list)
    list[has(source) ? 'first' : 'others'].push(source)
  }
  const chosen = new Map<string, string>()
  const queues = [...lists].map(([namespace, { first, others }]) => ({ namespace, left: [...first, ...others].values() }))
  for (let open = queues; open.length > 0 && chosen.size < places; )
    open = open.filter(({ namespace, left }) => {
      if (chosen.size >= places) return false
      const { value: source, done } = left.next()
      if (!done) chosen.set(source, namespace)
      return !done
    })
  return chosen
}

/** The time that an asker may use at once in milliseconds, and the share of later time that it may use, from 0 to 1. */
export interface TimeBounds {
  readonly burstMs: number
  readonly share: number
}

/** What each asker has used of a thread's time lately. Each may begin again once it has used less than its burst. */
export class TimeShares {
  readonly #bounds: TimeBounds
  /** Used milliseconds at a time; they decrease by the share of the time that passes. */
  readonly #used = new Map<string, { readonly ms: number; readonly at: number }>()

  constructor(bounds: TimeBounds) {
    this.#bounds = bounds
  }

  /** The number of askers that are remembered. */
  get size(): number {
    return this.#used.size
  }

  /** Adds time that an asker has used. `now`: monotonic milliseconds. */
  spend(asker: string, ms: number, now: number): void {
    for (const other of this.#used.keys()) if (this.#usedBy(other, now) === 0) this.#used.delete(other)
    this.#used.set(asker, { ms: this.#usedBy(asker, now) + ms, at: now })
  }

  /** Returns in how many milliseconds an asker may use time again; 0 if it may at once. */
  waitMs(asker: string, now: number): number {
    return Math.max(0, (this.#usedBy(asker, now) - this.#bounds.burstMs) / this.#bounds.share)
  }

  #usedBy(asker: string, now: number): number {
    const used = this.#used.get(asker)
    return used ? Math.max(0, used.ms - (now - used.at) * this.#bounds.share) : 0
  }
}
