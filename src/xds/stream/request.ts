/** Reads discovery requests from the wire: `envoy.service.discovery.v3.DiscoveryRequest` and `DeltaDiscoveryRequest`. */
import { contentOfField, endOfField, MalformedMessage, scanFields, WireError, type WireField } from '../slab/wire.ts'
import { type ReportedVersions, VersionFields } from './reported-versions.ts'
import { checkName, limits } from './request-limits.ts'

/** A state-of-the-world request. */
export interface SotwRequest {
  /** The encoded node; `readNodeBytes` decodes it. */
  readonly node: Buffer | undefined
  /** Whether `version_info` is set: the client has a version of the type from an earlier stream. */
  readonly hasVersion: boolean
  readonly typeUrl: string
  readonly nonce: string
  /** The `resource_names` fields as received. */
  readonly rawNames: Buffer
  readonly error: { readonly code: number; readonly message: string } | undefined
}

/** A delta request. */
export interface DeltaRequest {
  /** The encoded node; `readNodeBytes` decodes it. */
  readonly node: Buffer | undefined
  readonly typeUrl: string
  readonly nonce: string
  /** The `resource_names_subscribe` fields as received. */
  readonly rawSubscribe: Buffer
  readonly unsubscribe: readonly string[]
  readonly initialVersions: ReportedVersions
  readonly error: { readonly code: number; readonly message: string } | undefined
}

const namesField = 3
/** The tag byte of a name field: field number and wire type 2 (length-delimited). */
const nameTag = (namesField << 3) | 2

/** Returns why a stream ends, given the error that its request caused. */
export const requestFault = (error: Error): string =>
  error instanceof MalformedMessage ? `the discovery request cannot be decoded: ${error.message}` : error.message

/** Reads a state-of-the-world request. Throws {@link WireError}. */
export function readSotwRequest(message: Buffer): SotwRequest {
  const request: SotwHead = { node: undefined, hasVersion: false, typeUrl: '', nonce: '', error: undefined }
  const names = new NameFields(message)
  for (const field of fieldsBeside(message, [names])) takeField(request, field)
  return { ...request, rawNames: names.bytes() }
}

/** Fields of which a request has thousands, one after another. */
interface ManyFields {
  readonly field: number
  /** Takes those that follow each other from `first` on, and returns where they end. Throws {@link WireError}. */
  take(message: Buffer, first: WireField): number
}

/** Yields the fields of a request other than those of which it has many. */
function* fieldsBeside(message: Buffer, many: readonly ManyFields[]): Generator<WireField> {
  let from: number | undefined = 0
  while (from !== undefined) {
    const start: number = from
    from = undefined
    for (const field of scanFields(message, start)) {
      const fields = field.bytes && many.find((fields) => fields.field === field.field)
      if (!fields) {
        yield field
        continue
      }
      from = fields.take(message, field)
      break
    }
  }
}

/** Returns the end of the name field of fewer than 16 KiB that starts at an offset; undefined if no such field starts there. */
export const endOfName = (message: Buffer, at: number): number | undefined => endOfField(message, at, nameTag)

type SotwHead = { -readonly [K in Exclude<keyof SotwRequest, 'rawNames'>]: SotwRequest[K] }

function takeField(request: SotwHead, { field, bytes }: WireField): void {
  if (!bytes) return
  if (field === 1) request.hasVersion = bytes.length > 0
  else if (field === 2) request.node = bytes
  else if (field === 4) request.typeUrl = typeUrlOf(bytes)
  else if (field === 5) request.nonce = nonceOf(bytes)
  else if (field === 6) request.error = readStatus(bytes)
}

/** The names to subscribe to, which both kinds of requests have in the same field. Those that follow each other are joined without copying. */
class NameFields {
  readonly field = namesField
  readonly #message: Buffer
  readonly #runs: { start: number; end: number }[] = []

  constructor(message: Buffer) {
    this.#message = message
  }

  /** A field that {@link endOfName} cannot read is left to `scanFields`. Every ACK of the state of the world repeats thousands of names. */
  take(message: Buffer, { start, end: first }: WireField): number {
    let end = first
    for (let next = endOfName(message, end); next !== undefined; next = endOfName(message, end)) end = next
    const last = this.#runs.at(-1)
    if (last?.end === start) last.end = end
    else this.#runs.push({ start, end })
    return end
  }

  bytes(): Buffer {
    const [only] = this.#runs
    if (this.#runs.length === 1 && only) return this.#message.subarray(only.start, only.end)
    return Buffer.concat(this.#runs.map(({ start, end }) => this.#message.subarray(start, end)))
  }
}

/** Reads a delta request. Throws {@link WireError}. */
export function readDeltaRequest(message: Buffer): DeltaRequest {
  let node: Buffer | undefined
  let typeUrl = ''
  let nonce = ''
  let error: DeltaRequest['error']
  const unsubscribe: string[] = []
  const subscribe = new NameFields(message)
  const versions = new VersionFields()
  for (const { field, bytes } of fieldsBeside(message, [subscribe, versions])) {
    if (!bytes) continue
    if (field === 1) node = bytes
    else if (field === 2) typeUrl = typeUrlOf(bytes)
    else if (field === 4) unsubscribe.push(nameOf(bytes, unsubscribe.length))
    else if (field === 6) nonce = nonceOf(bytes)
    else if (field === 7) error = readStatus(bytes)
  }
  return { node, typeUrl, nonce, rawSubscribe: subscribe.bytes(), unsubscribe, initialVersions: versions.versions(), error }
}

/** Returns the names in raw name fields, without repetitions. Throws {@link WireError}. */
export function namesIn(raw: Buffer): Set<string> {
  const names = new Set<string>()
  let count = 0
  let at = 0
  for (let end = endOfName(raw, at); end !== undefined; end = endOfName(raw, at)) {
    const start = contentOfField(raw, at)
    checkName(end - start, count++)
    names.add(raw.toString('utf8', start, end))
    at = end
  }
  for (const { bytes } of scanFields(raw, at)) if (bytes) names.add(nameOf(bytes, count++))
  return names
}

function nameOf(bytes: Buffer, count: number): string {
  checkName(bytes.length, count)
  return bytes.toString()
}

function typeUrlOf(bytes: Buffer): string {
  if (bytes.length > limits.typeUrl) throw new WireError(`type_url is longer than ${limits.typeUrl} bytes`)
  return bytes.toString()
}

/** Returns a nonce, cut to the maximum length. No nonce that was sent is longer, so a cut nonce is still stale. */
function nonceOf(bytes: Buffer): string {
  return bytes.subarray(0, limits.nonce).toString()
}

function readStatus(bytes: Buffer): { code: number; message: string } {
  let code = 0
  let message = ''
  for (const entry of scanFields(bytes)) {
    if (entry.field === 1 && !entry.bytes) code = entry.value
    if (entry.field === 2 && entry.bytes) message = entry.bytes.subarray(0, limits.refusal).toString().trim()
  }
  return { code, message: /-----BEGIN|PRIVATE KEY/.test(message) ? quotesPem : message }
}

/**
 * Replaces an error message that quotes PEM. Error messages are logged and shown on debug pages, and a refused secret contains a private
 * key.
 */
const quotesPem = 'the reason is left out: it quotes a certificate or a key'
