/**
 * The election of a leader on a Lease (`coordination.k8s.io/v1`) as a state machine without sockets and clocks: it is told what became of its
 * requests and answers what to do (docs/operation.md, L1 to L5).
 *
 * Why two never lead at once: a replica leads for {@link electionTimes}.renewMs from the moment at which it sent the request that the server
 * has carried out. Another one takes the Lease only when it has not seen it change for leaseMs, which is twice as long, and only in the version
 * that it has seen. Both are measured by each on its own clock, so that the clocks may differ by any amount, and their rates by almost a half.
 */

/** The times of an election, in milliseconds. */
export const electionTimes = {
  /** How long a Lease that does not change belongs to its holder. */
  leaseMs: 30_000,
  /** How long a leader leads without having renewed its Lease. */
  renewMs: 15_000,
  /** The interval at which a leader renews its Lease, and others look at it. */
  retryMs: 7500,
  /** The pause after the first failed attempt. */
  failedMs: 1000,
} as const

/** The share of a pause by which it is changed at random at most. */
const jitter = 0.2
/** The longest time, in milliseconds, that another holder may claim for its Lease. */
const longestLeaseMs = 120_000
/** How many conflicts in a row are followed by another attempt at once. */
const mostConflicts = 3

/** A Lease as it was read. */
export interface SeenLease {
  /** The resource version. */
  readonly version: string
  /** Empty: nobody. */
  readonly holder: string
  /** How long it belongs to its holder, in milliseconds. */
  readonly durationMs: number
}

/** What the state machine is told. */
export type ElectionInput =
  /** It begins, a pause is over, or the Lease may have changed. */
  | { readonly type: 'due' }
  /** The Lease was given back, as a watch tells, or may have been: one that does not lead looks at once, and does not wait until it would. */
  | { readonly type: 'released' }
  /** The time until which this one leads may be over. */
  | { readonly type: 'check' }
  /** The Lease was read; undefined: there is none. */
  | { readonly type: 'read'; readonly lease: SeenLease | undefined }
  /** The Lease was written and has this version now. */
  | { readonly type: 'written'; readonly version: string }
  /** Somebody else has written, made or removed the Lease meanwhile. */
  | { readonly type: 'conflict' }
  /** The request has failed; whether the server has carried it out is not known. */
  | { readonly type: 'failed' }
  /** Leads no more, and asks for nothing, for the reason that is told. */
  | { readonly type: 'stop'; readonly reason: string }
  /** After `stop`: nothing is being written any more. Has no effect after `resume`. */
  | { readonly type: 'release' }
  /** After `stop`: stands for election again. */
  | { readonly type: 'resume' }

/** What is to be done, in this order. */
export type ElectionAction =
  | { readonly type: 'read' }
  /**
   * Write the Lease: make it where `over` is undefined, otherwise replace that version. `change` says what is written: `acquire` and `renew`
   * write this one as holder, `release` nobody.
   */
  | { readonly type: 'write'; readonly over: string | undefined; readonly change: 'acquire' | 'renew' | 'release' }
  /** Say `due` after so many milliseconds. */
  | { readonly type: 'wait'; readonly ms: number }
  /** A term begins. */
  | { readonly type: 'lead'; readonly term: number }
  /** The term is over. */
  | { readonly type: 'yield'; readonly reason: string }

/** A Lease and when its version was first seen. */
interface KnownLease extends SeenLease {
  readonly seenAt: number
}

/** One replica's part in the election for one Lease. Times are monotonic milliseconds of the replica. */
export class Election {
  readonly #identity: string
  readonly #chance: () => number
  #known: KnownLease | undefined
  /** Whether the Lease may have changed since it was last seen, by an own request of which no answer came. */
  #isUnsure = true
  /** The request under way, when it was sent. */
  #request: { readonly type: 'read' | 'acquire' | 'renew' | 'release'; readonly sentAt: number } | undefined
  /** Whether the Lease may have been given back after the request under way was answered by the server. */
  #looksAgain = false
  /** The number of failures in a row. A read after which the Lease is to be written ends none: what may be read may not be written. */
  #failures = 0
  #conflicts = 0
  #term = 0
  /** Until when this one leads; undefined: it does not. */
  #until: number | undefined
  #isStopped = false
  #isReleasing = false

  /** `identity`: unique among all replicas and their starts. `chance` returns a random number from 0 to 1. */
  constructor(identity: string, chance: () => number) {
    this.#identity = identity
    this.#chance = chance
  }

  /** Whether this one leads at a time. It is asked before each write: a process that was paused has not been told that its time is over. */
  leadsAt(now: number): boolean {
    return this.#until !== undefined && now < this.#until
  }

  /** Until when this one leads if the Lease is not renewed; undefined: it does not lead. */
  get until(): number | undefined {
    return this.#until
  }

  /** The holder as last seen; empty: nobody, or not known. */
  get holder(): string {
    return this.#known?.holder ?? ''
  }

  /** Takes an input. Only one request is under way at a time. */
  take(input: ElectionInput, now: number): readonly ElectionAction[] {
    const ended = this.#expire(now)
    return [...ended, ...this.#take(input, now)]
  }

  #take(input: ElectionInput, now: number): readonly ElectionAction[] {
    switch (input.type) {
      case 'check':
        return []
      case 'due':
        return this.#request || this.#isStopped ? [] : this.#next(now)
      case 'released':
        return this.#released(now)
      case 'stop':
        this.#isStopped = true
        return this.#yield(input.reason)
      case 'release':
        this.#isReleasing = this.#isStopped
        return this.#release(now)
      case 'resume':
        this.#isStopped = false
        this.#isReleasing = false
        return this.#request ? [] : this.#next(now)
      default:
        return this.#answered(input, now)
    }
  }

  #released(now: number): readonly ElectionAction[] {
    if (this.#isStopped || this.#until !== undefined) return []
    if (!this.#request) return this.#next(now)
    this.#looksAgain = true
    return []
  }

  #expire(now: number): readonly ElectionAction[] {
    if (this.#until === undefined || now < this.#until) return []
    return this.#yield(`the lease could not be renewed for ${electionTimes.renewMs / 1000} s`)
  }

  #yield(reason: string): readonly ElectionAction[] {
    if (this.#until === undefined) return []
    this.#until = undefined
    return [{ type: 'yield', reason }]
  }

  #answered(input: Extract<ElectionInput, { type: 'read' | 'written' | 'conflict' | 'failed' }>, now: number): readonly ElectionAction[] {
    const request = this.#request
    this.#request = undefined
    if (!request) return []
    if (input.type === 'failed' || input.type === 'conflict') {
      this.#isUnsure = true
      const isAgain = input.type === 'conflict' && this.#conflicts++ < mostConflicts
      if (this.#isStopped) return isAgain ? this.#release(now) : []
      if (isAgain) return this.#next(now)
      const ms = Math.min(electionTimes.retryMs, electionTimes.failedMs * 2 ** Math.min(this.#failures++, 10))
      return [this.#wait(ms * (1 - jitter * this.#chance()))]
    }
    if (input.type === 'read') return this.#read(input.lease, now)
    this.#failures = 0
    this.#conflicts = 0
    return this.#written(request, input.version, now)
  }

  #read(lease: SeenLease | undefined, now: number): readonly ElectionAction[] {
    const before = this.#known
    this.#isUnsure = false
    if (lease?.version !== before?.version)
      // A Lease that is gone is respected like one that stays: its holder may lead on.
      this.#known = lease ? { ...lease, seenAt: now } : before && { ...before, version: '', seenAt: before.version === '' ? before.seenAt : now }
    const isForeign = this.#isForeign
    if (isForeign) this.#conflicts = 0
    const ended = isForeign ? this.#yield(`${this.holder} has taken the lease`) : []
    return [...ended, ...(this.#isStopped ? this.#release(now) : this.#decide(now))]
  }

  #written({ type, sentAt }: { readonly type: string; readonly sentAt: number }, version: string, now: number): readonly ElectionAction[] {
    const holder = type === 'release' ? '' : this.#identity
    this.#known = { version, holder, durationMs: electionTimes.leaseMs, seenAt: now }
    this.#isUnsure = false
    if (this.#isStopped) return []
    const until = sentAt + electionTimes.renewMs
    // It was given back, and stands for election again. An answer that comes too late says only that the Lease is the own one.
    if (holder === '' || now >= until) return this.#next(now)
    const begins = this.#until === undefined
    this.#until = until
    const wait = this.#wait(electionTimes.retryMs * (1 - jitter * this.#chance()))
    return begins ? [{ type: 'lead', term: ++this.#term }, wait] : [wait]
  }

  /** Whether somebody else holds the Lease, as far as it is known. */
  get #isForeign(): boolean {
    return this.holder !== '' && this.holder !== this.#identity
  }

  #next(now: number): readonly ElectionAction[] {
    const isOwn = this.#known?.holder === this.#identity && this.#known.version !== '' && !this.#isUnsure
    return isOwn ? this.#decide(now) : this.#ask('read', now)
  }

  /** Decides on what is known of the Lease. */
  #decide(now: number): readonly ElectionAction[] {
    const known = this.#known
    if (known && this.#isForeign) {
      const left = known.seenAt + Math.min(Math.max(known.durationMs, electionTimes.leaseMs), longestLeaseMs) - now
      if (left > 0 && this.#looksAgain) {
        this.#looksAgain = false
        return this.#ask('read', now)
      }
      if (left > 0) {
        this.#failures = 0
        return [this.#wait(Math.min(electionTimes.retryMs * (1 + jitter * this.#chance()), left + 1))]
      }
    }
    return this.#ask(known?.holder === this.#identity && known.version !== '' ? 'renew' : 'acquire', now)
  }

  #ask(type: 'read' | 'acquire' | 'renew' | 'release', now: number): readonly ElectionAction[] {
    this.#request = { type, sentAt: now }
    if (type === 'read') return [{ type }]
    return [{ type: 'write', over: this.#known?.version || undefined, change: type }]
  }

  /** Gives the Lease back if it is the own one. */
  #release(now: number): readonly ElectionAction[] {
    if (!this.#isReleasing || this.#request || this.#known?.holder !== this.#identity) return []
    return this.#isUnsure ? this.#ask('read', now) : this.#known.version === '' ? [] : this.#ask('release', now)
  }

  #wait = (ms: number): ElectionAction => ({ type: 'wait', ms })
}
