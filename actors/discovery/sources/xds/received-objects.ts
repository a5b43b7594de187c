/** The objects that another control plane serves: decoded, checked one by one, and kept while it is away. */
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { configKey, kinds } from '../../../../src/config/kinds.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigDocument } from '../../../../src/config/parse.ts'
import { count } from '../../../../src/model/counts.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import { configTypeOf, readConfigResource } from '../../../../src/xds/config-objects/config-resource.ts'
import { scanFields, WireError } from '../../../../src/xds/slab/wire.ts'
import { monotonicMs } from '../../../runtime/clock.ts'

/** Maximum number of objects, and of objects that a refusal names. */
const most = { objects: 100_000, named: 10 }
/** Maximum number of characters of a name and of a version. */
const longest = { name: 600, version: 256 }

/** Dependencies and settings of {@link ReceivedObjects}. */
export interface ReceivedParts {
  /** The source as objects name it. */
  readonly source: string
  readonly names: MeshNames
  readonly optOuts: OptOuts
  readonly revision: string
  readonly emit: (event: SourceEvent) => void
  /** Logs what is wrong with an object, or odd about it. */
  readonly warn: (line: string) => void
}

/** An object that was received. */
interface Received {
  readonly key: string
  readonly version: string
  /** The last state that could be used. */
  readonly object: ConfigObject | undefined
  /** In place of a policy that never could be used. */
  readonly standIn: ConfigObject | undefined
  /** Why the present state cannot be used. */
  readonly fault: string | undefined
}

/** A response, decoded as far as its objects. */
interface Response {
  readonly typeUrl: string
  readonly nonce: string
  /** Whether no further response follows at once: of the type everything is known. */
  readonly isWhole: boolean
  readonly resources: readonly { readonly name: string; readonly version: string; readonly any: Buffer }[]
  readonly removed: readonly string[]
}

/** The answer to a response; `refused` says which objects cannot be used. */
export interface ResponseAnswer {
  readonly typeUrl: string
  readonly nonce: string
  readonly refused: string | undefined
}

/** The objects of one control plane. */
export class ReceivedObjects {
  readonly #parts: ReceivedParts
  /** By type URL, then by `<namespace>/<name>`. */
  readonly #types: ReadonlyMap<string, Map<string, Received>>
  /** The types of which everything is known, since the start and on the present stream. */
  readonly #known = new Set<string>()
  readonly #current = new Set<string>()

  constructor(parts: ReceivedParts) {
    this.#parts = parts
    this.#types = new Map([...kinds.values()].map((kind) => [configTypeOf(kind, parts.names.domain), new Map()]))
  }

  /** The types to subscribe to. */
  get typeUrls(): readonly string[] {
    return [...this.#types.keys()]
  }

  get size(): number {
    let size = 0
    for (const objects of this.#types.values()) size += objects.size
    return size
  }

  /** Whether everything that the other one has was received once, and whether it was on the present stream. */
  get isKnown(): boolean {
    return this.#known.size === this.#types.size
  }

  get isCurrent(): boolean {
    return this.#current.size === this.#types.size
  }

  /** The versions of what was received of a type. */
  versions(typeUrl: string): [name: string, version: string][] {
    return Array.from(this.#types.get(typeUrl) ?? [], ([name, { version }]) => [name, version])
  }

  /** A stream has ended: nothing is current until the next one has delivered it. */
  disconnected(): void {
    this.#current.clear()
  }

  /** Takes an encoded response. Throws {@link WireError} when it cannot be decoded, or exceeds the bounds. */
  take(message: Buffer): ResponseAnswer {
    const { typeUrl, nonce, isWhole, resources, removed } = readResponse(message)
    const objects = this.#types.get(typeUrl)
    if (!objects) throw new WireError(`it sent ${JSON.stringify(typeUrl.slice(0, 200))}, which nobody asked for`)
    const fresh = new Set(resources.flatMap(({ name }) => (objects.has(name) ? [] : [name])))
    if (this.size + fresh.size - removed.length > most.objects) throw new WireError(`it has more than ${count(most.objects, 'object')}`)
    for (const name of removed) this.#remove(objects, name)
    const refused = resources.flatMap((resource) => {
      const received = this.#received(typeUrl, resource, objects.get(resource.name))
      if (received) objects.set(resource.name, received)
      else this.#remove(objects, resource.name)
      if (received) this.#emit(received)
      return received?.fault === undefined ? [] : [`${resource.name}: ${received.fault}`]
    })
    if (isWhole) for (const set of [this.#known, this.#current]) set.add(typeUrl)
    const more = refused.length > most.named ? `; and ${refused.length - most.named} more` : ''
    return { typeUrl, nonce, refused: refused.length === 0 ? undefined : refused.slice(0, most.named).join('; ').slice(0, 3000) + more }
  }

  /** Everything that is known, for a replay. */
  *events(): Generator<SourceEvent> {
    for (const objects of this.#types.values()) for (const received of objects.values()) yield eventOf(received)
  }

  /** What is wrong with objects at present. */
  problems(): string[] {
    const all = [...this.#types.values()].flatMap((objects) => [...objects.values()])
    return all.flatMap(({ key, fault }) => (fault === undefined ? [] : [`${key} of ${this.#parts.source}: ${fault}`]))
  }

  /** The policies that are replaced by stand-ins. */
  standIns() {
    const all = [...this.#types.values()].flatMap((objects) => [...objects.values()])
    return all.flatMap(({ key, standIn, fault = '' }) => (standIn ? [{ key, source: this.#parts.source, place: standIn.place, reason: fault }] : []))
  }

  #emit(received: Received): void {
    this.#parts.emit(received.fault === undefined ? eventOf(received) : unusable(received))
  }

  #remove(objects: Map<string, Received>, name: string): void {
    const known = objects.get(name)
    objects.delete(name)
    if (known) this.#parts.emit({ type: 'ConfigChanged', key: known.key, object: undefined, at: monotonicMs() })
  }

  /** Checks one object. Undefined if it is not for this control plane (its revision is another). */
  #received(typeUrl: string, { name, version, any }: Response['resources'][number], before: Received | undefined): Received | undefined {
    const [namespace = '', ...rest] = name.split('/')
    const [kind = '', ofKind, group = ''] = typeUrl.split('/').reverse()
    const key = configKey({ group, kind, namespace, name: rest.join('/') })
    try {
      const { document } = readConfigResource(any, typeUrl)
      const { namespace: given = '', name: own } = document.metadata as { readonly namespace?: string; readonly name: string }
      if (`${given}/${own}` !== name) throw new WireError(`its metadata names ${JSON.stringify(`${given}/${own}`.slice(0, 200))}`)
      return this.#checked(key, version, this.#parse(document), before)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      // Of a policy the strictest that it may have meant: with a field that no policy has it cannot be read.
      const parsed = this.#parse({
        apiVersion: `${group}/${ofKind}`,
        kind,
        metadata: { namespace, name: rest.join('/') },
        spec: { unreadable: true },
      })
      const fault = `cannot be decoded: ${error.message}`
      return this.#unusable(key, version, [...parsed.standIns.values()][0], before, fault)
    }
  }

  #parse(document: Readonly<Record<string, unknown>>): ParsedFile {
    const { source, names, optOuts, revision } = this.#parts
    return parseConfigDocument(source, document, names, { optOuts, revision, source })
  }

  #checked(
    key: string,
    version: string,
    { objects, standIns, faults, warnings, foreign }: ParsedFile,
    before: Received | undefined,
  ): Received | undefined {
    const { source, warn } = this.#parts
    for (const { path, reason } of warnings) warn(`${key} of ${source}: ${path}: ${reason}`)
    const [object] = objects
    if (object && faults.length === 0) return { key, version, object: this.#placed(object, version), standIn: undefined, fault: undefined }
    if (foreign.size > 0) return undefined
    const fault = faults.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
    // A policy that is used as written although it has a fault is among the objects.
    return this.#unusable(key, version, object ?? [...standIns.values()][0], before, fault)
  }

  /** Keeps the last good state of an object that cannot be used, or else puts a stand-in in its place, and says which. */
  #unusable(key: string, version: string, strict: ConfigObject | undefined, before: Received | undefined, fault: string): Received {
    const object = before?.object
    const standIn = object ? undefined : this.#placed(strict, version)
    const strictest = 'until it is valid, the workloads that it selects are guarded by the strictest policy that it could mean'
    const consequence = object ? 'its last good state stays' : standIn ? strictest : 'it is left out until it is valid'
    this.#parts.warn(`${key} of ${this.#parts.source} cannot be used: ${fault}; ${consequence}`)
    return { key, version, object, standIn, fault }
  }

  #placed<T extends ConfigObject | undefined>(object: T, version: string): T {
    return object && { ...object, resourceVersion: version, place: `${this.#parts.source}, version ${version.slice(0, 12)}` }
  }
}

const unusable = ({ key, standIn }: Received): SourceEvent => ({ type: 'ConfigUnusable', key, standIn, at: monotonicMs() })

const eventOf = (received: Received): SourceEvent => {
  const { key, object } = received
  return object ? { type: 'ConfigChanged', key, object, at: monotonicMs() } : unusable(received)
}

/** Decodes `envoy.service.discovery.v3.DeltaDiscoveryResponse`. */
function readResponse(message: Buffer): Response {
  let [typeUrl, nonce, isWhole] = ['', '', false]
  const resources: Response['resources'][number][] = []
  const removed: string[] = []
  for (const { field, bytes } of scanFields(message)) {
    if (!bytes) continue
    if (field === 1) isWhole = bytes.length > 0
    if (field === 2) resources.push(readResource(bytes))
    if (field === 4) typeUrl = bytes.toString()
    if (field === 5) nonce = bytes.toString()
    if (field === 6) removed.push(bounded(bytes, longest.name, 'a name'))
  }
  return { typeUrl, nonce, isWhole, resources, removed }
}

function readResource(message: Buffer): Response['resources'][number] {
  let [name, version] = ['', '']
  let any = Buffer.alloc(0)
  for (const { field, bytes } of scanFields(message)) {
    if (!bytes) continue
    if (field === 1) version = bounded(bytes, longest.version, 'a version')
    if (field === 2) any = Buffer.from(bytes)
    if (field === 3) name = bounded(bytes, longest.name, 'a name')
  }
  return { name, version, any }
}

function bounded(bytes: Buffer, most: number, what: string): string {
  if (bytes.length > most) throw new WireError(`it sent ${what} of more than ${most} bytes`)
  return bytes.toString().toWellFormed()
}
