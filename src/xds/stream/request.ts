/** Reads discovery requests from the wire: `envoy.service.discovery.v3.DiscoveryRequest` and `DeltaDiscoveryRequest`. */
import { MalformedMessage, scanFields, WireError, type WireField } from '../slab/wire.ts'

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
  readonly initialVersions: ReadonlyMap<string, string>
  readonly error: { readonly code: number; readonly message: string } | undefined
}

/**
 * The maximum length in bytes of a resource name, a type URL, the message of a NACK and a nonce, and the maximum number of names in one
 * request.
 */
const limits = { name: 4096, typeUrl: 512, refusal: 4096, nonce: 256, names: 500_000 }

const namesField = 3
/** The tag byte of a name field: field number and wire type 2 (length-delimited). */
const nameTag = (namesField << 3) | 2

/** Returns why a stream ends, given the error that its request caused. */
export const requestFault = (error: Error): string =>
  error instanceof MalformedMessage ? `the discovery request cannot be decoded: ${error.message}` : error.message

/** Reads a state-of-the-world request. Throws {@link WireError}. */
export function readSotwRequest(message: Buffer): SotwRequest {
  const request: SotwHead = { node: undefined, hasVersion: false, typeUrl: '', nonce: '', error: undefined }
  const names = new Runs(message)
  for (const field of fieldsBesideNames(message, names)) takeField(request, field)
  return { ...request, rawNames: names.bytes() }
}

/**
 * Yields the fields of a request other than the names to subscribe to, and adds the places of the names to `names`. Both kinds of requests
 * have these names in field 3.
 */
function* fieldsBesideNames(message: Buffer, names: Runs): Generator<WireField> {
  let from: number | undefined = 0
  while (from !== undefined) {
    const start: number = from
    from = undefined
    for (const field of scanFields(message, start)) {
      if (field.field !== namesField || !field.bytes) {
        yield field
        continue
      }
      from = Math.max(field.end, endOfNames(message, field.start))
      names.add(field.start, from)
      break
    }
  }
}

/**
 * Returns where a run of consecutive name fields ends. Every ACK of the state of the world repeats thousands of names. A field that
 * {@link endOfName} cannot read is left to `scanFields`.
 */
function endOfNames(message: Buffer, from: number): number {
  let at = from
  for (let end = endOfName(message, at); end !== undefined; end = endOfName(message, at)) at = end
  return at
}

/** Returns the end of the name field of fewer than 16 KiB that starts at an offset; undefined if no such field starts there. */
export function endOfName(message: Buffer, at: number): number | undefined {
  if (message[at] !== nameTag) return undefined
  const low = message[at + 1] ?? message.length
  const high = low > 127 ? (message[at + 2] ?? message.length) : 0
  if (high > 127) return undefined
  const end = contentOfName(message, at) + (low & 127) + high * 128
  return end > message.length ? undefined : end
}

/** Returns the offset of the name itself in the name field that starts at an offset. */
export const contentOfName = (message: Buffer, at: number): number => at + ((message[at + 1] ?? 0) > 127 ? 3 : 2)

type SotwHead = { -readonly [K in Exclude<keyof SotwRequest, 'rawNames'>]: SotwRequest[K] }

function takeField(request: SotwHead, { field, bytes }: WireField): void {
  if (!bytes) return
  if (field === 1) request.hasVersion = bytes.length > 0
  else if (field === 2) request.node = bytes
  else if (field === 4) request.typeUrl = typeUrlOf(bytes)
  else if (field === 5) request.nonce = nonceOf(bytes)
  else if (field === 6) request.error = readStatus(bytes)
}

/** Joins ranges of a message. Adjacent ranges are joined without copying. */
class Runs {
  readonly #message: Buffer
  readonly #runs: { start: number; end: number }[] = []

  constructor(message: Buffer) {
    this.#message = message
  }

  add(start: number, end: number): void {
    const last = this.#runs.at(-1)
    if (last?.end === start) last.end = end
    else this.#runs.push({ start, end })
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
  const subscribe = new Runs(message)
  const initialVersions = new Map<string, string>()
  for (const { field, bytes } of fieldsBesideNames(message, subscribe)) {
    if (!bytes) continue
    if (field === 1) node = bytes
    else if (field === 2) typeUrl = typeUrlOf(bytes)
    else if (field === 4) unsubscribe.push(nameOf(bytes, unsubscribe.length))
    else if (field === 5) {
      let name = ''
      let version = ''
      for (const entry of scanFields(bytes)) {
        if (entry.field === 1 && entry.bytes) name = nameOf(entry.bytes, initialVersions.size)
        if (entry.field === 2 && entry.bytes) version = entry.bytes.toString()
      }
      initialVersions.set(name, version)
    } else if (field === 6) nonce = nonceOf(bytes)
    else if (field === 7) error = readStatus(bytes)
  }
  return { node, typeUrl, nonce, rawSubscribe: subscribe.bytes(), unsubscribe, initialVersions, error }
}

/** Returns the names in raw name fields, without repetitions. Throws {@link WireError}. */
export function namesIn(raw: Buffer): Set<string> {
  const names = new Set<string>()
  let count = 0
  let at = 0
  for (let end = endOfName(raw, at); end !== undefined; end = endOfName(raw, at)) {
    const start = contentOfName(raw, at)
    checkName(end - start, count++)
    names.add(raw.toString('utf8', start, end))
    at = end
  }
  for (const { bytes } of scanFields(raw, at)) if (bytes) names.add(nameOf(bytes, count++))
  return names
}

/**
 * Checks the length in bytes of a name that follows `count` others. Throws {@link WireError} if the name is too long or the request has too
 * many names.
 */
export function checkName(length: number, count: number): void {
  if (length > limits.name) throw new WireError(`resource name is longer than ${limits.name} bytes`)
  if (count >= limits.names) throw new WireError(`more than ${limits.names} resource names`)
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
