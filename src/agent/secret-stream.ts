/** What one stream of secrets wants, has, and is sent next, in both forms of the protocol (docs/certificates.md, S1 to S6). */
import { hash } from 'node:crypto'
import { BadNode, readNode } from '../model/proxy.ts'
import { meshNames } from '../names/mesh-names.ts'
import { deltaResourceHead, textField, WireError } from '../xds/slab/wire.ts'
import { readNodeBytes } from '../xds/stream/node.ts'
import { namesIn, readDeltaRequest, readSotwRequest } from '../xds/stream/request.ts'
import { secretType } from '../xds/type-urls.ts'
import { isSecretName, type SecretLookup, type SecretResource } from './secret-resources.ts'

/** Most names that a stream may want. */
const mostNames = 1000

/** Why a stream is ended by its server: the status is `InvalidArgument`. */
export class BadRequest extends Error {}

/** What a request says beside what it asks for. */
export interface Taken {
  /** Envoy refused what it was sent last, for this reason, and keeps what it had before. */
  readonly refused?: string
  /** Names that this agent never has a secret for, told once each. */
  readonly unknown: readonly string[]
  /** The nonce is not that of the last response: what else the request says of a state of the world is passed over. */
  readonly isStale?: true
}

/** A request in either form. */
interface Request {
  readonly node: Buffer | undefined
  readonly typeUrl: string
  readonly nonce: string
  readonly error: { readonly message: string } | undefined
}

/** State of one stream. */
export class SecretStream {
  readonly #isDelta: boolean
  readonly #wanted = new Set<string>()
  /** Versions that Envoy has, by name. */
  readonly #sent = new Map<string, string>()
  /** Names that nothing is known of, which a delta stream is told once. */
  readonly #missing = new Set<string>()
  #isFirst = true
  #version = ''
  #responses = 0
  /** Whether the last response is still to be answered. */
  #isWaiting = false

  constructor(isDelta: boolean) {
    this.#isDelta = isDelta
  }

  /** The version that Envoy's node tells of itself (`MESH_VERSION`), empty before the first request and where it tells none. */
  get version(): string {
    return this.#version
  }

  /** The names that are wanted at present. */
  get wanted(): ReadonlySet<string> {
    return this.#wanted
  }

  /** Takes a request. Throws {@link BadRequest}. */
  take(message: Buffer): Taken {
    try {
      return this.#isDelta ? this.#takeDelta(message) : this.#takeSotw(message)
    } catch (error) {
      throw error instanceof WireError || error instanceof BadNode ? new BadRequest(error.message) : error
    }
  }

  /** The next response: secrets that are wanted in another version than Envoy has. Undefined when there are none, or the last response is still to be answered. */
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
    return this.#isDelta ? this.#deltaResponse(due, removed) : this.#sotwResponse(due)
  }

  #takeSotw(message: Buffer): Taken {
    const request = readSotwRequest(message)
    const answer = this.#answered(request)
    if (answer === 'stale') return { unknown: [], isStale: true }
    const names = namesIn(request.rawNames)
    for (const name of this.#wanted) if (!names.has(name)) this.#forget(name)
    return { ...answer, unknown: this.#want(names) }
  }

  #takeDelta(message: Buffer): Taken {
    const request = readDeltaRequest(message)
    const answer = this.#answered(request)
    for (const name of request.unsubscribe) this.#forget(name)
    const names = namesIn(request.rawSubscribe)
    // Who subscribes again wants it again, unless the client says at the begin of a stream which version it has.
    for (const name of names) this.#sent.delete(name)
    for (const [name, version] of request.initialVersions) if (names.has(name)) this.#sent.set(name, version)
    const unknown = this.#want(names)
    for (const name of unknown) this.#missing.add(name)
    return { ...(answer === 'stale' ? { isStale: true } : answer), unknown }
  }

  /** What a request answers. Nonces of an earlier stream come with a first request only. */
  #answered({ node, typeUrl, nonce, error }: Request): { readonly refused?: string } | 'stale' {
    if (typeUrl !== '' && typeUrl !== secretType)
      throw new BadRequest(`resources of type ${JSON.stringify(typeUrl.slice(0, 200))} are not served here`)
    if (this.#isFirst) {
      this.#version = readNode(readNodeBytes(node ?? Buffer.alloc(0)), meshNames('mesh.io'), false).version?.join('.') ?? ''
      this.#isFirst = false
      return {}
    }
    if (nonce === '' && this.#isDelta) return {}
    if (nonce !== (this.#responses === 0 ? '' : String(this.#responses))) return 'stale'
    this.#isWaiting = false
    return error ? { refused: error.message } : {}
  }

  /** Adds names. Returns those of nothing known, told once each. */
  #want(names: ReadonlySet<string>): string[] {
    const unknown: string[] = []
    for (const name of names) {
      if (!isSecretName(name) && !this.#wanted.has(name)) unknown.push(name)
      this.#wanted.add(name)
    }
    if (this.#wanted.size > mostNames) throw new BadRequest(`a stream may want at most ${mostNames} secrets`)
    return unknown
  }

  #forget(name: string): void {
    this.#wanted.delete(name)
    this.#sent.delete(name)
    this.#missing.delete(name)
  }

  /** `DiscoveryResponse`. */
  #sotwResponse(due: readonly SecretResource[]): Buffer {
    const version = hash('sha256', due.map((one) => one.version).join()).slice(0, 32)
    return Buffer.concat([
      textField(1, version),
      ...due.map(({ element }) => element),
      textField(4, secretType),
      textField(5, String(this.#responses)),
    ])
  }

  /** `DeltaDiscoveryResponse`. */
  #deltaResponse(due: readonly SecretResource[], removed: readonly string[]): Buffer {
    const resources = due.flatMap(({ name, version, element }) => [deltaResourceHead(name, version, element.length), element])
    return Buffer.concat([
      ...resources,
      textField(4, secretType),
      textField(5, String(this.#responses)),
      ...removed.map((name) => textField(6, name)),
    ])
  }
}
