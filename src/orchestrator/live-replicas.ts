/**
 * Which replicas of discovery live, as this one sees it: each renews a Lease of its own, and one whose Lease does not change for a while by the
 * monotonic clock of whoever watches it is dead (docs/registration.md, R9). The times that are written in Leases are not read.
 */
import type { PresenceAnswer } from '../../protocols/messages/registration.ts'

/** Times of Leases, in milliseconds. */
export const presenceTimes = {
  /** How often a replica renews its own and lists all. */
  everyMs: 5000,
  /** How long a Lease of a replica that lives may stay unchanged. */
  deadMs: 20_000,
  /** Between two lists that are further apart, this replica has not seen whether others were renewed. */
  gapMs: 12_000,
  /** How long after its replica's end a Lease to which no entry refers is kept. */
  keptMs: 60_000,
}

/** The Leases as they were last listed. Times are monotonic milliseconds. */
export class LiveReplicas {
  readonly #own: string
  readonly #seen = new Map<string, { readonly version: string; readonly since: number }>()
  readonly #dead = new Map<string, number>()
  #listedAt = Number.NEGATIVE_INFINITY

  /** `own`: the name of this replica, which lives. */
  constructor(own: string) {
    this.#own = own
  }

  /** Since when this replica knows that another one is dead; undefined: it may live. */
  deadSince(name: string): number | undefined {
    return this.#dead.get(name)
  }

  /** When this replica saw the Lease of another one change last; undefined: it is not listed. */
  changedAt(name: string): number | undefined {
    return this.#seen.get(name)?.since
  }

  /**
   * Takes a list of all Leases. `keepers`: the replicas that entries named when it was asked for, which had Leases before that; `askedAt`: when that
   * was. Returns whether other replicas are dead now than before.
   */
  listed(leases: PresenceAnswer, keepers: Iterable<string>, askedAt: number, now: number): boolean {
    const before = [...this.#dead.keys()].sort().join()
    const isGap = askedAt - this.#listedAt > presenceTimes.gapMs
    this.#listedAt = now
    const listed = new Set(leases.map(({ name }) => name))
    for (const { name, version } of leases) {
      const known = this.#seen.get(name)
      const isSame = known?.version === version
      if (!known || !isSame || (isGap && !this.#dead.has(name))) this.#seen.set(name, { version, since: now })
      if (!isSame) this.#dead.delete(name)
      else if (!isGap && askedAt - known.since >= presenceTimes.deadMs && !this.#dead.has(name)) this.#dead.set(name, now)
    }
    for (const name of this.#seen.keys()) if (!listed.has(name)) this.#seen.delete(name)
    const named = new Set(keepers)
    for (const name of this.#dead.keys()) if (!listed.has(name) && !named.has(name)) this.#dead.delete(name)
    for (const name of named) if (!listed.has(name) && !this.#dead.has(name)) this.#dead.set(name, now)
    this.#dead.delete(this.#own)
    return [...this.#dead.keys()].sort().join() !== before
  }

  /** The Leases of dead replicas that nothing refers to any more. */
  removable(keepers: ReadonlySet<string>, now: number): PresenceAnswer {
    return [...this.#dead].flatMap(([name, since]) => {
      const lease = this.#seen.get(name)
      return lease && !keepers.has(name) && now - since > presenceTimes.keptMs ? [{ name, version: lease.version }] : []
    })
  }
}
