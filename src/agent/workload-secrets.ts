/** A workload's secrets: the certificate and roots that can be served, and when the certificate is renewed (docs/certificates.md, N1, N7). */
import type { Issued } from './issued.ts'
import { longestPause, renewalDelay } from './renewal.ts'
import { type PairSecret, pairSecret, type RootsSecret, rootsSecret } from './secret-resources.ts'

/** A certificate with its key. */
export interface Pair extends PairSecret {
  /** Unix milliseconds. */
  readonly notAfter: number
  readonly identity: string
}

/** The secrets. Dates are Unix milliseconds. */
export class WorkloadSecrets {
  readonly #ratio: number
  #pair: Pair | undefined
  #roots: RootsSecret | undefined

  /** `ratio` is `SECRET_GRACE_PERIOD_RATIO`. */
  constructor(ratio: number) {
    this.#ratio = ratio
  }

  /** The roots of the last response, or those announced since. */
  get roots(): RootsSecret | undefined {
    return this.#roots
  }

  /** The pair. Undefined after its expiry, when peers would reject it. */
  pair(now: number): Pair | undefined {
    return this.#pair && this.#pair.notAfter > now ? this.#pair : undefined
  }

  /** The longest delay before a failed call is repeated, in milliseconds. */
  longestPause(now: number): number {
    return longestPause((this.pair(now)?.notAfter ?? now) - now)
  }

  /**
   * Records a certificate and its private key (PEM). Returns the delay until its renewal, in milliseconds. `issuedAt` is when it was issued,
   * before this process began if it was kept; `chance` is a random number from 0 to 1.
   */
  issued(issued: Issued, key: string, issuedAt: number, now: number, chance: number): number {
    const { chain, notAfter, identity, roots } = issued
    this.#pair = { ...pairSecret({ chain, key }), notAfter, identity }
    this.useRoots(roots)
    const begin = Math.min(issuedAt, now)
    return Math.max(0, begin + renewalDelay(notAfter - begin, this.#ratio, chance) - now)
  }

  /** Sets the roots (PEM) without changing the pair. */
  useRoots(roots: string): void {
    this.#roots = rootsSecret(roots)
  }
}
