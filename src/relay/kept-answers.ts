/** Answers a starting proxy's requests from the stored configuration, in place of discovery (docs/agent.md, X9). */
import { elementHead, scanFields, WireError } from '../xds/slab/wire.ts'
import { namesIn, readDeltaRequest, readSotwRequest } from '../xds/stream/request.ts'
import { encodeResponse } from '../xds/stream/response.ts'
import { isWildcardType } from '../xds/type-urls.ts'
import type { KeptConfiguration } from './kept-configuration.ts'

/** The version of all stored resources. Discovery does not know it and later sends all resources again. */
const version = 'kept'
const wildcard = '*'

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
  /** The last answered subscription by type URL: its sorted names for SotW, empty for delta. */
  readonly #answered = new Map<string, string>()
  #nonce = 0

  constructor(isDelta: boolean, kept: KeptConfiguration) {
    this.#isDelta = isDelta
    this.#kept = kept
  }

  /** Returns the response to a request. Undefined when the request needs none. Throws WireError. */
  answer(message: Buffer): Buffer | undefined {
    return this.#isDelta ? this.#delta(message) : this.#sotw(message)
  }

  #sotw(message: Buffer): Buffer | undefined {
    const { typeUrl, rawNames } = readSotwRequest(message)
    const names = namesIn(rawNames)
    const asked = [...names].sort().join('\n')
    if (this.#answered.get(typeUrl) === asked) return undefined
    this.#answered.set(typeUrl, asked)
    if (names.size === 0 && !isWildcardType(typeUrl)) return undefined
    const resources = this.#kept.resources(typeUrl, names.has(wildcard) ? new Set() : names)
    // An empty response is sent for a wildcard subscription only.
    if (resources.length === 0 && names.size > 0) return undefined
    return this.#response(typeUrl, resources, [])
  }

  #delta(message: Buffer): Buffer | undefined {
    const { typeUrl, rawSubscribe } = readDeltaRequest(message)
    const names = namesIn(rawSubscribe)
    const isFirst = !this.#answered.has(typeUrl)
    this.#answered.set(typeUrl, '')
    if (names.size === 0 && !(isFirst && isWildcardType(typeUrl))) return undefined
    const resources = this.#kept.resources(typeUrl, names.has(wildcard) ? new Set() : names)
    const there = new Set(resources.map(([name]) => name))
    const missing = [...names].filter((name) => name !== wildcard && !there.has(name))
    return this.#response(typeUrl, resources, missing)
  }

  #response(typeUrl: string, resources: readonly [name: string, value: Buffer][], removed: readonly string[]): Buffer {
    return encodeResponse(this.#isDelta, {
      typeUrl,
      version: this.#isDelta ? '' : version,
      nonce: `${version}-${++this.#nonce}`,
      resources: resources.map(([name, value]) => ({ name, version, element: [elementHead(typeUrl, value.length), value] })),
      removed,
    })
  }
}
