/**
 * The state of one type of resources on a stream whose server has few of them and one client: the agent's secrets and its stored
 * configuration. Streams of discovery, which share what they send, have {@link file://./session.ts sessions}.
 */
import { hash } from 'node:crypto'
import { isWildcardType } from '../type-urls.ts'
import { type DeltaRequest, namesIn, type SotwRequest } from './request.ts'
import { encodeResponse, type ResponseResource } from './response.ts'

const wildcard = '*'
/** Stands for the version of a name that the client was told not to exist. */
const absent = ''

/** What there is of the type. */
export interface Resources {
  /** Returns the resource with a name; undefined when it cannot be served at present. */
  find(name: string): ResponseResource | undefined
  /** Whether a name can never be served. A delta client that subscribes to it is told that it does not exist. */
  isNever(name: string): boolean
  /** All resources, for a wildcard subscription. */
  all(): readonly ResponseResource[]
}

/** What a request meant, apart from its effect on the subscription. */
export interface WatchOutcome {
  /** The error of a NACK. */
  readonly refused?: string
  /** The nonce is not that of the last response. A stale SotW request has no effect; of a stale delta request only the subscription counts. */
  readonly isStale?: true
  /** Names that were not subscribed to before. */
  readonly added: readonly string[]
}

/** What a client subscribes to, what it was sent, and whether its answer is awaited. */
export class PlainWatch {
  readonly #isDelta: boolean
  readonly #typeUrl: string
  readonly #wanted = new Set<string>()
  /** The versions that were sent, by name. */
  readonly #sent = new Map<string, string>()
  #isWildcard = false
  #requests = 0
  /** The nonce of the last response, which counts the responses; empty before the first. */
  #nonce = ''
  /** Whether the last response awaits its ACK or NACK. */
  #isWaiting = false

  constructor(isDelta: boolean, typeUrl: string) {
    this.#isDelta = isDelta
    this.#typeUrl = typeUrl
  }

  /** The names of the subscription, without the wildcard. */
  get wanted(): ReadonlySet<string> {
    return this.#wanted
  }

  /** Processes a SotW request. The first may carry the nonce of an earlier stream, which is ignored. Throws WireError. */
  takeSotw({ rawNames, nonce, error }: SotwRequest): WatchOutcome {
    const isFirst = this.#requests++ === 0
    if (!isFirst && nonce !== this.#nonce) return { isStale: true, added: [] }
    this.#isWaiting = false
    const names = namesIn(rawNames)
    this.#isWildcard = names.has(wildcard) || (names.size === 0 && isWildcardType(this.#typeUrl))
    for (const name of this.#wanted) if (!names.has(name)) this.#forget(name)
    return { ...(error && !isFirst ? { refused: error.message } : {}), added: this.#want(names) }
  }

  /** Processes a delta request. The nonce of the first is ignored. Throws WireError. */
  takeDelta({ rawSubscribe, unsubscribe, initialVersions, nonce, error }: DeltaRequest): WatchOutcome {
    const isFirst = this.#requests++ === 0
    const answers = !isFirst && nonce !== ''
    const isStale = answers && nonce !== this.#nonce
    if (answers && !isStale) this.#isWaiting = false
    const names = namesIn(rawSubscribe)
    if (names.has(wildcard) || (isFirst && names.size === 0 && isWildcardType(this.#typeUrl))) this.#isWildcard = true
    if (unsubscribe.includes(wildcard)) this.#isWildcard = false
    for (const name of unsubscribe) this.#forget(name)
    // A repeated subscription asks for the resource again, unless the request gives the version that the client has.
    for (const name of names) this.#sent.delete(name)
    for (const [name, version] of initialVersions) if (this.#isWildcard || names.has(name)) this.#sent.set(name, version)
    const added = this.#want(names)
    return { ...(isStale ? { isStale } : answers && error ? { refused: error.message } : {}), added }
  }

  /**
   * Returns the next response: subscribed resources whose version differs from the one that was sent, and names that cannot be served. A
   * wildcard subscription over SotW is sent everything whenever something differs. Undefined when there is nothing to send, or while the
   * last response awaits its answer.
   */
  next(resources: Resources): Buffer | undefined {
    if (this.#isWaiting) return undefined
    const wanted = this.#isWildcard ? [...resources.all()] : []
    const known = new Set(wanted.map(({ name }) => name))
    const missing: string[] = []
    for (const name of this.#wanted) {
      const found = known.has(name) ? undefined : resources.find(name)
      if (found) wanted.push(found)
      else if (!known.has(name) && this.#isDelta && this.#sent.get(name) !== absent && resources.isNever(name)) missing.push(name)
    }
    const due = wanted.filter(({ name, version }) => this.#sent.get(name) !== version)
    // The first answer to a wildcard subscription is sent even if there is nothing: the client waits for it.
    if (due.length + missing.length === 0 && !(this.#isWildcard && this.#nonce === '')) return undefined
    for (const { name, version } of due) this.#sent.set(name, version)
    for (const name of missing) this.#sent.set(name, absent)
    this.#isWaiting = true
    this.#nonce = String(Number(this.#nonce) + 1)
    const sent = this.#isWildcard && !this.#isDelta ? wanted : due
    return encodeResponse(this.#isDelta, {
      typeUrl: this.#typeUrl,
      version: this.#isDelta ? '' : versionOf(sent),
      nonce: this.#nonce,
      resources: sent,
      removed: missing,
    })
  }

  #want(names: ReadonlySet<string>): string[] {
    const added = [...names].filter((name) => name !== wildcard && !this.#wanted.has(name))
    for (const name of added) this.#wanted.add(name)
    return added
  }

  #forget(name: string): void {
    this.#wanted.delete(name)
    if (!this.#isWildcard) this.#sent.delete(name)
  }
}

/** Returns the version of a SotW response: that of its resources if they share one, otherwise a hash of theirs. */
function versionOf(sent: readonly ResponseResource[]): string {
  const [version, ...others] = new Set(sent.map((resource) => resource.version))
  return version !== undefined && others.length === 0 ? version : hash('sha256', sent.map((resource) => resource.version).join()).slice(0, 32)
}
