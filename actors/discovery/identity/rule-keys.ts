/** The keys of one token rule: inline, from a watched file, or fetched and refreshed. */
import { keySetFault } from '../../../src/config/shapes/key-set.ts'
import type { TokenRule } from '../../../src/identity/token-rules.ts'
import type { TokenKeys } from '../../../src/policy/token-keys.ts'
import type { KeySetFetcher } from '../../http/key-set-fetch.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { KeyFile } from './key-file.ts'

/** Dependencies shared by the keys of all rules. */
export interface KeyParts {
  readonly fetcher: KeySetFetcher
  readonly log: Logger
  /** Refresh interval of fetched keys, in milliseconds. */
  readonly refreshMs: number
}

/** Maximum time that a token waits for keys that are being fetched, in milliseconds. */
const waitLimitMs = 3000
/** Minimum interval between two refreshes caused by tokens with unknown key ids, in milliseconds: for fetched keys and for files. */
const minRefreshMs = { remote: 30_000, file: 1000 }
/** Maximum retry delay after failed fetches, in milliseconds; the first delay is a second, doubled each time. */
const longestRetryMs = 60_000

/** Provides the keys of a rule. Once obtained, keys stay in use while their source is unavailable. */
export class RuleKeys {
  readonly #rule: TokenRule
  readonly #parts: KeyParts
  readonly #file: KeyFile | undefined
  #content: string | undefined
  #keys: Promise<TokenKeys> | undefined
  /** The refresh under way, if any. */
  #refreshing: Promise<void> | undefined
  /** Time of the last refresh caused by a token. */
  #renewedAt = Number.NEGATIVE_INFINITY
  #failures = 0
  #timer: Timer | undefined
  #isClosed = false

  constructor(rule: TokenRule, parts: KeyParts) {
    this.#rule = rule
    this.#parts = parts
    const { origin } = rule
    if (origin.type === 'inline') this.#content = origin.keys
    if (origin.type === 'file') this.#file = this.#watched(origin)
    if (origin.type === 'remote') this.#refresh()
  }

  /** Whether keys that are not there may be at the issuer: they could not be fetched or read. */
  get isUnknown(): boolean {
    return this.#content === undefined && (this.#file ? this.#file.isUnread : this.#rule.origin.type === 'remote')
  }

  /** Returns the keys. The first fetch is waited for, for a limited time. Undefined when no keys could be obtained. */
  async ready(): Promise<TokenKeys | undefined> {
    if (this.#content === undefined && this.#refreshing) await within(waitLimitMs, this.#refreshing)
    return this.#current()
  }

  /** Refreshes the keys for a token that names an unknown key, unless that was done recently, and returns them. */
  async renewed(): Promise<TokenKeys | undefined> {
    const { type } = this.#rule.origin
    if (type === 'inline') return this.#current()
    if (!this.#refreshing && monotonicMs() - this.#renewedAt >= minRefreshMs[type]) {
      this.#renewedAt = monotonicMs()
      this.#refresh()
    }
    if (this.#refreshing) await within(waitLimitMs, this.#refreshing)
    return this.#current()
  }

  close(): void {
    this.#isClosed = true
    this.#file?.close()
    this.#timer?.cancel()
  }

  /** Returns the parsed keys. The token library is loaded with the first one. */
  async #current(): Promise<TokenKeys | undefined> {
    const content = this.#content
    if (content === undefined) return undefined
    this.#keys ??= import('../../../src/policy/token-keys.ts').then(({ TokenKeys }) => new TokenKeys(content, 'mesh'))
    return this.#keys
  }

  #take(content: string): void {
    if (content === this.#content) return
    this.#log('info', `keys of the tokens of ${this.#rule.issuer} ${this.#content === undefined ? 'are there' : 'changed'}`)
    this.#content = content
    this.#keys = undefined
  }

  #log(level: 'info' | 'error' | 'debug', message: string): void {
    this.#parts.log('authn')[level](message)
  }

  /** Refreshes the keys now. */
  #refresh(): void {
    this.#timer?.cancel()
    const refreshing = (this.#file ? this.#file.read() : this.#fetch()).finally(() => {
      this.#refreshing = undefined
    })
    this.#refreshing = refreshing
  }

  async #fetch(): Promise<void> {
    const { origin, issuer } = this.#rule
    if (origin.type !== 'remote') return
    const { fetcher, refreshMs } = this.#parts
    let next = refreshMs
    try {
      const content = await fetcher.fetch({ source: origin.source, asker: issuer, retry: this.#failures > 0 })
      if (this.#isClosed) return
      this.#failures = 0
      this.#take(content)
    } catch (error) {
      if (this.#isClosed) return
      const consequence = this.#content === undefined ? 'they cannot be checked' : 'its last keys stay'
      this.#log(
        this.#failures === 0 ? 'error' : 'debug',
        `keys of the tokens of ${issuer} could not be fetched: ${(error as Error).message}; ${consequence}`,
      )
      next = Math.min(refreshMs, longestRetryMs, 1000 * 2 ** this.#failures)
      this.#failures = Math.min(this.#failures + 1, 10)
    }
    this.#timer = after(next, () => this.#refresh())
  }

  #watched({ path, isPrivate }: { readonly path: string; readonly isPrivate: boolean }): KeyFile {
    const { issuer } = this.#rule
    return new KeyFile(path, isPrivate, {
      changed: (content) => {
        const fault = keySetFault(content)
        if (fault === undefined) this.#take(content)
        else this.#log('error', `${path}: ${fault}; ${this.#content === undefined ? `tokens of ${issuer} are refused` : 'its last keys stay'}`)
      },
      refused: (reason, why) => {
        // The local issuer has no keys until the first token is issued.
        const level = isPrivate && why === 'missing' ? 'debug' : 'error'
        // Without a usable file, tokens of the local issuer are refused: removing the file, or making it writable for others, revokes its
        // keys. A file that cannot be read at the moment does not.
        if (isPrivate && why !== 'unreadable') this.#forget()
        const refused = why === 'unreadable' ? 'cannot be checked' : 'are refused'
        this.#log(level, `${path}: ${reason}; ${this.#content === undefined ? `tokens of ${issuer} ${refused}` : 'its last keys stay'}`)
      },
      unwatchable: (directory, error) => this.#log('error', `${directory} cannot be watched: ${error.message}; it is checked every ten seconds`),
    })
  }

  #forget(): void {
    this.#content = undefined
    this.#keys = undefined
  }
}

/** Waits for a promise to settle, for a limited time. The promise must not reject. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = after(ms, resolve)
  await Promise.race([work, late])
  timer.cancel()
}
