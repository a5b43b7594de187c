/**
 * The state of one SDS stream, SotW or delta: its subscription, the versions that were sent, and the next response (docs/certificates.md,
 * S1 to S6).
 */
import { hash } from 'node:crypto'
import { BadNode, readNode, versionText } from '../model/proxy.ts'
import { meshNames } from '../names/mesh-names.ts'
import { WireError } from '../xds/slab/wire.ts'
import { readNodeBytes } from '../xds/stream/node.ts'
import { namesIn, readDeltaRequest, readSotwRequest, requestFault } from '../xds/stream/request.ts'
import { encodeResponse } from '../xds/stream/response.ts'
import { secretType } from '../xds/type-urls.ts'
import { isSecretName, type SecretLookup, type SecretResource } from './secret-resources.ts'

/** The maximum number of names in a subscription. */
const maxNames = 1000

/** Thrown for a request that ends the stream with the status `InvalidArgument`. */
export class BadRequest extends Error {}

/** The outcome of a request, apart from its effect on the subscription. */
export interface RequestOutcome {
  /** The error of a NACK: Envoy rejected the last response and keeps the secrets that it had before. */
  readonly refused?: string
  /** Newly subscribed names that the agent can never serve, reported once each. */
  readonly unknown: readonly string[]
  /**
   * The nonce is not that of the last response. A stale SotW request has no effect; of a stale delta request only the subscription changes
   * count.
   */
  readonly isStale?: true
}

/** The fields that SotW and delta requests have in common. */
interface Request {
  readonly node: Buffer | undefined
  readonly typeUrl: string
  readonly nonce: string
  readonly error: { readonly message: string } | undefined
}

/** The state of one stream. */
export class SecretStream {
  readonly #isDelta: boolean
  readonly #wanted = new Set<string>()
  /** The versions that were sent to Envoy, by name. */
  readonly #sent = new Map<string, string>()
  /** Names that the agent can never serve. The next delta response reports them as removed. */
  readonly #missing = new Set<string>()
  #isFirst = true
  #version = ''
  #responses = 0
  /** Whether the last response awaits its ACK or NACK. */
  #isWaiting = false

  constructor(isDelta: boolean) {
    this.#isDelta = isDelta
  }

  /** The version in the metadata of Envoy's node (`MESH_VERSION`). Empty before the first request and without the metadata. */
  get version(): string {
    return this.#version
  }

  /** The names of the current subscription. */
  get wanted(): ReadonlySet<string> {
    return this.#wanted
  }

  /** Processes a request. Throws {@link BadRequest}. */
  take(message: Buffer): RequestOutcome {
    try {
      return this.#isDelta ? this.#takeDelta(message) : this.#takeSotw(message)
    } catch (error) {
      throw error instanceof WireError || error instanceof BadNode ? new BadRequest(requestFault(error)) : error
    }
  }

  /**
   * Returns the next response: the subscribed secrets whose version differs from the one that was sent, and newly removed names. Undefined
   * when there are none, or while the last response awaits its ACK or NACK.
   */
  next(secrets: SecretLookup): Buffer | undefined {
    if (this.#isWaiting) return undefined
    const due = [...this.#wanted].flatMap((name) => {
      const secret = secrets(name)
      return secret && this.#sent.get(name) !== secret.version ? [secret] : []
    })
    const removed = [...this.#missing]
    if (due.length + removed.length === 0) return undefined
    this.#missing.clear()
    this.#isWaiting = true
    this.#responses++
    for (const { name, version } of due) this.#sent.set(name, version)
    return encodeResponse(this.#isDelta, {
      typeUrl: secretType,
      version: this.#isDelta ? '' : versionOf(due),
      nonce: String(this.#responses),
      resources: due.map((secret) => ({ ...secret, element: [secret.element] })),
      removed,
    })
  }

  #takeSotw(message: Buffer): RequestOutcome {
    const request = readSotwRequest(message)
    const answer = this.#answered(request)
    if (answer === 'stale') return { unknown: [], isStale: true }
    const names = namesIn(request.rawNames)
    for (const name of this.#wanted) if (!names.has(name)) this.#forget(name)
    return { ...answer, unknown: this.#want(names) }
  }

  #takeDelta(message: Buffer): RequestOutcome {
    const request = readDeltaRequest(message)
    const answer = this.#answered(request)
    for (const name of request.unsubscribe) this.#forget(name)
    const names = namesIn(request.rawSubscribe)
    // A repeated subscription asks for the secret again, unless the first request of the stream gives the version that the client has.
    for (const name of names) this.#sent.delete(name)
    for (const [name, version] of request.initialVersions) if (names.has(name)) this.#sent.set(name, version)
    const unknown = this.#want(names)
    for (const name of unknown) this.#missing.add(name)
    return { ...(answer === 'stale' ? { isStale: true } : answer), unknown }
  }

  /** Processes the nonce and error of a request. The first request may carry the nonce of an earlier stream, which is ignored. */
  #answered({ node, typeUrl, nonce, error }: Request): { readonly refused?: string } | 'stale' {
    if (typeUrl !== '' && typeUrl !== secretType)
      throw new BadRequest(`resources of type ${JSON.stringify(typeUrl.slice(0, 200))} are not served here`)
    if (this.#isFirst) {
      this.#version = versionText(readNode(readNodeBytes(node ?? Buffer.alloc(0)), meshNames('mesh.io'), false).version) ?? ''
      this.#isFirst = false
      return {}
    }
    if (nonce === '' && this.#isDelta) return {}
    if (nonce !== (this.#responses === 0 ? '' : String(this.#responses))) return 'stale'
    this.#isWaiting = false
    return error ? { refused: error.message } : {}
  }

  /** Adds names to the subscription. Returns the newly added names that the agent can never serve. */
  #want(names: ReadonlySet<string>): string[] {
    const unknown: string[] = []
    for (const name of names) {
      if (!isSecretName(name) && !this.#wanted.has(name)) unknown.push(name)
      this.#wanted.add(name)
    }
    if (this.#wanted.size > maxNames) throw new BadRequest(`a stream may want at most ${maxNames} secrets`)
    return unknown
  }

  #forget(name: string): void {
    this.#wanted.delete(name)
    this.#sent.delete(name)
    this.#missing.delete(name)
  }
}

/** Returns the version of a SotW response. */
const versionOf = (due: readonly SecretResource[]): string => hash('sha256', due.map(({ version }) => version).join()).slice(0, 32)
