/**
 * Decodes the JSON of patches. The set of types is open: a message that no schema here describes is passed to Envoy as written, in a
 * `TypedStruct`, and is reported as unchecked.
 */
import { create, type DescMessage, fromBinary, fromJson, type JsonObject, type JsonValue, type MessageShape } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt'
import { isMapping } from '../../config/shape.ts'
import { contain } from '../../model/faults.ts'
import { packMessage } from '../message.ts'
import { checkMessage } from '../resource-check.ts'
import { messageTypes } from './message-types.ts'

/** A decoded patch value. */
export interface ReadValue<Message> {
  readonly message: Message
  /** What only Envoy can validate: names of unknown packed types, and `<type>: <reason>` for known types with unknown fields. */
  readonly unchecked: readonly string[]
  /** The reason why unknown fields were left out; undefined if there were none. */
  readonly leftOut: string | undefined
}

const prefix = 'type.googleapis.com/'
const typedStructs: ReadonlySet<string> = new Set(['udpa.type.v1.TypedStruct', 'xds.type.v3.TypedStruct'])

/** Whether a type has its content as a struct, with the name of the type that it stands for. */
export const isTypedStruct = (name: string): boolean => typedStructs.has(name)

/** Whether a type is of the v2 API, which current releases of Envoy do not have. */
export const isSecondVersion = (name: string): boolean => /^envoy\.(api\.v2|config\.(filter|transport_socket|accesslog|trace)\..*v2)/.test(name)

/** Returns the type name in a type URL, whatever precedes the last slash. */
export const typeName = (url: string): string => url.slice(url.lastIndexOf('/') + 1)

/**
 * Decodes a patch value. Throws an Error that names the invalid field. Nested messages are validated too, unless the value is only a `part`
 * to be merged.
 */
export function readValue<Schema extends DescMessage>(schema: Schema, value: unknown, part: boolean): ReadValue<MessageShape<Schema>> {
  const unchecked = new Set<string>()
  const json = prepared(value as JsonValue, unchecked)
  const read = (ignoreUnknownFields: boolean) => fromJson(schema, json, { registry: messageTypes, ignoreUnknownFields })
  let leftOut: string | undefined
  const message = contain(
    () => read(false),
    (reason) => {
      leftOut = reason
      return read(true)
    },
  )
  if (!part) checkPacked(schema, message)
  return { message, unchecked: [...unchecked], leftOut }
}

/**
 * Rewrites JSON so that every packed message can be decoded: known types stay as they are, others become a `TypedStruct`. Adds to
 * `unchecked`.
 */
function prepared(json: JsonValue, unchecked: Set<string>): JsonValue {
  if (Array.isArray(json)) return json.map((entry) => prepared(entry, unchecked))
  if (!isMapping(json)) return json
  const parts = () => Object.fromEntries(Object.entries(json).map(([key, entry]) => [key, prepared(entry as JsonValue, unchecked)]))
  const url = json['@type']
  if (typeof url !== 'string') return parts()
  const name = typeName(url)
  if (name === '') throw new Error(`@type ${JSON.stringify(url)} names no type`)
  if (isSecondVersion(name)) throw new Error(`${name} is a type of the second version of Envoy's API, which no release has any more`)
  if (isTypedStruct(name)) return preparedStruct(json as JsonObject, name, unchecked)
  const { '@type': _, ...fields } = json as JsonObject
  if (!messageTypes.getMessage(name)) {
    unchecked.add(name)
    return typedStruct(name, fields)
  }
  const nested = new Set<string>()
  const known = { ...Object.fromEntries(Object.entries(fields).map(([key, entry]) => [key, prepared(entry, nested)])), '@type': prefix + name }
  const unknownField = contain<string | undefined>(
    () => {
      fromJson(AnySchema, known, { registry: messageTypes })
      return undefined
    },
    (reason) => reason,
  )
  if (unknownField === undefined) {
    for (const type of nested) unchecked.add(type)
    return known
  }
  // A newer release may have the field. Any other error is thrown.
  fromJson(AnySchema, known, { registry: messageTypes, ignoreUnknownFields: true })
  unchecked.add(`${name}: ${unknownField}`)
  return typedStruct(name, fields)
}

/** Handles a `TypedStruct` that the user wrote. Its content is checked if its type is known. */
function preparedStruct(json: JsonObject, name: string, unchecked: Set<string>): JsonObject {
  const url = json.type_url ?? json.typeUrl
  const inner = typeof url === 'string' ? typeName(url) : ''
  if (inner === '') throw new Error(`a ${name} without type_url`)
  if (isSecondVersion(inner)) throw new Error(`${inner} is a type of the second version of Envoy's API, which no release has any more`)
  const { value = {} } = json
  const schema = messageTypes.getMessage(inner)
  if (!schema) unchecked.add(inner)
  else {
    const fields = prepared(value, unchecked)
    const unknownField = contain<string | undefined>(
      () => void fromJson(schema, fields, { registry: messageTypes }),
      (reason) => reason,
    )
    // Envoy decodes the struct in the same way and would refuse it for the same errors.
    if (unknownField !== undefined) {
      fromJson(schema, fields, { registry: messageTypes, ignoreUnknownFields: true })
      unchecked.add(`${inner}: ${unknownField}`)
    }
  }
  return { '@type': prefix + name, typeUrl: prefix + inner, value }
}

const typedStruct = (name: string, value: JsonObject): JsonObject => ({ '@type': `${prefix}xds.type.v3.TypedStruct`, typeUrl: prefix + name, value })

/** Decodes an `Any`; a `TypedStruct` of a known type is decoded as that type. Returns undefined if no schema here describes the message. */
export function unpacked(any: Any): { schema: DescMessage; message: MessageShape<DescMessage> } | undefined {
  const schema = messageTypes.getMessage(typeName(any.typeUrl))
  if (!schema) return undefined
  const message = fromBinary(schema, any.value)
  if (!isTypedStruct(schema.typeName)) return { schema, message }
  const { typeUrl, value = {} } = message as MessageShape<DescMessage> & { typeUrl: string; value?: JsonObject }
  const inner = messageTypes.getMessage(typeName(typeUrl))
  return (
    inner &&
    contain(
      () => ({ schema: inner, message: fromJson(inner, prepared(value, new Set()), { registry: messageTypes }) }),
      () => undefined,
    )
  )
}

/** Packs a message that {@link unpacked} returned. */
export const packed = (schema: DescMessage, message: MessageShape<DescMessage>): Any => packMessage(schema, message)

/** Checks every message that is packed within a message. Throws InvalidResource at the first one that violates Envoy's validation rules. */
export function checkPacked<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): void {
  checkNested(reflect(schema as DescMessage, message, false))
}

function checkNested(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue
    const inner =
      field.fieldKind === 'message'
        ? [message.get(field)]
        : field.fieldKind === 'list' && field.listKind === 'message'
          ? [...message.get(field)]
          : field.fieldKind === 'map' && field.mapKind === 'message'
            ? [...message.get(field).values()]
            : []
    for (const value of inner as ReflectMessage[]) {
      if (value.desc.typeName === AnySchema.typeName) checkAny(value.message as unknown as Any)
      else checkNested(value)
    }
  }
}

function checkAny(any: Any): void {
  const found = unpacked(any)
  if (!found) return
  checkMessage(found.schema, found.message)
  checkNested(reflect(found.schema, found.message, false))
}

/** Returns the message of the given type that is packed in an `Any`; undefined if the `Any` has another type. */
export function readPacked<Schema extends DescMessage>(schema: Schema, any: Any): MessageShape<Schema> | undefined {
  return typeName(any.typeUrl) === schema.typeName ? fromBinary(schema, any.value) : undefined
}

/** Edits a message packed in an `Any`. An `Any` of another type is left unchanged. */
export function editPacked<Schema extends DescMessage>(schema: Schema, any: Any, edit: (message: MessageShape<Schema>) => void): void {
  const message = readPacked(schema, any)
  if (!message) return
  edit(message)
  any.value = packMessage(schema, message).value
}

/** Returns an empty message. */
export function empty<Schema extends DescMessage>(schema: Schema): MessageShape<Schema> {
  return create(schema)
}
