/** Encodes and decodes `google.protobuf.Struct`: loading generated code for it would take a writer long. */
import { fieldHead, MalformedMessage, scanFields, textField, WireError } from './wire.ts'

/** Returns a length-delimited field. The field number must be below 16. */
export const bytesField = (field: number, content: Uint8Array): Buffer => Buffer.concat([fieldHead(field, content.length), content])

/** Returns the encoded struct. Values that are undefined are left out. */
export function encodeStruct(fields: Readonly<Record<string, unknown>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([key, value]) =>
      value === undefined ? [] : [bytesField(1, Buffer.concat([textField(1, key), bytesField(2, encodeValue(value))]))],
    ),
  )
}

/** Encodes `google.protobuf.Value`. The fields of its oneof are written also when they have the default value. */
function encodeValue(value: unknown): Buffer {
  if (typeof value === 'string') return bytesField(3, Buffer.from(value))
  if (typeof value === 'boolean') return Buffer.of(0x20, Number(value))
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(9, 0x11)
    bytes.writeDoubleLE(value, 1)
    return bytes
  }
  if (Array.isArray(value)) return bytesField(6, Buffer.concat(value.map((item) => bytesField(1, encodeValue(item)))))
  if (typeof value === 'object' && value !== null) return bytesField(5, encodeStruct(value as Record<string, unknown>))
  return Buffer.of(0x08, 0)
}

/** The maximum nesting depth of a struct that is decoded. */
const maxDepth = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes text. Throws {@link MalformedMessage} that names `what` if it is not UTF-8. */
export function readText(bytes: Buffer, what: string): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new MalformedMessage(`${what}: text that is not UTF-8`)
  }
}

/** Decodes `google.protobuf.Struct`. Throws {@link WireError} that names `what`. */
export function readStruct(bytes: Buffer, what: string, depth = 0): Record<string, unknown> {
  if (depth > maxDepth) throw new WireError(`${what} is nested deeper than ${maxDepth}`)
  const entries: [string, unknown][] = []
  for (const { field, bytes: entry } of scanFields(bytes)) {
    if (field !== 1 || !entry) continue
    let key = ''
    let value: unknown = null
    for (const part of scanFields(entry)) {
      if (part.field === 1 && part.bytes) key = readText(part.bytes, what)
      if (part.field === 2 && part.bytes) value = readValue(part.bytes, what, depth + 1)
    }
    entries.push([key, value])
  }
  return Object.fromEntries(entries)
}

/** The tag of `number_value` in `google.protobuf.Value`: field 2 in eight bytes. */
const numberTag = 0x11

/** Decodes `google.protobuf.Value`. */
function readValue(bytes: Buffer, what: string, depth: number): unknown {
  if (depth > maxDepth) throw new WireError(`${what} is nested deeper than ${maxDepth}`)
  let value: unknown = bytes[0] === numberTag && bytes.length >= 9 ? bytes.readDoubleLE(1) : null
  for (const part of scanFields(bytes)) {
    if (part.field === 1 && !part.bytes) value = null
    if (part.field === 3 && part.bytes) value = readText(part.bytes, what)
    if (part.field === 4 && !part.bytes) value = part.value !== 0
    if (part.field === 5 && part.bytes) value = readStruct(part.bytes, what, depth + 1)
    if (part.field === 6 && part.bytes) value = readList(part.bytes, what, depth + 1)
  }
  return value
}

function readList(bytes: Buffer, what: string, depth: number): unknown[] {
  const values: unknown[] = []
  for (const { field, bytes: value } of scanFields(bytes)) if (field === 1 && value) values.push(readValue(value, what, depth + 1))
  return values
}
