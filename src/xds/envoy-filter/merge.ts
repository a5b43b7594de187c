/**
 * Merges patch values into messages, with the semantics of the reference: scalars, durations, packed messages and map entries are replaced,
 * messages are merged, lists are appended to or replaced. Typed configuration of filters and transport sockets is merged field by field.
 */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import type { Any } from '@bufbuild/protobuf/wkt'
import { packed, unpacked } from './packed.ts'

/** How lists are merged: `grow` appends to the existing list, `replaced` replaces it (`MERGE_AND_REPLACE_LIST`). */
export type Lists = 'grow' | 'replaced'

/** Merges `from` into `into`, which may share parts with `from` afterwards. */
export function mergeInto<Schema extends DescMessage>(
  schema: Schema,
  into: MessageShape<Schema>,
  from: MessageShape<Schema>,
  lists: Lists = 'grow',
): void {
  mergeReflected(reflect(schema as DescMessage, into as Message, false), reflect(schema as DescMessage, from as Message, false), lists)
}

/** Whether a message type stands for a single value: durations, wrappers, packed messages. */
const isValue = (desc: DescMessage): boolean => desc.typeName.startsWith('google.protobuf.')

function mergeReflected(into: ReflectMessage, from: ReflectMessage, lists: Lists): void {
  for (const field of from.fields) {
    if (!from.isSet(field)) continue
    if (field.fieldKind === 'list') {
      const list = into.get(field)
      if (lists === 'replaced') list.clear()
      for (const item of from.get(field)) list.add(item as never)
    } else if (field.fieldKind === 'map') {
      const map = into.get(field)
      for (const [key, value] of from.get(field)) map.set(key, value)
    } else if (field.fieldKind === 'message' && into.isSet(field) && !isValue(field.message)) {
      const target = into.get(field)
      mergeReflected(target, from.get(field), lists)
      into.set(field, target)
    } else into.set(field, from.get(field))
  }
}

/** Merges a packed message into another of the same type. Returns false, and changes nothing, if the types differ or are unknown. */
export function mergePacked(into: Any, from: Any): boolean {
  const target = unpacked(into)
  const source = unpacked(from)
  if (!target || !source || target.schema.typeName !== source.schema.typeName) return false
  mergeInto(target.schema, target.message, source.message)
  const { typeUrl, value } = packed(target.schema, target.message)
  into.typeUrl = typeUrl
  into.value = value
  return true
}
