/** Reads discovery requests off the wire: `envoy.service.discovery.v3.DiscoveryRequest` and `DeltaDiscoveryRequest`. */
import { scanFields, WireError, type WireField } from '../slab/wire.ts'

/** A state-of-the-world request. */
export interface SotwRequest {
  /** The node as it came; `readNodeBytes` reads it. */
  readonly node: Buffer | undefined
  /** Whether the client says that it has a version of the type from before. */
  readonly hasVersion: boolean
  readonly typeUrl: string
  readonly nonce: string
  /** The `resource_names` fields as they came. */
  readonly rawNames: Buffer
  readonly error: { readonly code: number; readonly message: string } | undefined
}

/** A delta request. */
export interface DeltaRequest {
  /** The node as it came; `readNodeBytes` reads it. */
  readonly node: Buffer | undefined
  readonly typeUrl: string
  readonly nonce: string
  /** The `resource_names_subscribe` fields as they came. */
  readonly rawSubscribe: Buffer
  readonly unsubscribe: readonly string[]
  readonly initialVersions: ReadonlyMap<string, string>
  readonly error: { readonly code: number; readonly message: string } | undefined
}

/** Longest resource name, type URL, message of a refusal and nonce, in bytes, and most names in one request. */
const limits = { name: 4096, typeUrl: 512, refusal: 4096, nonce: 256, names: 500_000 }

const namesField = 3
/** The byte before each name: its field, and that a length follows. */
const nameTag = (namesField << 3) | 2

/** Reads a request. Throws {@link WireError}. */
export function readSotwRequest(message: Buffer): SotwRequest {
  const request: SotwHead = { node: undefined, hasVersion: false, typeUrl: '', nonce: '', error: undefined }
  const names = new Runs(message)
  for (const field of fieldsBesideNames(message, names)) takeField(request, field)
  return { ...request, rawNames: names.bytes() }
}

/** The fields of a request that are not names; the names go to `names`. Both kinds of requests have them in the same field. */
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

/** Where the names end that stand one after the other: every ACK of the state of the world repeats thousands. What is no plain name is left to the scan. */
function endOfNames(message: Buffer, from: number): number {
  let at = from
  for (let end = endOfName(message, at); end !== undefined; end = endOfName(message, at)) at = end
  return at
}

/** Where a name field of fewer than 16 KiB ends that starts here; undefined where no such field does. */
export function endOfName(message: Buffer, at: number): number | undefined {
  if (message[at] !== nameTag) return undefined
  const low = message[at + 1] ?? message.length
  const high = low > 127 ? (message[at + 2] ?? message.length) : 0
  if (high > 127) return undefined
  const end = contentOfName(message, at) + (low & 127) + high * 128
  return end > message.length ? undefined : end
}

/** Where the name itself starts in the field of a name that starts here. */
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

/** Stretches of a message put together; those that touch are not copied. */
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

/** The names in `resource_names` fields as they came, each once. Throws {@link WireError}. */
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

/** Takes a name of so many bytes after `count` others. Throws {@link WireError} where that is too long, or one too many. */
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

/** A nonce. One that is longer than any that was ever given is cut, and is as stale as it was. */
function nonceOf(bytes: Buffer): string {
  return bytes.subarray(0, limits.nonce).toString()
}

function readStatus(bytes: Buffer): { code: number; message: string } {
  let code = 0
  let message = ''
  for (const entry of scanFields(bytes)) {
    if (entry.field === 1 && !entry.bytes) code = entry.value
    if (entry.field === 2 && entry.bytes) message = entry.bytes.subarray(0, limits.refusal).toString()
  }
  return { code, message: /-----BEGIN|PRIVATE KEY/.test(message) ? quotesPem : message }
}

/** In place of a refusal that quotes what was refused where that is PEM: refusals are logged and shown on pages, and a secret has a private key in it. */
const quotesPem = 'the reason is left out: it quotes a certificate or a key'
