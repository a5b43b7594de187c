/** One SDS stream, SotW or delta (docs/certificates.md, S1 to S6): which requests it accepts, and which names it can serve. */
import { BadNode, readNode, versionText } from '../model/proxy.ts'
import { meshNames } from '../names/mesh-names.ts'
import { WireError } from '../xds/slab/wire.ts'
import { readNodeBytes } from '../xds/stream/node.ts'
import { PlainWatch, type WatchOutcome } from '../xds/stream/plain-watch.ts'
import { readDeltaRequest, readSotwRequest, requestFault } from '../xds/stream/request.ts'
import { secretType } from '../xds/type-urls.ts'
import { isSecretName, type SecretLookup } from './secret-resources.ts'

/** The maximum number of names in a subscription. */
const maxNames = 1000

/** Thrown for a request that ends the stream with the status `InvalidArgument`. */
export class BadRequest extends Error {}

/** The outcome of a request. */
export interface RequestOutcome extends Omit<WatchOutcome, 'added'> {
  /** Newly subscribed names that the agent can never serve, reported once each. */
  readonly unknown: readonly string[]
}

/** The state of one stream. */
export class SecretStream {
  readonly #isDelta: boolean
  readonly #watch: PlainWatch
  #isFirst = true
  #version = ''

  constructor(isDelta: boolean) {
    this.#isDelta = isDelta
    this.#watch = new PlainWatch(isDelta, secretType)
  }

  /** The version in the metadata of Envoy's node (`MESH_VERSION`). Empty before the first request and without the metadata. */
  get version(): string {
    return this.#version
  }

  /** The names of the current subscription. */
  get wanted(): ReadonlySet<string> {
    return this.#watch.wanted
  }

  /** Processes a request. A NACK means that Envoy keeps the secrets that it had before. Throws {@link BadRequest}. */
  take(message: Buffer): RequestOutcome {
    try {
      const { added, ...outcome } = this.#isDelta ? this.#takeDelta(message) : this.#takeSotw(message)
      if (this.wanted.size > maxNames) throw new BadRequest(`a stream may want at most ${maxNames} secrets`)
      return { ...outcome, unknown: added.filter((name) => !isSecretName(name)) }
    } catch (error) {
      throw error instanceof WireError || error instanceof BadNode ? new BadRequest(requestFault(error)) : error
    }
  }

  /**
   * Returns the next response: the subscribed secrets whose version differs from the one that was sent, and names that the agent can never
   * serve. Undefined when there are none, or while the last response awaits its ACK or NACK.
   */
  next(secrets: SecretLookup): Buffer | undefined {
    const resource = (name: string) => {
      const secret = secrets(name)
      return secret && { ...secret, element: [secret.element] }
    }
    return this.#watch.next({ find: resource, isNever: (name) => !isSecretName(name), all: () => [] })
  }

  #takeSotw(message: Buffer): WatchOutcome {
    const request = readSotwRequest(message)
    this.#check(request)
    return this.#watch.takeSotw(request)
  }

  #takeDelta(message: Buffer): WatchOutcome {
    const request = readDeltaRequest(message)
    this.#check(request)
    return this.#watch.takeDelta(request)
  }

  /** Throws for another type, and for a first request without the node of a proxy. */
  #check({ node, typeUrl }: { readonly node: Buffer | undefined; readonly typeUrl: string }): void {
    if (typeUrl !== '' && typeUrl !== secretType)
      throw new BadRequest(`resources of type ${JSON.stringify(typeUrl.slice(0, 200))} are not served here`)
    if (!this.#isFirst) return
    this.#version = versionText(readNode(readNodeBytes(node ?? Buffer.alloc(0)), meshNames('mesh.io'), false).version) ?? ''
    this.#isFirst = false
  }
}
