/** Fetches the key sets of token issuers: by URL, or by the issuer's OpenID configuration. Limited in time and size. */
import { readRanges } from '../../src/policy/key-addresses.ts'
import { openIdPrefix } from '../../src/snapshot/key-sources.ts'
import { isGone, readBoundedFileSync } from '../runtime/bounded-file.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, type MetricRegistry } from '../runtime/metrics.ts'
import type { FetchBounds } from './bounded-fetch.ts'
import type { Documents } from './fetch-task.ts'
import type { FetchThread } from './fetch-thread.ts'
import type { OutgoingRequests } from './outgoing-metrics.ts'

/** Path at which additional CA certificates may be mounted. */
const extraAuthorities = '/cacerts/extra.pem'
/** How long the result of an OpenID discovery is cached, in milliseconds. */
const discoveryMs = 24 * 3_600_000

/**
 * Limits for fetches from URLs in user configuration: one megabyte each, and three redirects. `allowedAddresses`:
 * `PILOT_JWKS_ALLOWED_ADDRESSES`. `refused` is called with what cannot be used: an invalid setting allows no address, and a file of
 * certificates that cannot be read is left out.
 */
export function fetchBounds(
  timeoutMs: number,
  allowedAddresses: string,
  refused: (reason: string) => void,
  authoritiesFile = extraAuthorities,
): FetchBounds {
  let allowed = allowedAddresses
  try {
    readRanges(allowed)
  } catch (error) {
    refused(`PILOT_JWKS_ALLOWED_ADDRESSES: ${(error as Error).message}; no special address is allowed`)
    allowed = ''
  }
  const authorities: string[] = []
  try {
    authorities.push(readBoundedFileSync(authoritiesFile))
  } catch (error) {
    if (!isGone(error)) refused(`${(error as Error).message}; its certificates are not used for fetches`)
  }
  return { timeoutMs, bytes: 1_048_576, redirects: 3, allowed, authorities }
}

/** What a {@link KeySetFetcher} works with. */
export interface KeySetParts {
  readonly bounds: FetchBounds
  readonly thread: FetchThread
  readonly metrics: MetricRegistry
  readonly requests: OutgoingRequests
  /**
   * If given, returns why keys must not be fetched from a URL. With it, the OpenID configuration must also name the issuer that was asked.
   */
  readonly urlFault?: (url: string) => string | undefined
}

/** A key set to fetch: its source, a URL or `openid:` and an issuer; who asks for it; and whether the last fetch failed. */
export interface WantedKeys {
  readonly source: string
  readonly asker: string
  readonly retry: boolean
  /** Timeout of each request in milliseconds, if not that of the bounds. */
  readonly timeoutMs?: number
  /** Takes the fetch out of the queue. */
  readonly signal?: AbortSignal
}

/** Fetches key sets, counts the fetches, and caches the results of OpenID discovery. */
export class KeySetFetcher {
  readonly #parts: KeySetParts
  readonly #discovered = new Map<string, { readonly uri: string; readonly until: number }>()
  readonly #metrics

  constructor(parts: KeySetParts) {
    this.#parts = parts
    const registers = [parts.metrics]
    this.#metrics = {
      success: new Counter({
        name: 'pilot_jwks_resolver_network_fetch_success_total',
        help: 'successful network fetches by the JWKS resolver',
        registers,
      }),
      fail: new Counter({ name: 'pilot_jwks_resolver_network_fetch_fail_total', help: 'failed network fetches by the JWKS resolver', registers }),
    }
  }

  /** Fetches a key set. The result has only usable keys, in canonical order. Rejects with the reason. */
  async fetch(wanted: WantedKeys): Promise<string> {
    const { source } = wanted
    const uri = source.startsWith(openIdPrefix) ? await this.#discover(source.slice(openIdPrefix.length), wanted) : source
    return this.#get('key-set', uri, wanted)
  }

  /** Removes a source that is no longer needed. */
  forget(source: string): void {
    this.#discovered.delete(source.slice(openIdPrefix.length))
  }

  /** Finds the URL of an issuer's keys by its OpenID configuration (OpenID Connect Discovery 1.0, section 4). */
  async #discover(issuer: string, wanted: WantedKeys): Promise<string> {
    const known = this.#discovered.get(issuer)
    if (known && monotonicMs() < known.until) return known.uri
    const { urlFault } = this.#parts
    const { uri, issuer: speaker } = await this.#get('openid-configuration', `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, wanted)
    const fault = urlFault?.(uri)
    if (fault !== undefined) throw new Error(`jwks_uri in the OpenID configuration of the issuer: ${fault}`)
    if (urlFault && speaker !== issuer) throw new Error('the OpenID configuration names another issuer')
    if (!wanted.signal?.aborted) this.#discovered.set(issuer, { uri, until: monotonicMs() + discoveryMs })
    return uri
  }

  async #get<Kind extends keyof Documents>(kind: Kind, url: string, { asker, retry, timeoutMs, signal }: WantedKeys): Promise<Documents[Kind]> {
    const { thread, bounds, requests } = this.#parts
    let ended: ((succeeded: boolean) => void) | undefined
    const begun = () => {
      ended = requests.started(retry)
    }
    try {
      const document = await thread.fetch({ asker, kind, url, bounds: { ...bounds, timeoutMs: timeoutMs ?? bounds.timeoutMs }, begun, signal })
      this.#metrics.success.inc()
      ended?.(true)
      return document
    } catch (error) {
      // Without a beginning nothing was sent.
      if (ended) this.#metrics.fail.inc()
      ended?.(false)
      throw error
    }
  }
}
