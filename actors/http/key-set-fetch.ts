/** Fetches the key sets of token issuers: by URL, or by the issuer's OpenID configuration. Limited in time and size. */
import { existsSync, readFileSync } from 'node:fs'
import { readRanges } from '../../src/policy/key-addresses.ts'
import { sortedKeySet } from '../../src/policy/key-set.ts'
import { openIdPrefix } from '../../src/snapshot/key-sources.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, type Registry } from '../runtime/metrics.ts'
import type { FetchBounds } from './bounded-fetch.ts'
import type { OutgoingRequests } from './outgoing-metrics.ts'

/** Path at which additional CA certificates may be mounted. */
const extraAuthorities = '/cacerts/extra.pem'
/** How long the result of an OpenID discovery is cached, in milliseconds. */
const discoveryMs = 24 * 3_600_000

/**
 * Limits for fetches from URLs in user configuration: one megabyte each, and three redirects. `allowedAddresses`:
 * `PILOT_JWKS_ALLOWED_ADDRESSES`. `refused` is called when it is invalid; then it allows no address.
 */
export function fetchBounds(timeoutMs: number, allowedAddresses: string, refused: (reason: string) => void): FetchBounds {
  const authorities = existsSync(extraAuthorities) ? [readFileSync(extraAuthorities, 'utf8')] : []
  let allowed: FetchBounds['allowed'] = []
  try {
    allowed = readRanges(allowedAddresses)
  } catch (error) {
    refused(`PILOT_JWKS_ALLOWED_ADDRESSES: ${(error as Error).message}; no special address is allowed`)
  }
  return { timeoutMs, bytes: 1_048_576, redirects: 3, allowed, authorities }
}

/** Fetches key sets, counts the fetches, and caches the results of OpenID discovery. */
export class KeySetFetcher {
  readonly #bounds: FetchBounds
  readonly #urlFault: ((url: string) => string | undefined) | undefined
  readonly #discovered = new Map<string, { readonly uri: string; readonly until: number }>()
  readonly #requests: OutgoingRequests
  readonly #metrics

  /**
   * `urlFault`, if given, returns why keys must not be fetched from a URL. With it, the OpenID configuration must also name the issuer
   * that was asked.
   */
  constructor(bounds: FetchBounds, registry: Registry, requests: OutgoingRequests, urlFault?: (url: string) => string | undefined) {
    this.#bounds = bounds
    this.#urlFault = urlFault
    this.#requests = requests
    const registers = [registry]
    this.#metrics = {
      success: new Counter({
        name: 'pilot_jwks_resolver_network_fetch_success_total',
        help: 'successful network fetches by the JWKS resolver',
        registers,
      }),
      fail: new Counter({ name: 'pilot_jwks_resolver_network_fetch_fail_total', help: 'failed network fetches by the JWKS resolver', registers }),
    }
  }

  /**
   * Fetches the key set of a source: a URL, or `openid:` and an issuer. The result has only usable keys, in canonical order. `timeoutMs`
   * applies to each request. Rejects with the reason.
   */
  async fetch(source: string, retry: boolean, timeoutMs = this.#bounds.timeoutMs): Promise<string> {
    const uri = source.startsWith(openIdPrefix) ? await this.#discover(source.slice(openIdPrefix.length), retry, timeoutMs) : source
    const content = await this.#get(uri, retry, timeoutMs)
    // Loaded on the first fetch: it imports most of the configuration checks, which few installations need here.
    const { usableKeySet } = await import('../../src/config/shapes/key-set.ts')
    return sortedKeySet(usableKeySet(content).content)
  }

  /** Removes a source that is no longer needed. */
  forget(source: string): void {
    this.#discovered.delete(source.slice(openIdPrefix.length))
  }

  /** Finds the URL of an issuer's keys by its OpenID configuration (OpenID Connect Discovery 1.0, section 4). */
  async #discover(issuer: string, retry: boolean, timeoutMs: number): Promise<string> {
    const known = this.#discovered.get(issuer)
    if (known && monotonicMs() < known.until) return known.uri
    const content = await this.#get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, retry, timeoutMs)
    const { uri, issuer: speaker } = readConfiguration(content)
    if (typeof uri !== 'string' || !/^https?:\/\//.test(uri)) throw new Error('the OpenID configuration of the issuer has no http or https jwks_uri')
    const fault = this.#urlFault?.(uri)
    if (fault !== undefined) throw new Error(`jwks_uri in the OpenID configuration of the issuer: ${fault}`)
    if (this.#urlFault && speaker !== issuer) throw new Error('the OpenID configuration names another issuer')
    this.#discovered.set(issuer, { uri, until: monotonicMs() + discoveryMs })
    return uri
  }

  async #get(url: string, retry: boolean, timeoutMs: number): Promise<string> {
    const ended = this.#requests.started(retry)
    try {
      const { boundedFetch } = await import('./bounded-fetch.ts')
      const content = await boundedFetch(url, { ...this.#bounds, timeoutMs })
      this.#metrics.success.inc()
      ended(true)
      return content
    } catch (error) {
      this.#metrics.fail.inc()
      ended(false)
      throw error
    }
  }
}

function readConfiguration(content: string): { uri: unknown; issuer: unknown } {
  try {
    const { jwks_uri: uri, issuer } = JSON.parse(content) as { jwks_uri?: unknown; issuer?: unknown }
    return { uri, issuer }
  } catch {
    throw new Error('the OpenID configuration of the issuer is not JSON')
  }
}
