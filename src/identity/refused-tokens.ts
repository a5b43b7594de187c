/** Remembers tokens whose signature no key of a set fits, so that each is verified once. */
import { createHash } from 'node:crypto'

/** Maximum number of tokens that are remembered for one key set. */
const mostTokens = 4096

/** The refused tokens of one key set, by their digest. The result of a verification depends on nothing but the token and the keys. */
export class RefusedTokens {
  /** The one that was refused or asked for last at the end. */
  readonly #digests = new Set<string>()

  /** Whether a token was refused. */
  has(token: string): boolean {
    const digest = digestOf(token)
    if (!this.#digests.delete(digest)) return false
    this.#digests.add(digest)
    return true
  }

  /** Remembers a token. The one that was not presented for longest is forgotten. */
  add(token: string): void {
    this.#digests.add(digestOf(token))
    const [oldest] = this.#digests
    if (this.#digests.size > mostTokens && oldest !== undefined) this.#digests.delete(oldest)
  }
}

const digestOf = (token: string): string => createHash('sha256').update(token).digest('base64')
