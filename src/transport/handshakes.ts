/**
 * Order and pace of TLS handshakes, which run on a thread that serves others (docs/xds-protocol.md, H1 to H5). Times are monotonic
 * milliseconds, costs are milliseconds of CPU.
 */
import { pauseAfter } from '../model/back-off.ts'

/** Bytes of a handshake that wait to be processed. */
export interface WaitingBytes {
  /** Whose costs they are: the address of a known client, the network of another (`clientKey`). */
  readonly client: string
  /** Number of bytes that the client has sent since it was last answered. */
  readonly unanswered: number
}

/** Cost from which a handshake counts as costly. An ordinary one costs 1 to 6 ms. */
export const costlyMs = 25
/** How long a handshake may take in all. */
export const unfinishedMs = 10_000
/** Maximum numbers of clients whose costs are remembered, and of addresses without the right to native handshakes; the oldest are forgotten. */
const remembered = { clients: 10_000, addresses: 10_000 }
/** What a byte of a handshake may cost at most: 0.15 s for 16 KB. */
const worstOfByteMs = 0.01
/** Time in which the remembered costs of a client halve. */
const halfLifeMs = 10_000
/** The pause of a client after its first costly handshake, doubled by each further one, the longest pause, and when they are forgotten. */
const pauses = { firstMs: 1000, longestMs: 60_000, forgottenMs: 600_000 }
/** The most time that a share may have saved. */
const savedMs = 20
/** How long an address has no right to native handshakes, doubled each time, at most; and how many such addresses within `firstMs` take it from all. */
const withoutNative = { firstMs: 600_000, longestMs: 86_400_000, all: 4 }

interface ClientRecord {
  /** Cost of its handshakes, halved every {@link halfLifeMs}, and the time of this value. */
  spentMs: number
  at: number
  /** Number of costly handshakes, and until when the client pauses for them. */
  costly: number
  until: number
}

/** Chooses whose handshake goes on: the client that cost least, counting what the waiting bytes may cost at most. */
export class HandshakeOrder {
  readonly #records = new Map<string, ClientRecord>()

  /** Returns the bytes to process next; undefined if nothing waits, or all that waits pauses. Those that wait longest come first if equal. */
  next<Waiting extends WaitingBytes>(waiting: Iterable<Waiting>, now: number): Waiting | undefined {
    let first: Waiting | undefined
    let least = Number.POSITIVE_INFINITY
    let client: string | undefined
    let spent = 0
    for (const each of waiting) {
      // Many connections of one client arrive one after another.
      if (each.client !== client) {
        client = each.client
        spent = this.pauseMs(client, now) > 0 ? Number.POSITIVE_INFINITY : this.#spent(client, now)
      }
      const cost = spent + each.unanswered * worstOfByteMs
      if (cost >= least) continue
      least = cost
      first = each
    }
    return first
  }

  /** How long a client still pauses. */
  pauseMs(client: string, now: number): number {
    return Math.max(0, (this.#records.get(client)?.until ?? 0) - now)
  }

  /** Part of a handshake of a client cost `ms`. */
  spent(client: string, ms: number, now: number): void {
    const record = this.#record(client, now)
    record.spentMs = this.#spent(client, now) + ms
    record.at = now
  }

  /** A handshake of a client cost `ms` in all, whether it was finished or not. Returns whether it was costly. */
  ended(client: string, ms: number, now: number): boolean {
    if (ms < costlyMs) return false
    const record = this.#record(client, now)
    if (now - record.until > pauses.forgottenMs) record.costly = 0
    record.costly++
    record.until = now + pauseAfter(record.costly, pauses)
    return true
  }

  #spent(client: string, now: number): number {
    const record = this.#records.get(client)
    return record ? record.spentMs * 0.5 ** ((now - record.at) / halfLifeMs) : 0
  }

  #record(client: string, now: number): ClientRecord {
    const record = this.#records.get(client) ?? { spentMs: 0, at: now, costly: 0, until: 0 }
    this.#records.delete(client)
    this.#records.set(client, record)
    if (this.#records.size > remembered.clients) this.#records.delete(this.#records.keys().next().value as string)
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
 * What some clients may use of a thread: all of the time in which it would otherwise be idle, and otherwise a share. What one step uses
 * beyond that is waited for before the next one.
 */
export class LoopShare {
  /** Time of these clients for each millisecond of others. */
  readonly #besideOthers: number
  #last: LoopTimes
  #credit = savedMs
  #used = 0

  /** `share`: a part of 1. */
  constructor(share: number, times: LoopTimes) {
    this.#besideOthers = share / (1 - share)
    this.#last = times
  }

  /** Whether a step may be taken. */
  isOpen(times: LoopTimes): boolean {
    const idle = times.idle - this.#last.idle
    const others = Math.max(0, times.active - this.#last.active - this.#used)
    this.#last = times
    this.#used = 0
    this.#credit = Math.min(savedMs, this.#credit + idle + others * this.#besideOthers)
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

/**
 * Which addresses may do native handshakes, whose bytes nobody counts before OpenSSL has them. An address that took more than an ordinary
 * handshake needs has no such right for ten minutes, each time twice as long, up to a day; when several did, nobody has for ten minutes.
 */
export class NativeRight {
  readonly #withdrawn = new Map<string, { readonly until: number; readonly times: number }>()
  #lately: number[] = []

  has(address: string, now: number): boolean {
    return now >= (this.#withdrawn.get(address)?.until ?? 0) && this.#recent(now).length < withoutNative.all
  }

  /** Withdraws the right of an address. */
  withdraw(address: string, now: number): void {
    const times = (this.#withdrawn.get(address)?.times ?? 0) + 1
    this.#withdrawn.delete(address)
    this.#withdrawn.set(address, { times, until: now + pauseAfter(times, withoutNative) })
    if (this.#withdrawn.size > remembered.addresses) this.#withdrawn.delete(this.#withdrawn.keys().next().value as string)
    this.#lately = [...this.#recent(now), now].slice(-withoutNative.all)
  }

  #recent(now: number): readonly number[] {
    return this.#lately.filter((at) => now - at < withoutNative.firstMs)
  }
}
