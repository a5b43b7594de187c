/**
 * The cache of exchanged tokens. Entries are keyed by the subject token, so that a token is returned only to a caller with that subject
 * token (docs/agent.md, T3).
 */
import { createHash } from 'node:crypto'
import type { Expiring } from './cloud-exchange.ts'
import type { TokenRequest } from './token-request.ts'

/** The maximum number of cached exchanges. */
const most = 64
/** How long before its expiry a token is exchanged again, in milliseconds. */
const graceMs = 300_000

/** The tokens of one exchange. Times are Unix milliseconds. */
export interface Exchanged {
  readonly issuedAt: number
  readonly federated: Expiring
  readonly access: Expiring
}

/** Returns the cache key of a request: a hash that includes the subject token. */
export function requestKey({ subjectToken, scope }: TokenRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([subjectToken, scope]))
    .digest('base64')
}

/** An LRU cache of exchanges. */
export class TokenCache {
  readonly #exchanged = new Map<string, Exchanged>()

  /**
   * Returns the cached exchange of a request if its access token is valid for longer than `minMs`. The default excludes tokens that are
   * due to be exchanged again.
   */
  get(key: string, now: number, minMs = graceMs): Exchanged | undefined {
    const found = this.#exchanged.get(key)
    if (!found || found.access.expiresAt - now <= minMs) return undefined
    this.#exchanged.delete(key)
    this.#exchanged.set(key, found)
    return found
  }

  /** Caches an exchange. */
  set(key: string, exchanged: Exchanged): void {
    this.#exchanged.delete(key)
    this.#exchanged.set(key, exchanged)
    for (const oldest of this.#exchanged.keys()) {
      if (this.#exchanged.size <= most) break
      this.#exchanged.delete(oldest)
    }
  }

  /** Returns the page `/stsStatus`, which contains everything but the tokens. */
  status(): string {
    const tokens = [...this.#exchanged.values()].flatMap(({ issuedAt, federated, access }) => [
      shown('federated token', issuedAt, federated),
      shown('access token', issuedAt, access),
    ])
    return JSON.stringify({ tokens }, undefined, 1)
  }
}

function shown(type: string, issuedAt: number, { expiresAt }: Expiring): Readonly<Record<string, string>> {
  return { token_type: type, issue_time: new Date(issuedAt).toISOString(), expire_time: new Date(expiresAt).toISOString(), token: '' }
}
