/**
 * The actor that fetches the key sets which RequestAuthentications reference (docs/resources.md, A4 and A15), so that proxies need not.
 * Consumes `ResolveKeySets` from the push queue, which has the complete set of sources; emits `KeySetChanged` whenever the keys of a
 * source change, and `KeySetDropped` for a source without a place. Once fetched, the keys of a source stay in use while it is unavailable.
 */
import type { JwksResolverConfig } from '../../../protocols/messages/config.ts'
import type { KeySetEvent, ResolverCommand, WantedKeySet } from '../../../protocols/messages/push.ts'
import type { Features } from '../../../src/config/features.ts'
import { count } from '../../../src/model/counts.ts'
import { sharedPlaces } from '../../../src/policy/fetch-shares.ts'
import { keyFetchMs } from '../../../src/snapshot/key-sources.ts'
import { FetchThread } from '../../http/fetch-thread.ts'
import { fetchBounds, KeySetFetcher } from '../../http/key-set-fetch.ts'
import { keySetRenewal } from '../../http/key-set-renewal.ts'
import { outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { Peer } from '../../runtime/link.ts'
import type { Renewal } from '../../runtime/renewal.ts'

/** Maximum number of sources, and maximum size of the key sets that are kept for one namespace together, in characters. */
const most = { sources: 2000, characters: 4_194_304 }
interface Source {
  /** The namespace that its place and its fetches are counted for. */
  namespace: string
  /** Timeout of a fetch, in milliseconds. */
  timeoutMs: number
  keys: string | undefined
  readonly renewal: Renewal<string>
  /** Aborted when the source is not needed any more. */
  readonly gone: AbortController
}

class JwksResolver implements Behaviour<ResolverCommand, KeySetEvent> {
  readonly #context: ActorContext<JwksResolverConfig>
  readonly #fetcher: KeySetFetcher
  readonly #thread = new FetchThread()
  readonly #refreshMs: number
  readonly #sources = new Map<string, Source>()
  /** The number of sources without a place by namespace, as last logged. */
  #placeless: ReadonlyMap<string, number> = new Map()
  #queue: Peer<KeySetEvent> | undefined

  constructor(context: ActorContext<JwksResolverConfig>) {
    const features = context.config.features as Features
    this.#context = context
    this.#refreshMs = features.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL
    const allowed = features.PILOT_JWKS_ALLOWED_ADDRESSES
    const bounds = fetchBounds(keyFetchMs.usual, allowed, (reason) => context.log('default').error(reason))
    const { metrics } = context
    this.#fetcher = new KeySetFetcher({ bounds, thread: this.#thread, metrics, requests: outgoingMetrics(metrics)('jwks') })
  }

  linked(peer: Peer<KeySetEvent>): void {
    this.#queue = peer
  }

  receive({ sources }: ResolverCommand): void {
    const wanted = new Map(sources.map(({ source, namespaces }) => [source, namespaces]))
    const places = sharedPlaces(wanted, most.sources, (source) => this.#sources.has(source))
    for (const name of [...this.#sources.keys()]) if (!places.has(name)) this.#remove(name)
    for (const needed of sources) {
      const namespace = places.get(needed.source)
      if (namespace === undefined) this.#queue?.tell({ type: 'KeySetDropped', source: needed.source }, `keys|${needed.source}`)
      else this.#take(needed, namespace)
    }
    this.#logPlaceless(sources.filter(({ source }) => !places.has(source)))
  }

  async drain(): Promise<void> {
    for (const name of [...this.#sources.keys()]) this.#remove(name)
    this.#thread.close()
  }

  #remove(name: string): void {
    const source = this.#sources.get(name)
    source?.renewal.close()
    source?.gone.abort()
    this.#sources.delete(name)
    this.#fetcher.forget(name)
  }

  #take({ source: name, timeoutMs }: WantedKeySet, namespace: string): void {
    const known = this.#sources.get(name)
    if (known) {
      Object.assign(known, { timeoutMs, namespace })
      // The push queue may be a new one that has not received these keys.
      if (known.keys !== undefined || known.renewal.failures > 0) this.#send(name, known.keys)
      return
    }
    const gone = new AbortController()
    const source: Source = {
      namespace,
      timeoutMs,
      keys: undefined,
      gone,
      renewal: keySetRenewal({
        fetcher: this.#fetcher,
        refreshMs: this.#refreshMs,
        wanted: () => ({ source: name, asker: source.namespace, timeoutMs: source.timeoutMs, signal: gone.signal }),
        use: (keys) => this.#use(name, source, keys),
        failed: ({ message }, failures) => this.#failed(name, source, message, failures),
      }),
    }
    this.#sources.set(name, source)
    source.renewal.start()
  }

  /** Logs a line for each namespace whose number of sources without a place has changed. */
  #logPlaceless(sources: readonly WantedKeySet[]): void {
    const numbers = new Map<string, number>()
    for (const { namespaces } of sources) for (const each of namespaces) numbers.set(each, (numbers.get(each) ?? 0) + 1)
    for (const [namespace, number] of numbers) {
      if (this.#placeless.get(namespace) === number) continue
      const [example] = sources.filter(({ namespaces }) => namespaces.includes(namespace))
      this.#context
        .log('default')
        .error(
          `namespace ${namespace}: the keys of ${count(number, 'source')}, such as ${example?.source}, are not fetched, since the mesh needs more than ${most.sources} key sets and this namespace most of them; tokens of their issuers are refused`,
        )
    }
    this.#placeless = numbers
  }

  #use(name: string, source: Source, keys: string): void {
    this.#checkSize(source, keys)
    if (keys === source.keys) return
    this.#context.log('default').info(`keys of ${name} ${source.keys === undefined ? 'fetched' : 'changed'}`)
    source.keys = keys
    this.#send(name, keys)
  }

  /** Throws an Error with the reason when the keys of a source cannot be kept. */
  #checkSize(source: Source, keys: string): void {
    let characters = keys.length
    for (const other of this.#sources.values()) if (other !== source && other.namespace === source.namespace) characters += other.keys?.length ?? 0
    if (characters > most.characters)
      throw new Error(`with them the key sets of namespace ${source.namespace} are larger than ${most.characters} characters together`)
  }

  #failed(name: string, { keys }: Source, reason: string, failures: number): void {
    const consequence = keys === undefined ? 'tokens of its issuer are refused' : 'its last keys stay'
    this.#context.log('default')[failures === 1 ? 'error' : 'debug'](`keys of ${name} could not be fetched: ${reason}; ${consequence}`)
    if (failures === 1) this.#send(name, keys)
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
