/**
 * The actor that obtains the keys of workload tokens (docs/identity.md, K1 to K9) and the roots of other trust domains (B1 to B4). Consumes
 * `MeshNamesChanged` from the file watcher; emits `TokenKeysChanged` and `TrustChanged` to the writers, which verify tokens themselves;
 * answers `tokenKeys` to writers, and `authenticate` for debug pages. It caches keys and roots, but no tokens and no callers.
 */
import type { MeshNamesEvent, TokenKeySet, TokenKeysEvent, TokenKeysQuestion } from '../../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { keyUrlFault, localIssuer, type TokenRule, tokenAudiences } from '../../../src/identity/token-rules.ts'
import { FetchThread } from '../../http/fetch-thread.ts'
import { fetchBounds, KeySetFetcher } from '../../http/key-set-fetch.ts'
import { outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour, BoundedAnswers } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import type { Peer } from '../../runtime/link.ts'
import { TokenChecks } from '../tokens/token-checks.ts'
import { reviewedByCluster } from '../tokens/token-reviewer.ts'
import { BundleFetches } from './bundle-fetches.ts'
import { RuleKeys } from './rule-keys.ts'
import type { AuthenticatorConfig } from './settings.ts'

type Sent = TrustEvent | TokenKeysEvent

/** Timeout of a fetch of keys or roots, in milliseconds. */
const fetchMs = 4000

class Authenticator implements Behaviour<MeshNamesEvent, Sent> {
  readonly asks: BoundedAnswers<'authenticate' | 'tokenKeys'> = {
    authenticate: (question, { signal } = patient) => this.#checks.check(question, signal),
    tokenKeys: (question) => this.#tokenKeys(question),
  }
  readonly #checks: TokenChecks
  /** The keys of each rule, by its index. */
  readonly #keys: readonly RuleKeys[]
  readonly #bundles: BundleFetches
  readonly #writers = new Map<string, Peer<Sent>>()
  /** A thread of its own, so that what users have fetched never delays what the operator of the mesh names. */
  readonly #fetchThread = new FetchThread()
  #names: MeshNamesEvent | undefined

  constructor(context: ActorContext<AuthenticatorConfig>) {
    const { config, log, metrics } = context
    const { features, rules, endpoints, reviewsTokens } = config
    const bounds = fetchBounds(fetchMs, features.PILOT_JWKS_ALLOWED_ADDRESSES, (reason) => log('authn').error(reason))
    const requests = outgoingMetrics(metrics)
    const thread = this.#fetchThread
    const parts = {
      fetcher: new KeySetFetcher({ bounds, thread, metrics, requests: requests('jwks'), urlFault: keyUrlFault }),
      log,
      refreshMs: features.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL,
    }
    this.#keys = rules.map((rule, index) => new RuleKeys(rule, parts, (keys) => this.#sendKeys(index, keys, this.#writers.values())))
    this.#bundles = new BundleFetches(endpoints, { bounds, thread, log, metrics, requests: requests('spiffe-bundle') })
    this.#checks = new TokenChecks({
      rules,
      keysOf: (rule) => this.#keys[rules.indexOf(rule)] as RuleKeys,
      trustDomain: () => this.#names?.trustDomain,
      review: reviewsTokens ? reviewedByCluster(features, context.askFor) : undefined,
      log,
      metrics,
    })
    for (const rule of rules) log('authn').info(describe(rule))
    const audiences = tokenAudiences(features.TOKEN_AUDIENCES).join(', ')
    log('authn').info(
      reviewsTokens
        ? `tokens of service accounts of the cluster ${features.CLUSTER_ID} for ${audiences} are accepted: its API server reviews them`
        : 'tokens of an orchestrator are not accepted: there is no orchestrator to review them',
    )
  }

  linked(peer: Peer<Sent>): void {
    if (peer.kind !== 'xds-writer') return
    this.#writers.set(peer.name, peer)
    for (const [rule, keys] of this.#keys.entries()) this.#sendKeys(rule, keys.present, [peer])
    this.#bundles.linked(peer)
  }

  unlinked(peer: Peer<Sent>): void {
    if (peer.kind !== 'xds-writer') return
    this.#writers.delete(peer.name)
    this.#bundles.unlinked(peer)
  }

  receive(names: MeshNamesEvent): void {
    this.#names = names
  }

  async drain(): Promise<void> {
    for (const keys of this.#keys) keys.close()
    this.#bundles.close()
    this.#fetchThread.close()
  }

  /** Answers a writer whose token waits for keys. */
  async #tokenKeys({ rule, renewed }: TokenKeysQuestion): Promise<TokenKeySet> {
    const keys = this.#keys[rule]
    if (!keys) throw new Error(`there is no rule ${rule}`)
    await (renewed ? keys.renewed() : keys.ready())
    return keys.present
  }

  /** Sends the keys of a rule to writers. */
  #sendKeys(rule: number, keys: TokenKeySet, writers: Iterable<Peer<Sent>>): void {
    for (const writer of writers) writer.tell({ type: 'TokenKeysChanged', rule, ...keys }, `keys of rule ${rule}`)
  }
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

/** The actor definition of the authenticator. */
export const actor: ActorDefinition<AuthenticatorConfig, MeshNamesEvent, Sent> = {
  kind: 'authenticator',
  start: (context) => new Authenticator(context),
}
