/**
 * Finds what is wrong with the value of a patch before it meets a proxy (docs/resources.md, F6): each mistake with its field. The values are decoded as
 * the push path decodes them.
 */
import { type DescField, type DescMessage, fromJson, type JsonValue } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import { FilterChainSchema, FilterSchema, ListenerFilterSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteSchema, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { HttpFilterSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import type { PatchCheck, PatchFault } from '../../config/patch-faults.ts'
import { describe, isMapping } from '../../config/shape.ts'
import { distance, suggestion } from '../../model/edit-distance.ts'
import { contain } from '../../model/faults.ts'
import { messageTypes } from './message-types.ts'
import { isSecondVersion, isTypedStruct, typeName } from './packed.ts'
import { decodePatch } from './patches.ts'

/** The type of the value of a patch; undefined: the patch has no effect. */
const schemas: Readonly<Record<ConfigPatch['applyTo'], DescMessage | undefined>> = {
  LISTENER: ListenerSchema,
  FILTER_CHAIN: FilterChainSchema,
  NETWORK_FILTER: FilterSchema,
  HTTP_FILTER: HttpFilterSchema,
  ROUTE_CONFIGURATION: RouteConfigurationSchema,
  VIRTUAL_HOST: VirtualHostSchema,
  HTTP_ROUTE: RouteSchema,
  CLUSTER: ClusterSchema,
  EXTENSION_CONFIG: TypedExtensionConfigSchema,
  BOOTSTRAP: undefined,
  LISTENER_FILTER: ListenerFilterSchema,
}

/** The most mistakes of a patch that are told. */
const mostFaults = 20

/** Types that only some builds of Envoy have, and those whose schemas are not known here. */
const ofOtherBuilds = /v3alpha|open_?telemetry|opencensus|prometheus/i

/** Returns what is wrong with the value of a patch, with paths below the value. */
export const patchFaults: PatchCheck = (patch) => {
  const schema = schemas[patch.applyTo]
  const { operation, value } = patch.patch
  if (!schema || operation === 'REMOVE') return []
  const walk = new Walk()
  walk.message(schema, value as JsonValue, '', undefined)
  if (!walk.faults.some(({ level }) => level === 'error')) {
    const isPart = operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST'
    const reason = contain<string | undefined>(
      () => void decodePatch(schema, value, isPart),
      (fault) => fault,
    )
    if (reason !== undefined) walk.faults.push({ level: 'error', path: '', reason })
  }
  return walk.faults
}

/** Looks at all fields of a value. */
class Walk {
  readonly faults: PatchFault[] = []

  #tell(level: PatchFault['level'], path: string, reason: string): void {
    if (this.faults.length < mostFaults) this.faults.push({ level, path, reason })
  }

  /** Looks at a message. `packed`: the name of its type if it is packed in an `Any`, whose unknown fields proxies are sent (F6). */
  message(schema: DescMessage, json: JsonValue, path: string, packed: string | undefined): void {
    if (schema.typeName === 'google.protobuf.Any') return this.#any(json, path)
    if (isWellKnown(schema)) return this.#wellKnown(schema, json, path)
    if (!isMapping(json)) return this.#tell('error', path, `expected a mapping (${schema.typeName}), got ${describe(json)}`)
    const fields = fieldsOf(schema)
    const chosen = new Map<unknown, string>()
    for (const [key, value] of Object.entries(json)) {
      const at = below(path, key)
      const field = fields.get(key)
      if (!field) {
        const consequence = packed === undefined ? 'left out' : 'so that proxies refuse it, unless their Envoy knows it'
        this.#tell('unknown field', at, `${schema.typeName} has no such field, ${consequence}${near(key, fields.keys())}`)
        continue
      }
      if (value === null && field.message?.typeName !== 'google.protobuf.Value') continue
      const first = field.oneof && chosen.get(field.oneof)
      if (first !== undefined) this.#tell('error', at, `excluded by ${first}`)
      if (field.oneof) chosen.set(field.oneof, key)
      this.#field(field, value as JsonValue, at, packed)
    }
  }

  #field(field: DescField, value: JsonValue, path: string, packed: string | undefined): void {
    if (field.fieldKind === 'message') return this.message(field.message, value, path, packed)
    if (field.fieldKind === 'list') {
      if (!Array.isArray(value)) return this.#tell('error', path, `expected a list, got ${describe(value)}`)
      for (const [index, item] of value.entries())
        if (field.listKind === 'message') this.message(field.message, item, `${path}[${index}]`, packed)
        else this.#leaf(field, [item], item, `${path}[${index}]`)
      return
    }
    if (field.fieldKind === 'map') {
      if (!isMapping(value)) return this.#tell('error', path, `expected a mapping, got ${describe(value)}`)
      for (const [key, item] of Object.entries(value as Record<string, JsonValue>))
        if (field.mapKind === 'message') this.message(field.message, item, `${path}[${key.slice(0, 100)}]`, packed)
        else this.#leaf(field, { [key]: item }, item, `${path}[${key.slice(0, 100)}]`)
      return
    }
    this.#leaf(field, value, value, path)
  }

  /** Looks at a scalar or name: `value` is what the field has, `item` the one of it that messages are about. */
  #leaf(field: DescField, value: JsonValue, item: JsonValue, path: string): void {
    const isRead = contain(
      () => fromJson(field.parent, { [field.jsonName]: value }, { registry: messageTypes }) !== undefined,
      () => false,
    )
    if (isRead) return
    const names = field.enum?.values.map(({ name }) => name)
    if (!names) return this.#tell('error', path, `expected ${expected(field)}, got ${describe(item)}`)
    const listed = names.slice(0, 20).join(', ') + (names.length > 20 ? ' and others' : '')
    this.#tell('error', path, `${describe(item)} is not one of ${listed}${typeof item === 'string' ? near(item, names) : ''}`)
  }

  /** Looks at a value that JSON writes in a form of its own, such as a duration. */
  #wellKnown(schema: DescMessage, json: JsonValue, path: string): void {
    const [form = schema.typeName] = forms.filter(([name]) => schema.typeName === `google.protobuf.${name}`).map(([, text]) => text)
    const isRead = contain(
      () => fromJson(schema, json) !== undefined,
      () => false,
    )
    if (!isRead) this.#tell('error', path, `expected ${form}, got ${describe(json)}`)
  }

  #any(json: JsonValue, path: string): void {
    if (!isMapping(json)) return this.#tell('error', path, `expected a mapping with @type, got ${describe(json)}`)
    const { '@type': url, ...fields } = json as Record<string, JsonValue>
    const at = below(path, '@type')
    if (typeof url !== 'string' || typeName(url) === '') return this.#tell('error', at, url === undefined ? 'required, but missing' : 'names no type')
    if (!isTypedStruct(typeName(url))) return this.#packed(typeName(url), fields, path, at)
    const field = 'type_url' in fields ? 'type_url' : 'typeUrl'
    const inner = fields[field]
    if (typeof inner !== 'string') return this.#tell('error', below(path, field), 'required, but missing')
    this.#packed(typeName(inner), fields.value ?? {}, below(path, 'value'), below(path, field))
  }

  /** Looks at a packed message of a type that is named at `at`. */
  #packed(name: string, json: JsonValue, path: string, at: string): void {
    if (isSecondVersion(name))
      return this.#tell('error', at, `${name} is a type of the second version of Envoy's API, which no release has any more: use that of v3`)
    const schema = messageTypes.getMessage(name)
    if (schema && isWellKnown(schema)) return this.message(schema, (isMapping(json) ? json.value : json) as JsonValue, below(path, 'value'), name)
    if (schema) return this.message(schema, json, path, name)
    if (!name.startsWith('envoy.') || ofOtherBuilds.test(name)) return
    const meant = name.length <= 128 && [...messageTypes].find((type) => distance(name, type.typeName, 3) < 3)
    const advice = meant ? `; did you mean ${JSON.stringify(meant.typeName)}?` : ': correct its name'
    this.#tell('unknown type', at, `Envoy has no type ${name}, so proxies refuse the patch, unless they are built with it${advice}`)
  }
}

const below = (path: string, field: string): string => (path === '' ? field.slice(0, 100) : `${path}.${field.slice(0, 100)}`)

/** Whether JSON writes a message in a form of its own, which is the field `value` where it is packed. */
const isWellKnown = ({ typeName: name }: DescMessage): boolean => name.startsWith('google.protobuf.') && name !== 'google.protobuf.Empty'

/** The clause that suggests a name; none for long names, whose comparison costs much. */
const near = (written: string, names: Iterable<string>): string => (written.length <= 128 ? suggestion(written, names) : '')

/** The fields of a type by their names in both spellings. */
const fieldsOf = (schema: DescMessage): ReadonlyMap<string, DescField> =>
  new Map(schema.fields.flatMap((field) => [[field.name, field] as const, [field.jsonName, field] as const]))

/** What JSON has in the place of some messages. */
const forms: readonly (readonly [name: string, form: string])[] = [
  ['Duration', 'a duration such as 5s'],
  ['Timestamp', 'a time such as 2024-01-01T00:00:00Z'],
  ['BoolValue', 'true or false'],
  ['StringValue', 'text'],
  ['BytesValue', 'text in base64'],
  ...['Int32Value', 'UInt32Value', 'Int64Value', 'UInt64Value'].map((name) => [name, 'a whole number'] as const),
  ['DoubleValue', 'a number'],
  ['FloatValue', 'a number'],
  ['Struct', 'a mapping'],
  ['ListValue', 'a list'],
]

/** What a scalar field takes. */
function expected(field: DescField): string {
  const scalar = 'scalar' in field ? field.scalar : undefined
  const [bool, text, bytes, double, float] = [8, 9, 12, 1, 2]
  switch (scalar) {
    case bool:
      return 'true or false'
    case text:
      return 'text'
    case bytes:
      return 'text in base64'
    case double:
    case float:
      return 'a number'
    default:
      return 'a whole number in its range'
  }
}
