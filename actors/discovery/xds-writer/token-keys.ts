/** The keys of token rules in a writer: those that the authenticator has sent, and those that it is asked for. */
import type { TokenKeySet, TokenKeysEvent, TokenKeysQuestion } from '../../../protocols/messages/identity.ts'
import type { TokenRule } from '../../../src/identity/token-rules.ts'
import type { TokenKeys } from '../../../src/policy/token-keys.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { KeySource } from '../tokens/token-checks.ts'

/** Minimum interval between two questions that tokens with unknown key ids cause, in milliseconds. */
const minRenewalMs = 1000

/** Asks the authenticator for the keys of a rule. */
export type AskForKeys = (question: TokenKeysQuestion) => Promise<TokenKeySet>

/** The keys of all rules. */
export class WriterTokenKeys {
  readonly #keys: readonly RuleKeys[]
  readonly #rules: readonly TokenRule[]

  constructor(rules: readonly TokenRule[], ask: AskForKeys) {
    this.#rules = rules
    this.#keys = rules.map(({ origin }, rule) => new RuleKeys(origin.type === 'inline', (renewed) => ask({ rule, renewed })))
  }

  /** Takes keys that the authenticator sent. */
  receive({ rule, ...keys }: TokenKeysEvent): void {
    this.#keys[rule]?.take(keys)
  }

  /** Returns the source of the keys of a rule. */
  of(rule: TokenRule): KeySource {
    return this.#keys[this.#rules.indexOf(rule)] as RuleKeys
  }
}

/** The keys of one rule. Rejects when the authenticator has to be asked and does not answer. */
class RuleKeys implements KeySource {
  readonly #isInline: boolean
  readonly #ask: (renewed: boolean) => Promise<TokenKeySet>
  #held: TokenKeySet = { keys: undefined, isUnknown: true }
  #parsed: Promise<TokenKeys> | undefined
  /** The question under way, for which all tokens wait that need its answer. */
  #question: Promise<void> | undefined
  #renewedAt = Number.NEGATIVE_INFINITY

  constructor(isInline: boolean, ask: (renewed: boolean) => Promise<TokenKeySet>) {
    this.#isInline = isInline
    this.#ask = ask
  }

  get isUnknown(): boolean {
    return this.#held.isUnknown
  }

  /** An authenticator that has just started may not know the keys yet: the ones that were there before stay. */
  take(keys: TokenKeySet): void {
    if (keys.keys === undefined && keys.isUnknown && this.#held.keys !== undefined) return
    if (keys.keys !== this.#held.keys) this.#parsed = undefined
    this.#held = keys
  }

  async ready(): Promise<TokenKeys | undefined> {
    if (this.#held.keys === undefined) await this.#asked(false)
    return this.#current()
  }

  async renewed(): Promise<TokenKeys | undefined> {
    if (this.#question) await this.#question
    else if (!this.#isInline && monotonicMs() - this.#renewedAt >= minRenewalMs) {
      this.#renewedAt = monotonicMs()
      await this.#asked(true)
    }
    return this.#current()
  }

  #asked(renewed: boolean): Promise<void> {
    this.#question ??= this.#ask(renewed)
      .then((keys) => this.take(keys))
      .finally(() => {
        this.#question = undefined
      })
    return this.#question
  }

  /** Returns the parsed keys. The token library is loaded with the first one. */
  async #current(): Promise<TokenKeys | undefined> {
    const { keys } = this.#held
    if (keys === undefined) return undefined
    this.#parsed ??= import('../../../src/policy/token-keys.ts').then(({ TokenKeys }) => new TokenKeys(keys, 'mesh'))
    return this.#parsed
  }
}
