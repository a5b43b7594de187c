/** Deep merging of messages, through `Any` as well, and the reading of patch values. */
import { create, createRegistry, type DescMessage, fromBinary, fromJson, type JsonValue, type Message, type MessageShape } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import type { Any } from '@bufbuild/protobuf/wkt'
import { packMessage } from '../message.ts'
import { checkMessage } from '../resource-check.ts'
import { messageSchemas } from './message-types.ts'

/** Types that an `Any` in a patch may hold. */
export const patchTypes = createRegistry(...messageSchemas)

/** Reads a patch value. Throws an Error that says which field is wrong, or which type is not known. Unless it is only a part to be merged, nested messages are checked too. */
export function readValue<Schema extends DescMessage>(schema: Schema, value: unknown, part: boolean): MessageShape<Schema> {
  const message = fromJson(schema, value as JsonValue, { registry: patchTypes })
  if (!part) checkPacked(schema, message)
  return message
}

/** Merges `from` into `into`: scalars and durations replace, messages merge, lists grow, `Any` of the same type merges within. */
export function mergeInto<Schema extends DescMessage>(schema: Schema, into: MessageShape<Schema>, from: MessageShape<Schema>): void {
  mergeReflected(reflect(schema as DescMessage, into as Message, false), reflect(schema as DescMessage, from as Message, false))
}

const anyType = 'google.protobuf.Any'
/** Messages that stand for one value. */
const isValue = (desc: DescMessage): boolean => desc.typeName.startsWith('google.protobuf.') && desc.typeName !== anyType

function mergeReflected(into: ReflectMessage, from: ReflectMessage): void {
  for (const field of from.fields) {
    if (!from.isSet(field)) continue
    if (field.fieldKind === 'list') {
      const list = into.get(field)
      for (const item of from.get(field)) list.add(item as never)
    } else if (field.fieldKind === 'map') {
      const map = into.get(field)
      for (const [key, value] of from.get(field)) {
        const there = map.get(key)
        if (field.mapKind === 'message' && there && !isValue(field.message)) mergeMessage(there as ReflectMessage, value as ReflectMessage)
        else map.set(key, value)
      }
    } else if (field.fieldKind === 'message' && into.isSet(field) && !isValue(field.message)) {
      const target = into.get(field)
      mergeMessage(target, from.get(field))
      into.set(field, target)
    } else into.set(field, from.get(field))
  }
}

function mergeMessage(into: ReflectMessage, from: ReflectMessage): void {
  if (into.desc.typeName !== anyType) return mergeReflected(into, from)
  const target = into.message as unknown as Any
  const source = from.message as unknown as Any
  const schema = patchTypes.getMessage(source.typeUrl.slice(source.typeUrl.lastIndexOf('/') + 1))
  if (target.typeUrl !== source.typeUrl || !schema) {
    target.typeUrl = source.typeUrl
    target.value = source.value
    return
  }
  const merged = fromBinary(schema, target.value)
  mergeInto(schema, merged, fromBinary(schema, source.value))
  target.value = packMessage(schema, merged).value
}

/** Checks every message that is packed within a message. Throws InvalidResource when Envoy would refuse one. */
export function checkPacked<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): void {
  checkNested(reflect(schema as DescMessage, message as Message, false))
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
      if (value.desc.typeName === anyType) checkAny(value.message as unknown as Any)
      else checkNested(value)
    }
  }
}

function checkAny(any: Any): void {
  const schema = patchTypes.getMessage(any.typeUrl.slice(any.typeUrl.lastIndexOf('/') + 1))
  if (!schema) return
  const message = fromBinary(schema, any.value)
  checkMessage(schema, message)
  checkNested(reflect(schema, message, false))
}

/** Changes a message that is packed in an `Any` of the given type; other types are left as they are. */
export function editPacked<Schema extends DescMessage>(schema: Schema, any: Any, edit: (message: MessageShape<Schema>) => void): void {
  if (!any.typeUrl.endsWith(`/${schema.typeName}`)) return
  const message = fromBinary(schema, any.value)
  edit(message)
  any.value = packMessage(schema, message).value
}

/** A message of the type with nothing set. */
export function empty<Schema extends DescMessage>(schema: Schema): MessageShape<Schema> {
  return create(schema)
}
