/**
 * Fetches the key sets that RequestAuthentications name (docs/resources.md, A4), so that proxies need not. Consumes
 * `ResolveKeySets` from the push queue: all sources that are wanted now; emits `KeySetChanged` whenever the keys of one differ.
 * A source whose keys were fetched once keeps them while it cannot be reached.
 */
import { existsSync, readFileSync } from 'node:fs'
import type { JwksResolverConfig } from '../../../protocols/messages/config.ts'
import type { KeySetEvent, ResolverCommand } from '../../../protocols/messages/push.ts'
import type { Features } from '../../../src/config/features.ts'
import { readRanges } from '../../../src/policy/key-addresses.ts'
import { sortedKeySet } from '../../../src/policy/key-set.ts'
import { openIdPrefix } from '../../../src/snapshot/key-sources.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter } from '../../runtime/metrics.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { FetchBounds } from './bounded-fetch.ts'
import { outgoingMetrics } from './outgoing-metrics.ts'

/** Where more certificate authorities may be mounted. */
const extraAuthorities = '/cacerts/extra.pem'
/** Sources at most, so that no number of policies fills the memory. */
const mostSources = 2000
const bounds = { timeoutMs: 5000, bytes: 1_048_576, redirects: 3 }
/** How long an issuer's answer of where its keys are is good for. */
const discoveryMs = 24 * 3_600_000
/** A source that fails is asked again after a second, then after twice as long each time, up to this. */
const longestRetryMs = 60_000

interface Source {
  keys: string | undefined
  failures: number
  timer: Timer | undefined
  /** Where an issuer said that its keys are, and until when that holds. */
  discovered: { readonly uri: string; readonly until: number } | undefined
}

class JwksResolver implements Behaviour<ResolverCommand, KeySetEvent> {
  readonly #context: ActorContext<JwksResolverConfig>
  readonly #bounds: FetchBounds
  readonly #refreshMs: number
  readonly #sources = new Map<string, Source>()
  readonly #metrics
  #queue: Peer<KeySetEvent> | undefined

  constructor(context: ActorContext<JwksResolverConfig>) {
    const features = context.config.features as Features
    this.#context = context
    this.#refreshMs = features.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL
    const more = existsSync(extraAuthorities) ? [readFileSync(extraAuthorities, 'utf8')] : []
    this.#bounds = {
      ...bounds,
      allowed: this.#allowed(features.PILOT_JWKS_ALLOWED_ADDRESSES),
      authorities: more,
    }
    const registers = [context.metrics]
    this.#metrics = {
      success: new Counter({
        name: 'pilot_jwks_resolver_network_fetch_success_total',
        help: 'successful network fetches by the JWKS resolver',
        registers,
      }),
      fail: new Counter({ name: 'pilot_jwks_resolver_network_fetch_fail_total', help: 'failed network fetches by the JWKS resolver', registers }),
      outgoing: outgoingMetrics(context.metrics, 'jwks'),
    }
  }

  linked(peer: Peer<KeySetEvent>): void {
    this.#queue = peer
  }

  receive({ sources }: ResolverCommand): void {
    const wanted = new Set(sources)
    for (const [source, { timer }] of this.#sources) {
      if (wanted.has(source)) continue
      timer?.cancel()
      this.#sources.delete(source)
    }
    for (const source of wanted) {
      const known = this.#sources.get(source)
      if (known) {
        // The queue may be a new one, which has not heard of it.
        if (known.keys !== undefined || known.failures > 0) this.#tell(source, known.keys)
        continue
      }
      if (this.#sources.size >= mostSources) {
        this.#context.log('default').error(`keys of ${source} are not fetched: more than ${mostSources} key sets; its tokens are refused`)
        continue
      }
      this.#sources.set(source, { keys: undefined, failures: 0, timer: undefined, discovered: undefined })
      void this.#refresh(source)
    }
  }

  async drain(): Promise<void> {
    for (const { timer } of this.#sources.values()) timer?.cancel()
    this.#sources.clear()
  }

  #allowed(list: string): FetchBounds['allowed'] {
    try {
      return readRanges(list)
    } catch (error) {
      this.#context.log('default').error(`PILOT_JWKS_ALLOWED_ADDRESSES: ${(error as Error).message}; it allows nothing`)
      return []
    }
  }

  async #refresh(name: string): Promise<void> {
    const source = this.#sources.get(name)
    if (!source) return
    let reason: string | undefined
    let keys: string | undefined
    try {
      keys = await this.#fetchKeys(name, source)
    } catch (error) {
      reason = (error as Error).message
    }
    // It may have gone meanwhile, and come back as another.
    if (this.#sources.get(name) !== source) return
    if (keys === undefined) this.#failed(name, source, reason ?? '')
    else this.#succeeded(name, source, keys)
  }

  #succeeded(name: string, source: Source, keys: string): void {
    source.failures = 0
    if (keys !== source.keys) {
      this.#context.log('default').info(`keys of ${name} ${source.keys === undefined ? 'fetched' : 'changed'}`)
      source.keys = keys
      this.#tell(name, keys)
    }
    source.timer = after(this.#refreshMs, () => void this.#refresh(name))
  }

  #failed(name: string, source: Source, reason: string): void {
    const consequence = source.keys === undefined ? 'tokens of its issuer are refused' : 'its last keys stay'
    this.#context.log('default')[source.failures === 0 ? 'error' : 'debug'](`keys of ${name} could not be fetched: ${reason}; ${consequence}`)
    source.timer = after(Math.min(this.#refreshMs, longestRetryMs, 1000 * 2 ** source.failures), () => void this.#refresh(name))
    if (source.failures === 0) this.#tell(name, source.keys)
    source.failures = Math.min(source.failures + 1, 10)
  }

  async #fetchKeys(name: string, source: Source): Promise<string> {
    const uri = name.startsWith(openIdPrefix) ? await this.#discover(name.slice(openIdPrefix.length), source) : name
    const content = await this.#fetch(uri, source)
    // Loaded when there are keys to fetch: most of a configuration's checks, and a client of HTTPS, which few need.
    const { keySetFault } = await import('../../../src/config/shapes/key-set.ts')
    const fault = keySetFault(content)
    if (fault) throw new Error(fault)
    return sortedKeySet(content)
  }

  /** Where an issuer's keys are, by its OpenID configuration (OpenID Connect Discovery 1.0, section 4). */
  async #discover(issuer: string, source: Source): Promise<string> {
    if (source.discovered && monotonicMs() < source.discovered.until) return source.discovered.uri
    const content = await this.#fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, source)
    let uri: unknown
    try {
      uri = (JSON.parse(content) as { jwks_uri?: unknown }).jwks_uri
    } catch {
      throw new Error('its OpenID configuration is not JSON')
    }
    if (typeof uri !== 'string' || !/^https?:\/\//.test(uri)) throw new Error('its OpenID configuration names no jwks_uri')
    source.discovered = { uri, until: monotonicMs() + discoveryMs }
    return uri
  }

  async #fetch(url: string, { failures }: Source): Promise<string> {
    const ended = this.#metrics.outgoing.started(failures > 0)
    try {
      const { boundedFetch } = await import('./bounded-fetch.ts')
      const content = await boundedFetch(url, this.#bounds)
      this.#metrics.success.inc()
      ended(true)
      return content
    } catch (error) {
      this.#metrics.fail.inc()
      ended(false)
      throw error
    }
  }

  #tell(source: string, keys: string | undefined): void {
    this.#queue?.tell({ type: 'KeySetChanged', source, keys }, `keys|${source}`)
  }
}

/** The resolver of key sets as an actor. */
export const actor: ActorDefinition<JwksResolverConfig, ResolverCommand, KeySetEvent> = {
  kind: 'jwks-resolver',
  start: (context) => new JwksResolver(context),
}
