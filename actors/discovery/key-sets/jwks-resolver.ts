/**
 * The actor that fetches the key sets which RequestAuthentications reference (docs/resources.md, A4), so that proxies need not. Consumes
 * `ResolveKeySets` from the push queue, which has the complete set of sources; emits `KeySetChanged` whenever the keys of a source
 * change. Once fetched, the keys of a source stay in use while it is unavailable.
 */
import type { JwksResolverConfig } from '../../../protocols/messages/config.ts'
import type { KeySetEvent, ResolverCommand } from '../../../protocols/messages/push.ts'
import type { Features } from '../../../src/config/features.ts'
import { keyFetchMs } from '../../../src/snapshot/key-sources.ts'
import { fetchBounds, KeySetFetcher } from '../../http/key-set-fetch.ts'
import { outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** Maximum number of sources, which bounds the memory whatever the policies are. */
const maxSources = 2000
/** Maximum retry delay after failed fetches, in milliseconds; the first delay is a second, doubled each time. */
const longestRetryMs = 60_000

interface Source {
  /** Timeout of a fetch, in milliseconds. */
  timeoutMs: number
  keys: string | undefined
  failures: number
  timer: Timer | undefined
}

class JwksResolver implements Behaviour<ResolverCommand, KeySetEvent> {
  readonly #context: ActorContext<JwksResolverConfig>
  readonly #fetcher: KeySetFetcher
  readonly #refreshMs: number
  readonly #sources = new Map<string, Source>()
  #queue: Peer<KeySetEvent> | undefined

  constructor(context: ActorContext<JwksResolverConfig>) {
    const features = context.config.features as Features
    this.#context = context
    this.#refreshMs = features.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL
    const allowed = features.PILOT_JWKS_ALLOWED_ADDRESSES
    const bounds = fetchBounds(keyFetchMs.usual, allowed, (reason) => context.log('default').error(reason))
    this.#fetcher = new KeySetFetcher(bounds, context.metrics, outgoingMetrics(context.metrics)('jwks'))
  }

  linked(peer: Peer<KeySetEvent>): void {
    this.#queue = peer
  }

  receive({ sources }: ResolverCommand): void {
    const wanted = new Map(sources.map(({ source, timeoutMs }) => [source, timeoutMs]))
    for (const [source, { timer }] of this.#sources) {
      if (wanted.has(source)) continue
      timer?.cancel()
      this.#sources.delete(source)
      this.#fetcher.forget(source)
    }
    for (const [source, timeoutMs] of wanted) {
      const known = this.#sources.get(source)
      if (known) {
        known.timeoutMs = timeoutMs
        // The push queue may be a new one that has not received these keys.
        if (known.keys !== undefined || known.failures > 0) this.#send(source, known.keys)
        continue
      }
      if (this.#sources.size >= maxSources) {
        this.#context.log('default').error(`keys of ${source} are not fetched: more than ${maxSources} key sets; its tokens are refused`)
        continue
      }
      this.#sources.set(source, { timeoutMs, keys: undefined, failures: 0, timer: undefined })
      void this.#refresh(source)
    }
  }

  async drain(): Promise<void> {
    for (const { timer } of this.#sources.values()) timer?.cancel()
    this.#sources.clear()
  }

  async #refresh(name: string): Promise<void> {
    const source = this.#sources.get(name)
    if (!source) return
    let reason: string | undefined
    let keys: string | undefined
    try {
      keys = await this.#fetcher.fetch(name, source.failures > 0, source.timeoutMs)
    } catch (error) {
      reason = (error as Error).message
    }
    // The source may have been removed, or removed and added again, during the fetch.
    if (this.#sources.get(name) !== source) return
    if (keys === undefined) this.#failed(name, source, reason ?? '')
    else this.#succeeded(name, source, keys)
  }

  #succeeded(name: string, source: Source, keys: string): void {
    source.failures = 0
    if (keys !== source.keys) {
      this.#context.log('default').info(`keys of ${name} ${source.keys === undefined ? 'fetched' : 'changed'}`)
      source.keys = keys
      this.#send(name, keys)
    }
    source.timer = after(this.#refreshMs, () => void this.#refresh(name))
  }

  #failed(name: string, source: Source, reason: string): void {
    const consequence = source.keys === undefined ? 'tokens of its issuer are refused' : 'its last keys stay'
    this.#context.log('default')[source.failures === 0 ? 'error' : 'debug'](`keys of ${name} could not be fetched: ${reason}; ${consequence}`)
    source.timer = after(Math.min(this.#refreshMs, longestRetryMs, 1000 * 2 ** source.failures), () => void this.#refresh(name))
    if (source.failures === 0) this.#send(name, source.keys)
    source.failures = Math.min(source.failures + 1, 10)
  }

  #send(source: string, keys: string | undefined): void {
    this.#queue?.tell({ type: 'KeySetChanged', source, keys }, `keys|${source}`)
  }
}

/** The actor definition of the key-set resolver. */
export const actor: ActorDefinition<JwksResolverConfig, ResolverCommand, KeySetEvent> = {
  kind: 'jwks-resolver',
  start: (context) => new JwksResolver(context),
}
