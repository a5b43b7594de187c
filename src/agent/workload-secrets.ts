/** What an agent has of its workload's secrets, what of it may be served, and when it has to ask for a certificate (docs/certificates.md, N1 to N7). */
import type { Issued } from './issued.ts'
import { renewalDelay, retryDelay } from './renewal.ts'
import { pairName, pairSecret, rootsName, rootsSecret, type SecretResource } from './secret-resources.ts'

/** A moment by both clocks, in milliseconds: dates of certificates are compared with the wall clock, which may be set; waits are counted by the monotonic one. */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/** A certificate with its key. */
export interface Pair {
  readonly chain: string
  /** PEM. */
  readonly key: string
  readonly notAfter: number
  readonly identity: string
}

/** The state machine. It waits, has one call under way, or waits after a failed one. */
export class WorkloadSecrets {
  readonly #ratio: number
  #pair: Pair | undefined
  #pairSecret: SecretResource | undefined
  #rootsSecret: SecretResource | undefined
  #roots: string | undefined
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

  /** The roots of the last answer, PEM. */
  get roots(): string | undefined {
    return this.#roots
  }

  /** The pair, unless it has expired. */
  pair({ wall }: Moment): Pair | undefined {
    return this.#pair && this.#pair.notAfter > wall ? this.#pair : undefined
  }

  /** Secrets that may be served, by name. A pair that has expired is not among them: no peer takes it. */
  served(now: Moment): ReadonlyMap<string, SecretResource> {
    const served = new Map<string, SecretResource>()
    if (this.#pairSecret && this.pair(now)) served.set(pairName, this.#pairSecret)
    if (this.#rootsSecret) served.set(rootsName, this.#rootsSecret)
    return served
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
  issued({ chain, roots, notAfter, identity }: Issued, key: string, now: Moment, chance: number): void {
    const delay = renewalDelay(notAfter - now.wall, this.#ratio, chance)
    this.#renewAt = { wall: now.wall + delay, monotonic: now.monotonic + delay }
    this.#pair = { chain, key, notAfter, identity }
    this.#pairSecret = pairSecret(chain, key)
    this.#rootsSecret = rootsSecret(roots)
    this.#roots = roots
    this.#isAsking = false
    this.#failures = 0
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
