/** Answers a proxy that starts from the configuration that was kept (docs/agent.md, X9), in the place of discovery. */
import { deltaResourceHead, elementHead, scanFields, textField, WireError } from '../xds/slab/wire.ts'
import { readDeltaRequest, readSotwRequest } from '../xds/stream/request.ts'
import { isWildcardType } from '../xds/type-urls.ts'
import type { KeptConfiguration } from './kept-configuration.ts'

/** The version of all that is kept: discovery knows none of it, and sends everything anew. */
const version = 'kept'
const wildcard = '*'

/** What is known of a proxy by its first request. */
export interface FirstRequest {
  readonly nodeId: string
  /** Whether it has no configuration yet. */
  readonly isFresh: boolean
}

const prefixLength = 5

/** Reads the first of the requests that have come, with their prefixes; undefined when it is not whole, or no request. */
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

/** `id` of a node. */
function idOf(node: Buffer | undefined): string {
  for (const { field, bytes } of scanFields(node ?? Buffer.alloc(0))) if (field === 1 && bytes) return bytes.toString()
  return ''
}

/** The answers on one stream. */
export class KeptAnswers {
  readonly #isDelta: boolean
  readonly #kept: KeptConfiguration
  /** Names that were answered, by type. */
  readonly #answered = new Map<string, string>()
  #nonce = 0

  constructor(isDelta: boolean, kept: KeptConfiguration) {
    this.#isDelta = isDelta
    this.#kept = kept
  }

  /** The response to a request; undefined when it needs none. Throws WireError. */
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
    // That there is nothing of a type is an answer only for who asks for all of it.
    if (resources.length === 0 && names.size > 0) return undefined
    const elements = resources.flatMap(([, value]) => [elementHead(typeUrl, value.length), value])
    return Buffer.concat([textField(1, version), ...elements, ...this.#tail(typeUrl)])
  }

  #delta(message: Buffer): Buffer | undefined {
    const { typeUrl, rawSubscribe } = readDeltaRequest(message)
    const names = namesIn(rawSubscribe)
    const isFirst = !this.#answered.has(typeUrl)
    this.#answered.set(typeUrl, '')
    if (names.size === 0 && !(isFirst && isWildcardType(typeUrl))) return undefined
    const resources = this.#kept.resources(typeUrl, names.has(wildcard) ? new Set() : names)
    const parts = resources.flatMap(([name, value]) => {
      const element = Buffer.concat([elementHead(typeUrl, value.length), value])
      return [deltaResourceHead(name, version, element.length), element]
    })
    const there = new Set(resources.map(([name]) => name))
    const missing = [...names].filter((name) => name !== wildcard && !there.has(name))
    return Buffer.concat([...parts, ...this.#tail(typeUrl), ...missing.map((name) => textField(6, name))])
  }

  #tail(typeUrl: string): Buffer[] {
    return [textField(4, typeUrl), textField(5, `${version}-${++this.#nonce}`)]
  }
}

/** Names in the fields that came. */
function namesIn(raw: Buffer): Set<string> {
  const names = new Set<string>()
  for (const { bytes } of scanFields(raw)) if (bytes) names.add(bytes.toString())
  return names
}
