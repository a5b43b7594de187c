/**
 * The parts of the protobuf wire format that this project writes and reads without generated code: responses are assembled from slices that
 * were encoded once, and requests are scanned without decoding fields that are not needed.
 *
 * In `DiscoveryResponse` resources are field 2, of type `Any`; in the `Resource` of delta the `Any` is field 2 too. So both forms use the
 * same bytes (tag, length, `Any`).
 */

/** Returns the number of bytes of a varint. */
export function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) length++
  return length
}

/** Writes a varint and returns the offset after it. */
export function writeVarint(target: Uint8Array, offset: number, value: number): number {
  let at = offset
  let rest = value
  while (rest > 127) {
    target[at++] = (rest % 128) | 128
    rest = Math.floor(rest / 128)
  }
  target[at++] = rest
  return at
}

/** Returns the tag and length of a length-delimited field; the content follows. The field number must be below 16. */
export function fieldHead(field: number, length: number): Uint8Array {
  const head = new Uint8Array(1 + varintLength(length))
  head[0] = (field << 3) | 2
  writeVarint(head, 1, length)
  return head
}

/** Returns a varint field, empty if the value is zero. The field number must be below 16. */
export function varintField(field: number, value: number): Buffer {
  if (value === 0) return Buffer.alloc(0)
  const bytes = Buffer.alloc(1 + varintLength(value), field << 3)
  writeVarint(bytes, 1, value)
  return bytes
}

/** Returns a string field, empty if the text is empty. The field number must be below 16. */
export function textField(field: number, text: string): Buffer {
  const length = Buffer.byteLength(text)
  const bytes = Buffer.allocUnsafe(fieldLength(length))
  writeText(bytes, 0, field, text, length)
  return bytes
}

/** Returns the head of an encoded resource: tag and length of the `Any`, its type URL, tag and length of the value. The value follows. */
export function elementHead(typeUrl: string, valueLength: number): Buffer {
  const url = textField(1, typeUrl)
  const value = fieldHead(2, valueLength)
  return Buffer.concat([fieldHead(2, url.length + value.length + valueLength), url, value])
}

/**
 * Returns the head of a delta `Resource`: tag and length, name, version. The `Any` field of `elementLength` bytes follows, tag and length
 * included.
 */
export function deltaResourceHead(name: string, version: string, elementLength: number): Buffer {
  const head = Buffer.allocUnsafe(deltaHeadLength(name, version, elementLength))
  writeDeltaHead(head, 0, name, version, elementLength)
  return head
}

/** Returns the number of bytes of a {@link deltaResourceHead}. */
export function deltaHeadLength(name: string, version: string, elementLength: number): number {
  const fields = fieldLength(Buffer.byteLength(name)) + fieldLength(Buffer.byteLength(version))
  return 1 + varintLength(fields + elementLength) + fields
}

/** Writes a {@link deltaResourceHead} and returns the offset after it. */
export function writeDeltaHead(target: Buffer, offset: number, name: string, version: string, elementLength: number): number {
  const nameBytes = Buffer.byteLength(name)
  const versionBytes = Buffer.byteLength(version)
  target[offset] = (2 << 3) | 2
  const at = writeVarint(target, offset + 1, fieldLength(nameBytes) + fieldLength(versionBytes) + elementLength)
  return writeText(target, writeText(target, at, 3, name, nameBytes), 1, version, versionBytes)
}

/** Returns the number of bytes of a string field whose text has `bytes` bytes. */
const fieldLength = (bytes: number): number => (bytes === 0 ? 0 : 1 + varintLength(bytes) + bytes)

/** Writes a string field whose text has `bytes` bytes, or nothing if the text is empty, and returns the offset after it. */
function writeText(target: Buffer, offset: number, field: number, text: string, bytes: number): number {
  if (bytes === 0) return offset
  target[offset] = (field << 3) | 2
  const at = writeVarint(target, offset + 1, bytes)
  return at + target.write(text, at)
}

/** A field of a scanned message: varints as numbers, length-delimited fields as views of the message. */
export interface WireField {
  readonly field: number
  readonly value: number
  readonly bytes: Buffer | undefined
  /** The start and end of the field in the message, including its tag. */
  readonly start: number
  readonly end: number
}

/** Thrown for a message that is not valid protobuf or exceeds a limit. */
export class WireError extends Error {}

/** Thrown for bytes that are not those of a protobuf message. */
export class MalformedMessage extends WireError {}

/**
 * Yields the fields of a message from an offset on. Fields of fixed width are skipped. Throws {@link MalformedMessage} if the message is
 * truncated or not protobuf.
 */
export function* scanFields(message: Buffer, from = 0): Generator<WireField> {
  let at = from
  const varint = (): number => {
    let value = 0
    let factor = 1
    for (let i = 0; i < 10; i++) {
      const byte = message[at++]
      if (byte === undefined) throw new MalformedMessage('message is cut short')
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
    throw new MalformedMessage('varint is too long')
  }
  while (at < message.length) {
    const start = at
    const tag = varint()
    const field = Math.floor(tag / 8)
    const wireType = tag % 8
    if (field === 0) throw new MalformedMessage('field number 0')
    if (wireType === 0) {
      const value = varint()
      yield { field, value, bytes: undefined, start, end: at }
    } else if (wireType === 2) {
      const length = varint()
      if (at + length > message.length) throw new MalformedMessage('field is longer than its message')
      at += length
      yield { field, value: 0, bytes: message.subarray(at - length, at), start, end: at }
    } else if (wireType === 5 || wireType === 1) {
      at += wireType === 5 ? 4 : 8
      if (at > message.length) throw new MalformedMessage('field is longer than its message')
    } else throw new MalformedMessage(`wire type ${wireType} is not supported`)
  }
}

/**
 * Returns the end of the length-delimited field with a tag byte that starts at an offset; undefined if no such field of fewer than 16 KiB
 * starts there.
 */
export function endOfField(message: Buffer, at: number, tag: number): number | undefined {
  if (message[at] !== tag) return undefined
  const low = message[at + 1] ?? message.length
  const high = low > 127 ? (message[at + 2] ?? message.length) : 0
  if (high > 127) return undefined
  const end = contentOfField(message, at) + (low & 127) + high * 128
  return end > message.length ? undefined : end
}

/** Returns the offset of the content of the field that {@link endOfField} finds at an offset. */
export const contentOfField = (message: Buffer, at: number): number => at + ((message[at + 1] ?? 0) > 127 ? 3 : 2)
