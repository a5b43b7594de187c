/**
 * When a replica of discovery that serves more than its share of the proxies ends some of their connections, so that they come back at others
 * (docs/operation.md, R3).
 */

/** The bounds of spreading. Times are in milliseconds. */
export const spreadTimes = {
  /** How often a replica looks at the numbers of all. */
  lookMs: 5000,
  /** How long all replicas must have been there, ready and answering, before any ends connections: those of a restart come and go meanwhile. */
  settledMs: 30_000,
}

/** A replica begins when it serves this many times the mean, and this many more than it, and goes on until it serves less than `ends` times the mean. */
const share = { begins: 1.2, least: 10, ends: 1.05 }

/** What a replica says of itself. */
export interface ReplicaLoad {
  readonly proxies: number
  readonly isReady: boolean
  /** The most proxies that it serves (`PILOT_XDS_MAX_PROXIES`); 0: there is no limit. */
  readonly most: number
}

/** What this replica knows of another one; no load: it has not answered. */
export interface OtherLoad {
  readonly name: string
  readonly load: ReplicaLoad | undefined
}

/** Decides for one replica. */
export class ProxySpread {
  readonly #perSecond: number
  #replicas = ''
  /** Since when the same replicas are there, ready and answering. */
  #since = Number.POSITIVE_INFINITY
  #isSpreading = false

  /** `perSecond`: the number of connections that it ends a second at most; 0: none. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** How many connections to end until the next look. `now`: monotonic milliseconds. */
  next(own: ReplicaLoad, others: readonly OtherLoad[], now: number): number {
    const loads = others.flatMap(({ load }) => (load?.isReady ? [load] : []))
    if (!own.isReady || loads.length < others.length) {
      this.#since = Number.POSITIVE_INFINITY
      this.#isSpreading = false
      return 0
    }
    const replicas = others
      .map(({ name }) => name)
      .sort()
      .join()
    if (replicas !== this.#replicas || this.#since === Number.POSITIVE_INFINITY) this.#since = now
    this.#replicas = replicas
    if (now - this.#since < spreadTimes.settledMs) return 0
    const mean = loads.reduce((sum, { proxies }) => sum + proxies, own.proxies) / (loads.length + 1)
    const from = this.#isSpreading ? mean * share.ends : Math.max(mean * share.begins, mean + share.least)
    // One that is full takes none, however few it has.
    const room = loads.reduce((sum, { proxies, most }) => sum + Math.max(0, (most === 0 ? mean : Math.min(mean, most)) - proxies), 0)
    const count = own.proxies > from ? Math.floor(Math.min(own.proxies - mean, room, (this.#perSecond * spreadTimes.lookMs) / 1000)) : 0
    this.#isSpreading = count > 0
    return count
  }
}
