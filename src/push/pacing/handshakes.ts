/**
 * Order and pace of TLS handshakes, which run on a thread that serves others (docs/xds-protocol.md, H1 to H5). Times are monotonic
 * milliseconds, costs are milliseconds of CPU.
 */

/** Bytes of a handshake that wait to be processed. */
export interface WaitingBytes {
  /** Network of the client (`clientKey`). */
  readonly network: string
  /** Number of bytes that the client has sent since it was last answered. */
  readonly unanswered: number
}

/** Cost from which a handshake counts as costly. An ordinary one costs 1 to 6 ms. */
export const costlyMs = 25
/** How long a client is known after it presented a valid certificate or token. */
const knownForMs = 24 * 3_600_000
/** Maximum numbers of known addresses and of networks whose costs are remembered; those used longest ago are forgotten. */
const remembered = { known: 10_000, networks: 10_000 }
/** What a byte of a handshake may cost at most: 0.15 s for 16 KB. */
const worstOfByteMs = 0.01
/** Time in which the remembered costs of a network halve. */
const halfLifeMs = 10_000
/** The pause of a network after its first costly handshake, doubled by each further one, the longest pause, and when they are forgotten. */
const pauses = { firstMs: 1000, longestMs: 60_000, forgottenMs: 600_000 }
/** The share of time that others leave to strangers while they need the thread themselves, as strangers' time for theirs. */
const besideOthers = 1 / 3
/** The most that strangers may have saved. */
const savedMs = 20

/** The addresses whose clients presented a valid certificate or token within the last day. */
export class KnownAddresses {
  readonly #until = new Map<string, number>()

  /** A client at an address presented a valid credential. */
  add(address: string, now: number): void {
    this.#until.delete(address)
    this.#until.set(address, now + knownForMs)
    if (this.#until.size > remembered.known) this.#until.delete(this.#until.keys().next().value as string)
  }

  has(address: string, now: number): boolean {
    const until = this.#until.get(address)
    return until !== undefined && until > now
  }

  /** A handshake from an address was costly. */
  delete(address: string): void {
    this.#until.delete(address)
  }
}

interface NetworkRecord {
  /** Cost of its handshakes, halved every {@link halfLifeMs}, and the time of this value. */
  spentMs: number
  at: number
  /** Number of costly handshakes, and until when the network pauses for them. */
  costly: number
  until: number
}

/** Chooses whose handshake goes on: the network that cost least, counting what the waiting bytes may cost at most. */
export class HandshakeOrder {
  readonly #records = new Map<string, NetworkRecord>()

  /** Returns the bytes to process next; undefined if nothing waits, or all that waits pauses. Those that wait longest come first if equal. */
  next<Waiting extends WaitingBytes>(waiting: Iterable<Waiting>, now: number): Waiting | undefined {
    let first: Waiting | undefined
    let least = Number.POSITIVE_INFINITY
    for (const each of waiting) {
      if (this.pauseMs(each.network, now) > 0) continue
      const cost = this.#spent(each.network, now) + each.unanswered * worstOfByteMs
      if (cost >= least) continue
      least = cost
      first = each
    }
    return first
  }

  /** How long a network still pauses. */
  pauseMs(network: string, now: number): number {
    return Math.max(0, (this.#records.get(network)?.until ?? 0) - now)
  }

  /** Part of a handshake of a network cost `ms`. */
  spent(network: string, ms: number, now: number): void {
    const record = this.#record(network, now)
    record.spentMs = this.#spent(network, now) + ms
    record.at = now
  }

  /** A handshake of a network cost `ms` in all, whether it was finished or not. Returns whether it was costly. */
  ended(network: string, ms: number, now: number): boolean {
    if (ms < costlyMs) return false
    const record = this.#record(network, now)
    if (now - record.until > pauses.forgottenMs) record.costly = 0
    record.until = now + Math.min(pauses.longestMs, pauses.firstMs * 2 ** record.costly)
    record.costly++
    return true
  }

  #spent(network: string, now: number): number {
    const record = this.#records.get(network)
    return record ? record.spentMs * 0.5 ** ((now - record.at) / halfLifeMs) : 0
  }

  #record(network: string, now: number): NetworkRecord {
    const record = this.#records.get(network) ?? { spentMs: 0, at: now, costly: 0, until: 0 }
    this.#records.delete(network)
    this.#records.set(network, record)
    if (this.#records.size > remembered.networks) this.#records.delete(this.#records.keys().next().value as string)
    return record
  }
}

/** Readings of a thread's event loop since its start, in milliseconds. */
export interface LoopTimes {
  /** How long it waited for something to do. */
  readonly idle: number
  /** How long it did something. */
  readonly active: number
}

/**
 * What strangers may use of a thread: all of the time in which it would otherwise be idle, and otherwise a quarter. What one step uses
 * beyond that is waited for before the next one.
 */
export class StrangersShare {
  #last: LoopTimes
  #credit = savedMs
  #used = 0

  constructor(times: LoopTimes) {
    this.#last = times
  }

  /** Whether a step may be taken. */
  isOpen(times: LoopTimes): boolean {
    const idle = times.idle - this.#last.idle
    const others = Math.max(0, times.active - this.#last.active - this.#used)
    this.#last = times
    this.#used = 0
    this.#credit = Math.min(savedMs, this.#credit + idle + others * besideOthers)
    return this.#credit > 0
  }

  /** A step used `ms`. */
  used(ms: number): void {
    this.#used += ms
    this.#credit -= ms
  }

  /** The shortest time after which a step may be taken. */
  get waitMs(): number {
    return Math.max(0, -this.#credit)
  }
}
