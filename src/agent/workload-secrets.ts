/** What an agent has of its workload's secrets, what of it may be served, and when it has to ask for a certificate (docs/certificates.md, N1 to N7). */
import type { Issued } from './issued.ts'
import { renewalDelay, retryDelay } from './renewal.ts'
import { type PairSecret, pairSecret, type RootsSecret, rootsSecret } from './secret-resources.ts'

/** A moment by both clocks, in milliseconds: dates of certificates are compared with the wall clock, which may be set; waits are counted by the monotonic one. */
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

/** The state machine. It waits, has one call under way, or waits after a failed one. */
export class WorkloadSecrets {
  readonly #ratio: number
  #pair: Pair | undefined
  #roots: RootsSecret | undefined
  /** When the pair is renewed. Whichever clock says so first counts: one does not run while the machine sleeps, the other may be set back. */
  #renewAt: Moment | undefined
  #isAsking = false
  #failures = 0
  /** Monotonic. */
  #retryAt = 0

  /** `ratio` is `SECRET_GRACE_PERIOD_RATIO`. */
  constructor(ratio: number) {
    this.#ratio = ratio
  }

  /** Failed calls since the last that succeeded. */
  get failures(): number {
    return this.#failures
  }

  /** The roots of the last answer. */
  get roots(): RootsSecret | undefined {
    return this.#roots
  }

  /** The pair, unless it has expired: no peer takes it then. */
  pair({ wall }: Moment): Pair | undefined {
    return this.#pair && this.#pair.notAfter > wall ? this.#pair : undefined
  }

  /** Milliseconds until a certificate has to be asked for; 0 for now, infinite while it is being asked for. */
  wait(now: Moment): number {
    if (this.#isAsking) return Number.POSITIVE_INFINITY
    const renewal = this.#renewAt ? Math.min(this.#renewAt.wall - now.wall, this.#renewAt.monotonic - now.monotonic) : 0
    const retry = this.#failures === 0 ? 0 : this.#retryAt - now.monotonic
    return Math.max(0, renewal, retry)
  }

  /** A certificate is being asked for. */
  asked(): void {
    this.#isAsking = true
  }

  /** A certificate was issued for a key (PEM). `chance` is from 0 to 1. */
  issued(issued: Issued, key: string, now: Moment, chance: number): void {
    this.#isAsking = false
    this.#failures = 0
    this.#renewIn(renewalDelay(issued.notAfter - now.wall, this.#ratio, chance), now)
    this.#take(issued, key)
    this.restoreRoots(issued.roots)
  }

  /** A certificate is there that was issued at the Unix time `issuedAt` in milliseconds, before this process began; it is renewed in time. */
  restored(issued: Issued, key: string, issuedAt: number, now: Moment, chance: number): void {
    const begin = Math.min(issuedAt, now.wall)
    this.#renewIn(Math.max(0, begin + renewalDelay(issued.notAfter - begin, this.#ratio, chance) - now.wall), now)
    this.#take(issued, key)
    this.restoreRoots(issued.roots)
  }

  /** These roots (PEM) are the last that are known. */
  restoreRoots(roots: string): void {
    this.#roots = rootsSecret(roots)
  }

  /** The pair is renewed now. */
  renewNow(now: Moment): void {
    this.#renewIn(0, now)
  }

  #renewIn(delay: number, now: Moment): void {
    this.#renewAt = { wall: now.wall + delay, monotonic: now.monotonic + delay }
  }

  #take({ chain, notAfter, identity }: Issued, key: string): void {
    this.#pair = { ...pairSecret({ chain, key }), notAfter, identity }
  }

  /** A call that failed may be made again now. */
  retryNow(): void {
    this.#retryAt = 0
  }

  /** No certificate could be had; the authority asked not to be asked again for `askedMs`. Returns for how many milliseconds is waited. */
  failed(askedMs: number, now: Moment, chance: number): number {
    this.#isAsking = false
    this.#failures++
    const rest = (this.pair(now)?.notAfter ?? now.wall) - now.wall
    const delay = retryDelay(this.#failures, askedMs, rest, chance)
    this.#retryAt = now.monotonic + delay
    return delay
  }
}
