/** The keys of one token rule: inline, from a watched file, or fetched and refreshed. */
import type { TokenKeySet } from '../../../protocols/messages/identity.ts'
import { keySetFault } from '../../../src/config/shapes/key-set.ts'
import type { TokenRule } from '../../../src/identity/token-rules.ts'
import type { TokenKeys } from '../../../src/policy/token-keys.ts'
import type { KeySetFetcher } from '../../http/key-set-fetch.ts'
import { keySetRenewal } from '../../http/key-set-renewal.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Renewal } from '../../runtime/renewal.ts'
import { within } from '../../runtime/timers.ts'
import type { KeySource } from '../tokens/token-checks.ts'
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

/** Provides the keys of a rule. Once obtained, keys stay in use while their source is unavailable. */
export class RuleKeys implements KeySource {
  readonly #rule: TokenRule
  readonly #parts: KeyParts
  readonly #changed: (keys: TokenKeySet) => void
  readonly #file: KeyFile | undefined
  readonly #renewal: Renewal<string> | undefined
  #content: string | undefined
  #keys: Promise<TokenKeys> | undefined
  /** The reading of the file that a token caused and that is under way. */
  #reading: Promise<void> | undefined
  /** Time of the last refresh caused by a token. */
  #renewedAt = Number.NEGATIVE_INFINITY

  /** `changed` is called with the keys after each change. */
  constructor(rule: TokenRule, parts: KeyParts, changed: (keys: TokenKeySet) => void) {
    this.#rule = rule
    this.#parts = parts
    this.#changed = changed
    const { origin } = rule
    if (origin.type === 'inline') this.#content = origin.keys
    if (origin.type === 'file') this.#file = this.#watched(origin)
    if (origin.type === 'remote') this.#renewal = this.#fetched(origin)
    this.#renewal?.start()
  }

  /** The keys as text, as they are now. */
  get present(): TokenKeySet {
    return { keys: this.#content, isUnknown: this.isUnknown }
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
    this.#file?.close()
    this.#renewal?.close()
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
    this.#changed(this.present)
  }

  #log(level: 'info' | 'error' | 'debug', message: string): void {
    this.#parts.log('authn')[level](message)
  }

  /** The refresh under way, if any. */
  get #refreshing(): Promise<void> | undefined {
    return this.#renewal?.attempt ?? this.#reading
  }

  /** Refreshes the keys now. */
  #refresh(): void {
    this.#renewal?.renewNow()
    this.#reading = this.#file?.read().finally(() => {
      this.#reading = undefined
    })
  }

  #fetched({ source }: { readonly source: string }): Renewal<string> {
    const { issuer } = this.#rule
    return keySetRenewal({
      ...this.#parts,
      wanted: () => ({ source, asker: issuer }),
      use: (keys) => this.#take(keys),
      failed: ({ message }, failures) => {
        const consequence = this.#content === undefined ? 'they cannot be checked' : 'its last keys stay'
        this.#log(failures === 1 ? 'error' : 'debug', `keys of the tokens of ${issuer} could not be fetched: ${message}; ${consequence}`)
      },
    })
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
    this.#changed(this.present)
  }
}
