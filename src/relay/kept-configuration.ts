/**
 * The last configuration that was sent to a proxy, by resource. It is served to a proxy that starts while discovery is unreachable
 * (docs/agent.md, X9). Encoded, it is a protobuf message: format (1), node id (2), and resources (3) with type URL (1), message (2) and
 * name (3).
 */
import { fieldHead, scanFields, textField, WireError } from '../xds/slab/wire.ts'
import { isWholeType, secretType } from '../xds/type-urls.ts'

/** The maximum total size of the resources, in bytes. */
const maxBytes = 67_108_864

/** The value of field 1 of the encoded form. A file with another value is rejected. */
const form = 'mesh-configuration-1'

/** The resources by type URL and name: the value of each resource's `Any`. */
export class KeptConfiguration {
  /** The node id of the proxy. */
  readonly nodeId: string
  readonly #types = new Map<string, Map<string, Buffer>>()
  #bytes = 0

  constructor(nodeId: string) {
    this.nodeId = nodeId
  }

  /** Whether the resources exceed the maximum size. A configuration that does is discarded as a whole. */
  get isTooLarge(): boolean {
    return this.#bytes > maxBytes
  }

  /** Adds a response that was sent to the proxy. Secrets are left out, because they contain private keys. Throws WireError. */
  take(isDelta: boolean, message: Buffer): void {
    const resources: Buffer[] = []
    const removed: string[] = []
    let typeUrl = ''
    for (const { field, bytes } of scanFields(message)) {
      if (!bytes) continue
      if (field === 2) resources.push(bytes)
      else if (field === 4) typeUrl = bytes.toString()
      else if (field === 6 && isDelta) removed.push(bytes.toString())
    }
    if (typeUrl === '' || typeUrl === secretType) return
    const held = this.#types.get(typeUrl) ?? new Map<string, Buffer>()
    this.#types.set(typeUrl, held)
    if (!isDelta && isWholeType(typeUrl)) for (const name of [...held.keys()]) this.#set(held, name, undefined)
    for (const name of removed) this.#set(held, name, undefined)
    for (const resource of resources) {
      const value = messageIn(isDelta ? contentOf(resource, 2) : resource)
      if (!value) continue
      // In SotW responses the name is field 1 of each of these messages. Virtual hosts, which are named differently, are sent over delta
      // only.
      const name = isDelta ? contentOf(resource, 3) : contentOf(value, 1)
      this.#set(held, name?.toString() ?? '', Buffer.from(value))
    }
  }

  /** Returns the value of a resource. Undefined when there is none. */
  resource(typeUrl: string, name: string): Buffer | undefined {
    return this.#types.get(typeUrl)?.get(name)
  }

  /** Returns the names of all resources of a type. */
  names(typeUrl: string): string[] {
    return [...(this.#types.get(typeUrl)?.keys() ?? [])]
  }

  /** Encodes the configuration. */
  encode(): Buffer[] {
    const parts = [textField(1, form), textField(2, this.nodeId)]
    for (const [typeUrl, held] of this.#types)
      for (const [name, value] of held) parts.push(...within(3, [textField(1, typeUrl), textField(3, name), fieldHead(2, value.length), value]))
    return parts
  }

  /** Decodes the result of {@link encode}. Throws WireError for other bytes. */
  static decode(bytes: Buffer): KeptConfiguration {
    let kept: KeptConfiguration | undefined
    for (const { field, bytes: content } of scanFields(bytes)) {
      if (field === 1 && content?.toString() !== form) throw new WireError('is of another form')
      if (field === 2 && content) kept = new KeptConfiguration(content.toString())
      if (field !== 3 || !content) continue
      const typeUrl = contentOf(content, 1)?.toString() ?? ''
      const value = contentOf(content, 2)
      if (!kept || !value) throw new WireError('is cut short')
      const held = kept.#types.get(typeUrl) ?? new Map<string, Buffer>()
      kept.#types.set(typeUrl, held)
      kept.#set(held, contentOf(content, 3)?.toString() ?? '', value)
    }
    if (!kept) throw new WireError('holds no configuration')
    return kept
  }

  #set(held: Map<string, Buffer>, name: string, value: Buffer | undefined): void {
    this.#bytes += (value?.length ?? 0) - (held.get(name)?.length ?? 0)
    if (value) held.set(name, value)
    else held.delete(name)
  }
}

/** Returns the value of an `Any`. */
const messageIn = (any: Buffer | undefined): Buffer | undefined => any && (contentOf(any, 2) ?? Buffer.alloc(0))

/** Returns the first length-delimited field with a number. */
function contentOf(message: Buffer, number: number): Buffer | undefined {
  for (const { field, bytes } of scanFields(message)) if (field === number && bytes) return bytes
  return undefined
}

function within(field: number, parts: readonly Uint8Array[]): Buffer[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return [fieldHead(field, length), ...parts].map((part) => Buffer.from(part.buffer, part.byteOffset, part.length))
}
