/**
 * The state machine of a workload's secrets: the certificate and roots that can be served, and when to request a certificate
 * (docs/certificates.md, N1 to N7).
 */
import type { Issued } from './issued.ts'
import { renewalDelay, retryDelay } from './renewal.ts'
import { type PairSecret, pairSecret, type RootsSecret, rootsSecret } from './secret-resources.ts'

/**
 * A point in time by both clocks, in milliseconds. Expiry dates are compared with the wall clock, which may be set; delays are measured
 * with the monotonic clock.
 */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/** A certificate with its key. */
export interface Pair extends PairSecret {
  /** Unix milliseconds. */
  readonly notAfter: number
  readonly identity: string
}

/** The state machine. At any time it waits for the renewal, has one call in progress, or waits after a failed call. */
export class WorkloadSecrets {
  readonly #ratio: number
  #pair: Pair | undefined
  #roots: RootsSecret | undefined
  /**
   * When the pair is renewed: as soon as either clock has reached it. The monotonic clock stops while the machine sleeps, and the wall
   * clock may be set back.
   */
  #renewAt: Moment | undefined
  #isAsking = false
  #failures = 0
  /** The earliest time of the next call after a failed one, by the monotonic clock. */
  #retryAt = 0

  /** `ratio` is `SECRET_GRACE_PERIOD_RATIO`. */
  constructor(ratio: number) {
    this.#ratio = ratio
  }

  /** The number of failed calls since the last success. */
  get failures(): number {
    return this.#failures
  }

  /** The roots of the last response, or those announced since. */
  get roots(): RootsSecret | undefined {
    return this.#roots
  }

  /** The pair. Undefined after its expiry, when peers would reject it. */
  pair({ wall }: Moment): Pair | undefined {
    return this.#pair && this.#pair.notAfter > wall ? this.#pair : undefined
  }

  /** The delay until a certificate must be requested, in milliseconds; 0 when it is due, infinite while a call is in progress. */
  wait(now: Moment): number {
    if (this.#isAsking) return Number.POSITIVE_INFINITY
    const renewal = this.#renewAt ? Math.min(this.#renewAt.wall - now.wall, this.#renewAt.monotonic - now.monotonic) : 0
    const retry = this.#failures === 0 ? 0 : this.#retryAt - now.monotonic
    return Math.max(0, renewal, retry)
  }

  /** Records that a call has begun. */
  asked(): void {
    this.#isAsking = true
  }

  /** Records an issued certificate and its private key (PEM). `chance` is a random number from 0 to 1. */
  issued(issued: Issued, key: string, now: Moment, chance: number): void {
    this.#isAsking = false
    this.#failures = 0
    this.#renewIn(renewalDelay(issued.notAfter - now.wall, this.#ratio, chance), now)
    this.#take(issued, key)
    this.useRoots(issued.roots)
  }

  /**
   * Restores a certificate that was issued at the Unix time `issuedAt` in milliseconds, before this process began. Its renewal is scheduled
   * from that time.
   */
  restored(issued: Issued, key: string, issuedAt: number, now: Moment, chance: number): void {
    const begin = Math.min(issuedAt, now.wall)
    this.#renewIn(Math.max(0, begin + renewalDelay(issued.notAfter - begin, this.#ratio, chance) - now.wall), now)
    this.#take(issued, key)
    this.useRoots(issued.roots)
  }

  /** Sets the roots (PEM) without changing the pair. */
  useRoots(roots: string): void {
    this.#roots = rootsSecret(roots)
  }

  /** Makes the renewal of the pair due after `delay` milliseconds, unless it is due earlier. */
  renewWithin(delay: number, now: Moment): void {
    if (this.wait(now) > delay) this.#renewIn(delay, now)
  }

  #renewIn(delay: number, now: Moment): void {
    this.#renewAt = { wall: now.wall + delay, monotonic: now.monotonic + delay }
  }

  #take({ chain, notAfter, identity }: Issued, key: string): void {
    this.#pair = { ...pairSecret({ chain, key }), notAfter, identity }
  }

  /** Ends the delay after a failed call, so that the next call may be made now. */
  retryNow(): void {
    this.#retryAt = 0
  }

  /**
   * Records a failed call. `askedMs` is the delay that the authority asked for. Returns the delay before the next call, in milliseconds.
   */
  failed(askedMs: number, now: Moment, chance: number): number {
    this.#isAsking = false
    this.#failures++
    const rest = (this.pair(now)?.notAfter ?? now.wall) - now.wall
    const delay = retryDelay(this.#failures, askedMs, rest, chance)
    this.#retryAt = now.monotonic + delay
    return delay
  }
}
