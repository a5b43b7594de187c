/**
 * Verifies workload tokens (docs/identity.md, K1 to K9), on the thread that was presented them. Keys are public, so every thread may have
 * them; the authenticator obtains them. No tokens and no callers are kept.
 */
import type { Caller, TokenAnswer, TokenQuestion, TokenVerdict } from '../../../protocols/messages/identity.ts'
import { RefusedTokens } from '../../../src/identity/refused-tokens.ts'
import { workloadId } from '../../../src/identity/spiffe-id.ts'
import { checkClaims, longestToken, rulesFor } from '../../../src/identity/token-check.ts'
import type { TokenRule } from '../../../src/identity/token-rules.ts'
import { described, type ReadToken, readToken } from '../../../src/policy/signed-token.ts'
import type { TokenKeys } from '../../../src/policy/token-keys.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'

/**
 * Bounds of signature checks: how many at a time, which leaves threads of Node's pool to other work, and how many tokens wait for one, with
 * their size in bytes. Clients take turns, and one has at most half of those under way.
 */
const signatureChecks = { atOnce: 16, ofClient: 8, waiting: 1024, bytes: 8_388_608 }

/** Provides the keys of a token rule. */
export interface KeySource {
  /** Whether keys that are not there may be at the issuer: they could not be fetched or read. */
  readonly isUnknown: boolean
  /** Returns the keys. The first ones are waited for, for a limited time. Undefined when none could be obtained. */
  ready(): Promise<TokenKeys | undefined>
  /** Obtains the keys again for a token that names an unknown key, unless that was done recently, and returns them. */
  renewed(): Promise<TokenKeys | undefined>
}

/** Dependencies of {@link TokenChecks}. */
export interface TokenCheckParts {
  readonly rules: readonly TokenRule[]
  keysOf(rule: TokenRule): KeySource
  /** The trust domain of the mesh; undefined while it is not known. */
  trustDomain(): string | undefined
  /** Decides on a token that no rule accepts; undefined where nobody else can. */
  readonly review: TokenReview | undefined
  readonly log: Logger
  readonly metrics: MetricRegistry
}

type AcceptedToken = Exclude<TokenVerdict, { refused: string }>

const refuse = (refused: string, unavailable = false): TokenVerdict => ({ refused, unavailable })

/** Decides on a token, of the cluster that the call names. Never rejects. */
export type TokenReview = (token: ReadToken, clusterId: string | undefined, asker: TokenAsker) => Promise<TokenVerdict>

/** Whose token it is, and whether anybody waits for the verdict. */
export interface TokenAsker {
  readonly client: string
  readonly signal: AbortSignal
}

/** Verifies tokens. */
export class TokenChecks {
  readonly #parts: TokenCheckParts
  readonly #signatureChecks = new FairWork(signatureChecks)
  readonly #refused = new WeakMap<TokenKeys, RefusedTokens>()
  readonly #outcomes: Counter<'authenticator' | 'outcome'>

  constructor(parts: TokenCheckParts) {
    this.#parts = parts
    this.#outcomes = new Counter({
      name: 'pilot_token_authentications_total',
      help: 'tokens of workloads, by authenticator and outcome',
      labelNames: ['authenticator', 'outcome'],
      registers: [parts.metrics],
    })
  }

  /** Returns whose token it is. Refusals are logged by the asker, which knows the client's address. Never rejects. */
  async check({ token, clusterId, service, client = '' }: TokenQuestion, signal: AbortSignal): Promise<TokenAnswer> {
    if (typeof token !== 'string' || token.length > longestToken)
      return this.#count('none', refuse(`not a token: longer than ${longestToken} characters`))
    const read = readToken(token)
    if (typeof read === 'string') return this.#count('none', refuse(read))
    const { review } = this.#parts
    const rules = rulesFor(this.#parts.rules, read, service)
    if (rules.length === 0 && !review) return this.#count('none', refuse(`no rule for the issuer ${described(read.claims.iss)}`))
    // All rules at once: an issuer that does not answer delays no token that another rule accepts.
    const asker = { client, signal }
    const checks = rules.map(async (rule) => this.#count(rule.authenticator, await this.#byRule(read, rule, asker), rule.issuer))
    const accepted = await firstAccepted(checks)
    if (accepted) return accepted
    const answers = (await Promise.all(checks)).flatMap((answer) => ('caller' in answer ? [] : answer))
    if (review) {
      const answer = this.#count('token-review', await review(read, clusterId, asker))
      if ('caller' in answer) return answer
      answers.push(answer)
    }
    const unavailable = answers.some((answer) => answer.unavailable)
    return { refused: answers.map(({ refused }) => refused).join('; '), ...(unavailable ? { unavailable } : {}) }
  }

  async #byRule(token: ReadToken, rule: TokenRule, asker: TokenAsker): Promise<TokenVerdict> {
    const claims = checkClaims(token, rule, wallClockMs() / 1000)
    if ('refused' in claims) return refuse(claims.refused)
    const source = this.#parts.keysOf(rule)
    let keys = await source.ready()
    if (!keys || (token.kid !== undefined && !keys.has(token.kid))) keys = await source.renewed()
    if (asker.signal.aborted) return refuse('nobody waits for the answer', true)
    if (!keys) return refuse('there are no keys of the issuer', source.isUnknown)
    const { kid } = token
    const hasSigned = await this.#hasSigned(token, keys, asker)
    if (hasSigned === refusedJob) return refuse(`more than ${signatureChecks.waiting} tokens wait`, true)
    if (!hasSigned) return refuse(`no key of the issuer fits its signature${kid === undefined ? '' : `, kid ${described(kid)}`}`)
    return claims
  }

  /** Whether a token was signed with one of the keys. A token that was not is verified once. */
  async #hasSigned(token: ReadToken, keys: TokenKeys, { client, signal }: TokenAsker): Promise<boolean | typeof refusedJob> {
    const refused = this.#refused.get(keys) ?? new RefusedTokens()
    this.#refused.set(keys, refused)
    if (refused.has(token.text)) return false
    const hasSigned = await this.#signatureChecks.run({
      client,
      bytes: token.text.length,
      run: () => keys.haveSigned(token),
      isGone: () => signal.aborted,
    })
    if (hasSigned === false) refused.add(token.text)
    return hasSigned
  }

  /** Converts the result of an authenticator to an answer, and counts it. */
  #count(authenticator: string, verdict: TokenVerdict, issuer?: string): TokenAnswer {
    const method = issuer === undefined ? authenticator : `${authenticator} ${issuer}`
    const answer = 'refused' in verdict ? verdict : this.#caller(method, verdict)
    if ('caller' in answer) {
      this.#outcomes.inc({ authenticator, outcome: 'accepted' })
      this.#parts.log('authn').debug(`${method}: ${answer.caller.identities.join(', ')}`)
      return answer
    }
    const { refused, unavailable } = answer
    this.#outcomes.inc({ authenticator, outcome: unavailable ? 'unavailable' : 'refused' })
    this.#parts.log('authn').debug(`${method}: ${refused}`)
    return { refused: `${method}: ${refused}`, ...(unavailable ? { unavailable } : {}) }
  }

  #caller(method: string, { account, expiresAt, cluster }: AcceptedToken): { readonly caller: Caller } | { refused: string; unavailable: boolean } {
    const trustDomain = this.#parts.trustDomain()
    if (trustDomain === undefined) return { refused: 'the trust domain is not known yet', unavailable: true }
    return { caller: { identities: [workloadId(trustDomain, account)], via: 'token', method, expiresAt, ...(cluster && { cluster }) } }
  }
}

/** Resolves with the first answer that names a caller, undefined when none does. */
function firstAccepted(checks: readonly Promise<TokenAnswer>[]): Promise<TokenAnswer | undefined> {
  return new Promise((resolve, reject) => {
    Promise.all(checks.map((check) => check.then((answer) => 'caller' in answer && resolve(answer)))).then(() => resolve(undefined), reject)
  })
}
