/**
 * The actor that verifies workload tokens (docs/identity.md, K1 to K9) and obtains the roots of other trust domains (B1 to B4). Consumes
 * `MeshNamesChanged` from the file watcher; emits `TrustChanged` to the writers; answers `authenticate`. It caches keys and roots, but no
 * tokens and no callers.
 */
import type { Caller, MeshNamesEvent, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { RefusedTokens } from '../../../src/identity/refused-tokens.ts'
import { type ServiceAccount, workloadId } from '../../../src/identity/spiffe-id.ts'
import { checkClaims, longestToken, rulesFor } from '../../../src/identity/token-check.ts'
import { reviewAudiences } from '../../../src/identity/token-review.ts'
import { keyUrlFault, localIssuer, type TokenRule } from '../../../src/identity/token-rules.ts'
import { described, type ReadToken, readToken } from '../../../src/policy/signed-token.ts'
import type { TokenKeys } from '../../../src/policy/token-keys.ts'
import { FetchThread } from '../../http/fetch-thread.ts'
import { fetchBounds, KeySetFetcher } from '../../http/key-set-fetch.ts'
import { outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour, BoundedAnswers } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter } from '../../runtime/metrics.ts'
import { BundleFetches } from './bundle-fetches.ts'
import { RuleKeys } from './rule-keys.ts'
import type { AuthenticatorConfig } from './settings.ts'
import type { ReviewVerdict, TokenReviewer } from './token-reviewer.ts'

/** Timeout of a fetch of keys or roots, in milliseconds. */
const fetchMs = 4000
/**
 * Bounds of signature checks: how many at a time, which leaves threads of Node's pool to other work, and how many tokens wait for one, with
 * their size in bytes. Clients take turns, and one has at most half of those under way.
 */
const signatureChecks = { atOnce: 16, ofClient: 8, waiting: 1024, bytes: 8_388_608 }

/** The result of one authenticator for a token. */
type Verdict = ReviewVerdict
const refuse = (refused: string, unavailable = false): Verdict => ({ refused, unavailable })

/** Whose token it is, and whether anybody waits for the verdict. */
interface TokenAsker {
  readonly client: string
  readonly signal: AbortSignal
}

class Authenticator implements Behaviour<MeshNamesEvent, TrustEvent> {
  readonly asks: BoundedAnswers<'authenticate'> = {
    authenticate: (question, { signal } = patient) => this.#authenticate(question, signal),
  }
  readonly #context: ActorContext<AuthenticatorConfig>
  readonly #reviewer: TokenReviewer | undefined
  readonly #keys: ReadonlyMap<TokenRule, RuleKeys>
  readonly #bundles: BundleFetches
  /** A thread of its own, so that what users have fetched never delays what the operator of the mesh names. */
  readonly #fetchThread = new FetchThread()
  readonly #signatureChecks = new FairWork(signatureChecks)
  readonly #refused = new WeakMap<TokenKeys, RefusedTokens>()
  readonly #outcomes: Counter<'authenticator' | 'outcome'>
  #names: MeshNamesEvent | undefined

  constructor(context: ActorContext<AuthenticatorConfig>, reviewer: TokenReviewer | undefined) {
    const { config, log, metrics } = context
    const { features, rules, endpoints } = config
    this.#context = context
    this.#reviewer = reviewer
    const bounds = fetchBounds(fetchMs, features.PILOT_JWKS_ALLOWED_ADDRESSES, (reason) => log('authn').error(reason))
    const requests = outgoingMetrics(metrics)
    const thread = this.#fetchThread
    const parts = {
      fetcher: new KeySetFetcher({ bounds, thread, metrics, requests: requests('jwks'), urlFault: keyUrlFault }),
      log,
      refreshMs: features.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL,
    }
    this.#keys = new Map(rules.map((rule) => [rule, new RuleKeys(rule, parts)]))
    this.#bundles = new BundleFetches(endpoints, { bounds, thread, log, metrics, requests: requests('spiffe-bundle') })
    this.#outcomes = new Counter({
      name: 'pilot_token_authentications_total',
      help: 'tokens of workloads, by authenticator and outcome',
      labelNames: ['authenticator', 'outcome'],
      registers: [metrics],
    })
    for (const rule of rules) log('authn').info(describe(rule))
    if (!reviewer) log('authn').info('tokens of an orchestrator are not accepted: there is no orchestrator to review them')
  }

  linked(peer: Peer<TrustEvent>): void {
    if (peer.kind === 'xds-writer') this.#bundles.linked(peer)
  }

  unlinked(peer: Peer<TrustEvent>): void {
    if (peer.kind === 'xds-writer') this.#bundles.unlinked(peer)
  }

  receive(names: MeshNamesEvent): void {
    this.#names = names
  }

  async drain(): Promise<void> {
    for (const keys of this.#keys.values()) keys.close()
    this.#bundles.close()
    this.#fetchThread.close()
  }

  /** Refusals are logged by the asking actor, which knows the client's address. */
  async #authenticate({ token, clusterId, service, client = '' }: TokenQuestion, signal: AbortSignal): Promise<TokenAnswer> {
    if (typeof token !== 'string' || token.length > longestToken)
      return this.#count('none', refuse(`not a token: longer than ${longestToken} characters`))
    const read = readToken(token)
    if (typeof read === 'string') return this.#count('none', refuse(read))
    const rules = rulesFor(this.#context.config.rules, read, service)
    if (rules.length === 0 && !this.#reviewer) return this.#count('none', refuse(`no rule for the issuer ${described(read.claims.iss)}`))
    // All rules at once: an issuer that does not answer delays no token that another rule accepts.
    const asker = { client, signal }
    const checks = rules.map(async (rule) => this.#count(rule.authenticator, await this.#check(read, rule, asker), rule.issuer))
    const accepted = await firstAccepted(checks)
    if (accepted) return accepted
    const answers = (await Promise.all(checks)).flatMap((answer) => ('caller' in answer ? [] : answer))
    if (this.#reviewer) {
      const verdict = await this.#reviewer.review(token, reviewAudiences(read, this.#context.config.features), clusterId)
      const answer = this.#count('token-review', verdict)
      if ('caller' in answer) return answer
      answers.push(answer)
    }
    const unavailable = answers.some((answer) => answer.unavailable)
    return { refused: answers.map(({ refused }) => refused).join('; '), ...(unavailable ? { unavailable } : {}) }
  }

  async #check(token: ReadToken, rule: TokenRule, asker: TokenAsker): Promise<Verdict> {
    const now = wallClockMs()
    const claims = checkClaims(token, rule, now / 1000)
    if ('refused' in claims) return refuse(claims.refused)
    const source = this.#keys.get(rule) as RuleKeys
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
  #count(authenticator: string, verdict: Verdict, issuer?: string): TokenAnswer {
    const method = issuer === undefined ? authenticator : `${authenticator} ${issuer}`
    const answer = 'refused' in verdict ? verdict : this.#caller(method, verdict.account, verdict.expiresAt)
    if ('caller' in answer) {
      this.#outcomes.inc({ authenticator, outcome: 'accepted' })
      this.#context.log('authn').debug(`${method}: ${answer.caller.identities.join(', ')}`)
      return answer
    }
    const { refused, unavailable } = answer
    this.#outcomes.inc({ authenticator, outcome: unavailable ? 'unavailable' : 'refused' })
    this.#context.log('authn').debug(`${method}: ${refused}`)
    return { refused: `${method}: ${refused}`, ...(unavailable ? { unavailable } : {}) }
  }

  #caller(method: string, account: ServiceAccount, expiresAt: number): { readonly caller: Caller } | { refused: string; unavailable: boolean } {
    if (!this.#names) return { refused: 'the trust domain is not known yet', unavailable: true }
    return { caller: { identities: [workloadId(this.#names.trustDomain, account)], via: 'token', method, expiresAt } }
  }
}

/** Resolves with the first answer that names a caller, undefined when none does. */
function firstAccepted(checks: readonly Promise<TokenAnswer>[]): Promise<TokenAnswer | undefined> {
  return new Promise((resolve, reject) => {
    Promise.all(checks.map((check) => check.then((answer) => 'caller' in answer && resolve(answer)))).then(() => resolve(undefined), reject)
  })
}

function describe({ authenticator, issuer, audiences, origin, onlyForCa }: TokenRule): string {
  const origins = {
    inline: 'keys in JWT_RULE',
    file: `keys of ${'path' in origin ? origin.path : ''}`,
    remote: `keys of ${'source' in origin ? origin.source : ''}`,
  }
  const who = issuer === localIssuer ? 'tokens of "pilot-discovery token"' : `tokens of ${issuer} (${authenticator})`
  return `${who} for ${audiences.join(', ')} are accepted${onlyForCa ? ' by the certificate authority' : ''}: ${origins[origin.type]}`
}

/** Returns the definition of an authenticator with an optional reviewer of orchestrator tokens. */
export function authenticatorWith(reviewer: TokenReviewer | undefined): ActorDefinition<AuthenticatorConfig, MeshNamesEvent, TrustEvent> {
  return { kind: 'authenticator', start: (context) => new Authenticator(context, reviewer) }
}

/** The actor definition of the authenticator. There is no orchestrator client yet, and so no reviewer. */
export const actor = authenticatorWith(undefined)
