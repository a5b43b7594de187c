/** Tokens that were had, each for the one who brought the token that it was exchanged for (docs/agent.md, T3). */
import { createHash } from 'node:crypto'
import type { Expiring } from './cloud-exchange.ts'
import type { TokenRequest } from './token-request.ts'

/** Tokens that are kept at a time. */
const most = 64
/** How long before its end a token is exchanged anew, in milliseconds. */
const graceMs = 300_000

/** What is known of one exchange; times in Unix milliseconds. */
export interface Exchanged {
  readonly issuedAt: number
  readonly federated: Expiring
  readonly access: Expiring
}

/** What a request is remembered by: whoever does not have the subject's token gets nothing from here. */
export function requestKey({ subjectToken, scope }: TokenRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([subjectToken, scope]))
    .digest('base64')
}

/** A bounded number of exchanges, the one that was used least recently going first. */
export class TokenCache {
  readonly #exchanged = new Map<string, Exchanged>()

  /** The exchange of a request, whose access token is good for longer than `leastMs`; by default one that need not be exchanged anew. */
  get(key: string, now: number, leastMs = graceMs): Exchanged | undefined {
    const found = this.#exchanged.get(key)
    if (!found || found.access.expiresAt - now <= leastMs) return undefined
    this.#exchanged.delete(key)
    this.#exchanged.set(key, found)
    return found
  }

  /** Remembers an exchange. */
  set(key: string, exchanged: Exchanged): void {
    this.#exchanged.delete(key)
    this.#exchanged.set(key, exchanged)
    for (const oldest of this.#exchanged.keys()) {
      if (this.#exchanged.size <= most) break
      this.#exchanged.delete(oldest)
    }
  }

  /** What `/stsStatus` shows: everything but the tokens. */
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
