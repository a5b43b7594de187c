/** Fetches the roots of other trust domains from their bundle endpoints (docs/identity.md, B1 to B4) and sends them to the writers. */
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import type { BundleEndpoint, SpiffeBundle } from '../../../src/identity/spiffe-bundle.ts'
import type { Pauses } from '../../../src/model/back-off.ts'
import type { FetchBounds } from '../../http/bounded-fetch.ts'
import type { FetchThread } from '../../http/fetch-thread.ts'
import type { OutgoingRequests } from '../../http/outgoing-metrics.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, Gauge, type MetricRegistry } from '../../runtime/metrics.ts'
import { Renewal } from '../../runtime/renewal.ts'

/**
 * The delays before a failing endpoint is asked again while there are no roots. With roots, the longest is the regular refresh interval
 * (SPIFFE Federation, section 6.2).
 */
const pauses: Pauses = { firstMs: 50, longestMs: 10_000 }

/** Dependencies of {@link BundleFetches}. */
export interface BundleParts {
  readonly bounds: FetchBounds
  readonly thread: FetchThread
  readonly log: Logger
  readonly metrics: MetricRegistry
  readonly requests: OutgoingRequests
}

interface Watched {
  readonly endpoint: BundleEndpoint
  bundle: SpiffeBundle | undefined
  readonly renewal: Renewal<SpiffeBundle>
}

/** Fetches from each endpoint independently: a failing endpoint affects its own trust domain only, whose last roots stay in force. */
export class BundleFetches {
  readonly #watched: readonly Watched[]
  readonly #parts: BundleParts
  readonly #writers = new Map<string, Peer<TrustEvent>>()
  readonly #metrics

  constructor(endpoints: readonly BundleEndpoint[], parts: BundleParts) {
    this.#parts = parts
    const registers = [parts.metrics]
    this.#metrics = {
      fetches: new Counter({
        name: 'pilot_spiffe_bundle_fetches_total',
        help: 'fetches from SPIFFE bundle endpoints',
        labelNames: ['trust_domain', 'outcome'],
        registers,
      }),
      fetchedAt: new Gauge({
        name: 'pilot_spiffe_bundle_fetched_timestamp_seconds',
        help: 'when the bundle of a trust domain was last fetched, Unix seconds',
        labelNames: ['trust_domain'],
        registers,
      }),
    }
    this.#watched = endpoints.map((endpoint) => this.#watch(endpoint))
    for (const { renewal } of this.#watched) renewal.start()
  }

  /** A writer is linked: sends it the known roots. */
  linked(writer: Peer<TrustEvent>): void {
    this.#writers.set(writer.name, writer)
    for (const watched of this.#watched) this.#send(writer, watched)
  }

  unlinked({ name }: Peer<TrustEvent>): void {
    this.#writers.delete(name)
  }

  close(): void {
    for (const { renewal } of this.#watched) renewal.close()
  }

  #watch(endpoint: BundleEndpoint): Watched {
    const { trustDomain: trust_domain, url } = endpoint
    const watched: Watched = {
      endpoint,
      bundle: undefined,
      renewal: new Renewal({
        pauses,
        obtain: (failures) => this.#fetch(endpoint, failures),
        use: (bundle) => {
          this.#metrics.fetches.inc({ trust_domain, outcome: 'fetched' })
          this.#metrics.fetchedAt.set({ trust_domain }, Math.floor(wallClockMs() / 1000))
          this.#take(watched, bundle)
          return bundle.refreshMs
        },
        failed: ({ message }, failures) => {
          this.#metrics.fetches.inc({ trust_domain, outcome: 'failed' })
          const consequence = watched.bundle ? 'its last roots stay' : 'its client certificates are refused'
          const level = failures === 1 ? 'error' : 'debug'
          this.#parts.log('spiffe')[level](`roots of ${trust_domain} from ${url} could not be fetched: ${message}; ${consequence}`)
        },
        terms: () => (watched.bundle ? { longestMs: watched.bundle.refreshMs } : {}),
      }),
    }
    return watched
  }

  async #fetch({ trustDomain: asker, url }: BundleEndpoint, failures: number): Promise<SpiffeBundle> {
    const { bounds, thread, requests } = this.#parts
    let ended: ((succeeded: boolean) => void) | undefined
    const begun = () => {
      ended = requests.started(failures > 0)
    }
    try {
      const bundle = await thread.fetch({ asker, kind: 'spiffe-bundle', url, bounds, begun })
      ended?.(true)
      return bundle
    } catch (error) {
      ended?.(false)
      throw error
    }
  }

  #take(watched: Watched, bundle: SpiffeBundle): void {
    const { bundle: before, endpoint } = watched
    const log = this.#parts.log('spiffe')
    if (before?.sequence !== undefined && bundle.sequence !== undefined && bundle.sequence < before.sequence) {
      log.warn(`roots of ${endpoint.trustDomain}: sequence ${bundle.sequence} is older than ${before.sequence}, which stays`)
      return
    }
    watched.bundle = bundle
    if (bundle.roots === before?.roots) return
    log.info(`roots of ${endpoint.trustDomain} ${before ? 'changed' : 'fetched'}, sequence ${bundle.sequence ?? 'unknown'}`)
    for (const writer of this.#writers.values()) this.#send(writer, watched)
  }

  /**
   * Each trust domain is a source of its own, so after a restart of this actor a domain that has not been fetched yet leaves the roots
   * that writers have unchanged.
   */
  #send(writer: Peer<TrustEvent>, { endpoint, bundle }: Watched): void {
    if (!bundle) return
    const source = `spiffe-bundle ${endpoint.trustDomain}`
    writer.tell({ type: 'TrustChanged', source, roots: { [endpoint.trustDomain]: bundle.roots }, generation: 0 }, source)
  }
}
