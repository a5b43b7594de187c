/** Encodes `google.protobuf.Struct` from JSON: loading generated code for it would take a writer long. */
import { fieldHead, textField } from './wire.ts'

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
