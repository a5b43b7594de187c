/**
 * Configuration objects as one control plane serves them to another (docs/xds-protocol.md, "Configuration objects";
 * protocols/proto/mesh/mcp/v1alpha1/resource.proto): which types there are, and how an object is written and read.
 */
import { hash } from 'node:crypto'
import type { ConfigObject } from '../../../protocols/data.ts'
import { writtenSpec } from '../../config/document.ts'
import type { Kind } from '../../config/kinds/kind.ts'
import { type KindName, kinds } from '../../config/kinds.ts'
import { type MeshNames, typeUrlsOf } from '../../names/mesh-names.ts'
import { bytesField, encodeStruct, readStruct, readText } from '../slab/struct.ts'
import { elementHead, scanFields, textField, varintField, WireError } from '../slab/wire.ts'

/** The value of `GENERATOR` in the metadata of a client of configuration objects. */
export const configGenerator = 'api'

/** The type URLs of the message in which an object is sent, in both forms. */
export const resourceTypes = typeUrlsOf('mesh.mcp.v1alpha1.Resource')

const structType = 'type.googleapis.com/google.protobuf.Struct'

/** The prefix of the names of sources that are other control planes. What they have is not served on, so that nothing goes in circles. */
const otherControlPlanes = 'xds://'

/** Returns the kind of a type URL `<group>/<version>/<Kind>`, also with the alias of the group; undefined for all other types. */
export function servedKindOf(typeUrl: string, names: MeshNames): Kind<KindName> | undefined {
  const [group = '', version = '', name = '', ...rest] = typeUrl.split('/')
  const kind = kinds.get(name)
  if (!kind || rest.length > 0 || !kind.versions.includes(version)) return undefined
  return names.canonicalGroup(group) === `${kind.group}.${names.domain}` ? kind : undefined
}

/** The type URL of a kind, with its newest version. */
export const configTypeOf = (kind: Kind, domain: string): string => `${kind.group}.${domain}/${kind.versions.at(-1)}/${kind.name}`

/** The kind under which an object is served; undefined if it is not: it comes from another control plane, or is of another kind. */
export function kindToServe({ kind, group, source }: ConfigObject, domain: string): Kind<KindName> | undefined {
  const found = kinds.get(kind)
  return found && group === `${found.group}.${domain}` && !source.startsWith(otherControlPlanes) ? found : undefined
}

/** An object as it is sent. */
export interface ServedResource {
  /** `<namespace>/<name>`. */
  readonly name: string
  readonly version: string
  /** The encoded `Resource`. */
  readonly value: Buffer
}

/** Encodes an object. Its version is a digest of all that is sent of it. */
export function writeConfigResource(object: ConfigObject, kind: Kind): ServedResource {
  const { namespace, labels, annotations, createdAt, spec } = object
  const name = `${namespace}/${object.name}`
  const struct = encodeStruct(writtenSpec(kind.spec.form, spec) as Record<string, unknown>)
  const time = Buffer.concat([varintField(1, Math.floor(createdAt / 1000)), varintField(2, (createdAt % 1000) * 1_000_000)])
  const head = Buffer.concat([textField(1, name), ...(time.length > 0 ? [bytesField(2, time)] : [])])
  const tail = Buffer.concat([...texts(4, labels), ...texts(5, annotations)])
  const body = bytesField(2, Buffer.concat([textField(1, structType), bytesField(2, struct)]))
  const version = hash('sha256', Buffer.concat([head, tail, body]), 'base64url').slice(0, 22)
  return { name, version, value: Buffer.concat([bytesField(1, Buffer.concat([head, textField(3, version), tail])), body]) }
}

const texts = (field: number, map: Readonly<Record<string, string>>): Buffer[] =>
  Object.entries(map).map(([key, value]) => bytesField(field, Buffer.concat([textField(1, key), textField(2, value)])))

/** Returns an object as an element of a response. `typeUrl`: that of the message. */
export const elementOf = ({ value }: ServedResource, typeUrl: string): readonly Buffer[] => [elementHead(typeUrl, value.length), value]

/** An object as it was received: a document, and the version that its sender gave it. */
export interface ReceivedResource {
  readonly document: Readonly<Record<string, unknown>>
  readonly version: string
}

/** Decodes an `Any` with an object of a type `<group>/<version>/<Kind>`. Throws {@link WireError} with the reason. */
export function readConfigResource(any: Buffer, typeUrl: string): ReceivedResource {
  const value = valueOfAny(any, [resourceTypes.mesh, resourceTypes.alias])
  let metadata: Buffer | undefined
  let body: Buffer | undefined
  for (const { field, bytes } of scanFields(value)) {
    if (field === 1) metadata = bytes
    if (field === 2) body = bytes
  }
  if (!metadata || !body) throw new WireError('it has no metadata or no body')
  const read = readMetadata(metadata)
  const slash = read.name.indexOf('/')
  if (slash < 0) throw new WireError(`its name ${JSON.stringify(read.name.slice(0, 100))} is not <namespace>/<name>`)
  const [kind, ...version] = typeUrl.split('/').reverse()
  const { labels, annotations, createdAt } = read
  const document = {
    apiVersion: version.reverse().join('/'),
    kind,
    metadata: {
      ...(slash > 0 ? { namespace: read.name.slice(0, slash) } : {}),
      ...{ name: read.name.slice(slash + 1), labels, annotations },
      ...(createdAt === 0 ? {} : { creationTimestamp: new Date(createdAt).toISOString() }),
    },
    spec: readStruct(valueOfAny(body, [structType]), 'the body'),
  }
  return { document, version: read.version }
}

function readMetadata(bytes: Buffer) {
  const read = { name: '', version: '', createdAt: 0, labels: {} as Record<string, string>, annotations: {} as Record<string, string> }
  const entries = { labels: [] as [string, string][], annotations: [] as [string, string][] }
  for (const { field, bytes: content } of scanFields(bytes)) {
    if (!content) continue
    if (field === 1) read.name = readText(content, 'the name')
    if (field === 2) read.createdAt = readTime(content)
    if (field === 3) read.version = readText(content, 'the version')
    if (field === 4) entries.labels.push(readEntry(content))
    if (field === 5) entries.annotations.push(readEntry(content))
  }
  return { ...read, labels: Object.fromEntries(entries.labels), annotations: Object.fromEntries(entries.annotations) }
}

function readEntry(bytes: Buffer): [string, string] {
  const parts: [string, string] = ['', '']
  for (const { field, bytes: part } of scanFields(bytes)) if ((field === 1 || field === 2) && part) parts[field - 1] = readText(part, 'the metadata')
  return parts
}

/** The latest time that a date can have, in seconds. */
const latest = 8_640_000_000_000

/** Reads `google.protobuf.Timestamp` as Unix milliseconds; 0 for a time that cannot be one of creation. */
function readTime(bytes: Buffer): number {
  const parts = [0, 0]
  for (const { field, bytes: content, value } of scanFields(bytes)) if ((field === 1 || field === 2) && !content) parts[field - 1] = value
  const [seconds = 0, nanos = 0] = parts
  return seconds > latest / 1000 ? 0 : seconds * 1000 + Math.floor(nanos / 1_000_000)
}

/** Returns the value of an `Any` of one of these types. */
function valueOfAny(any: Buffer, types: readonly string[]): Buffer {
  let type = ''
  let value = Buffer.alloc(0)
  for (const { field, bytes } of scanFields(any)) {
    if (field === 1 && bytes) type = readText(bytes, 'the type')
    if (field === 2 && bytes) value = Buffer.from(bytes)
  }
  if (!types.includes(type)) throw new WireError(`it has the type ${JSON.stringify(type.slice(0, 100))} where ${types[0]} is expected`)
  return value
}
