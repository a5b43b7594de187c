/** Answers a starting proxy's requests from the stored configuration, in place of discovery (docs/agent.md, X9). */
import { elementHead, scanFields, WireError } from '../xds/slab/wire.ts'
import { PlainWatch, type Resources } from '../xds/stream/plain-watch.ts'
import { readDeltaRequest, readSotwRequest } from '../xds/stream/request.ts'
import type { KeptConfiguration } from './kept-configuration.ts'

/** The version of all stored resources. Discovery does not know it and later sends all resources again. */
const version = 'kept'

/** The fields of a proxy's first request that identify it. */
export interface FirstRequest {
  readonly nodeId: string
  /** Whether the proxy has no configuration yet: the request contains no versions. */
  readonly isFresh: boolean
}

const prefixLength = 5

/** Parses the first request in `requests`, which contain gRPC prefixes. Undefined when the request is incomplete or cannot be parsed. */
export function readFirst(isDelta: boolean, requests: Buffer): FirstRequest | undefined {
  const end = requests.length < prefixLength ? Number.POSITIVE_INFINITY : prefixLength + requests.readUInt32BE(1)
  if (requests.length < end) return undefined
  const message = requests.subarray(prefixLength, end)
  try {
    if (isDelta) {
      const { node, initialVersions } = readDeltaRequest(message)
      return { nodeId: idOf(node), isFresh: initialVersions.size === 0 }
    }
    const { node, hasVersion } = readSotwRequest(message)
    return { nodeId: idOf(node), isFresh: !hasVersion }
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

/** Returns the `id` of a node. */
function idOf(node: Buffer | undefined): string {
  for (const { field, bytes } of scanFields(node ?? Buffer.alloc(0))) if (field === 1 && bytes) return bytes.toString()
  return ''
}

/** The state of one stream. */
export class KeptAnswers {
  readonly #isDelta: boolean
  readonly #kept: KeptConfiguration
  readonly #watches = new Map<string, PlainWatch>()

  constructor(isDelta: boolean, kept: KeptConfiguration) {
    this.#isDelta = isDelta
    this.#kept = kept
  }

  /** Returns the response to a request. Undefined when the request needs none. Throws WireError. */
  answer(message: Buffer): Buffer | undefined {
    const request = this.#isDelta ? readDeltaRequest(message) : readSotwRequest(message)
    const { typeUrl } = request
    const watch = this.#watches.get(typeUrl) ?? new PlainWatch(this.#isDelta, typeUrl)
    this.#watches.set(typeUrl, watch)
    if ('rawNames' in request) watch.takeSotw(request)
    else watch.takeDelta(request)
    return watch.next(this.#resources(typeUrl))
  }

  #resources(typeUrl: string): Resources {
    const find = (name: string) => {
      const value = this.#kept.resource(typeUrl, name)
      return value && { name, version, element: [elementHead(typeUrl, value.length), value] }
    }
    return { find, isNever: (name) => !find(name), all: () => this.#kept.names(typeUrl).flatMap((name) => find(name) ?? []) }
  }
}
