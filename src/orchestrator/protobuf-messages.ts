/**
 * Reads messages of the orchestrator's protobuf encoding as the mappings that its JSON has, with the fields that a table names and no others:
 * what the mesh does not need of an object is skipped and not parsed. Fields that JSON leaves out where they are empty are left out too.
 */

/** How a field is read. */
export type FieldType =
  | 'text'
  /** Text that many objects have: it is kept once for all (see {@link SharedTexts}). */
  | 'word'
  /** A whole number, of up to 53 bits. */
  | 'number'
  | 'bool'
  | 'bytes'
  /** A moment (`meta/v1` Time), as text of RFC 3339. */
  | 'time'
  /** A number or a name (`intstr` IntOrString). */
  | 'numberOrText'
  /** A mapping of words to words. */
  | 'wordByKey'
  | MessageFields

/** A field: its name in JSON and its type. */
export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly isList: boolean
  readonly wireType: number
}

/** The fields of a message that are read, by number. */
export type MessageFields = readonly (Field | undefined)[]

/** How a value is written (encoding of protocol buffers, wire types). */
export const wireTypes = { varint: 0, bits64: 1, bytes: 2, bits32: 5 } as const

/** A field: its number, and where its content begins and ends, also where that has not come whole. */
export interface FieldPlace {
  readonly number: number
  readonly wireType: number
  readonly start: number
  readonly end: number
}

/** A table of fields, from numbers to names with types; a type in a list is that of a repeated field. */
export function fields(table: Readonly<Record<number, readonly [name: string, type: FieldType | 'list', item?: FieldType]>>): MessageFields {
  const found: (Field | undefined)[] = []
  for (const [number, [name, kind, item]] of Object.entries(table)) {
    const type = kind === 'list' ? (item as FieldType) : kind
    found[Number(number)] = {
      name,
      type,
      isList: kind === 'list',
      wireType: type === 'number' || type === 'bool' ? wireTypes.varint : wireTypes.bytes,
    }
  }
  return found
}

/**
 * Texts that many objects have, such as labels, phases and the names of nodes: those that came last of each of some thousand hashes. Most are
 * found without making text of their bytes, and all objects share one.
 */
class SharedTexts {
  readonly #texts: string[] = new Array<string>(4096).fill('')

  /** The text of bytes. */
  of(bytes: Uint8Array, start: number, end: number): string {
    const length = end - start
    if (length > longestShared) return textOf(bytes, start, end)
    let hash = length
    for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0
    const place = (hash ^ (hash >>> 12)) & 4095
    const known = this.#texts[place] as string
    if (known.length === length && isText(known, bytes, start)) return known
    const text = textOf(bytes, start, end)
    this.#texts[place] = text
    return text
  }
}

const longestShared = 63

/** Whether bytes are those of a text. Where the bytes of a text are not its characters they are not found to be. */
function isText(text: string, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < text.length; at++) {
    const byte = bytes[start + at] as number
    if (byte > 127 || text.charCodeAt(at) !== byte) return false
  }
  return true
}

const { utf8Slice } = Buffer.prototype as unknown as { readonly utf8Slice: (this: Uint8Array, start: number, end: number) => string }
const textOf = (bytes: Uint8Array, start: number, end: number): string => utf8Slice.call(bytes, start, end)

/** Reads messages from bytes, one after the other. */
export class MessageReader {
  readonly #shared = new SharedTexts()
  #bytes: Uint8Array = none
  #at = 0
  /** The number of values that were read of the message. */
  #values = 0

  /** Reads a message. Throws an Error when the bytes are none, or have more values than any object. */
  read(bytes: Uint8Array, known: MessageFields): Record<string, unknown> {
    this.#bytes = bytes
    this.#at = 0
    this.#values = 0
    const message = this.#message(bytes.length, known)
    this.#bytes = none
    return message
  }

  /** Returns the field that begins at a place; undefined when its beginning has not come whole. Throws an Error when the bytes are none. */
  fieldAt(bytes: Uint8Array, at: number): FieldPlace | undefined {
    this.#bytes = bytes
    this.#at = at
    const place = this.#place()
    this.#bytes = none
    return place
  }

  #place(): FieldPlace | undefined {
    if (!this.#hasNumber()) return undefined
    const tag = this.#varint()
    const wireType = tag % 8
    const number = (tag - wireType) / 8
    const fixed = fixedLength(wireType)
    if (fixed === undefined && !this.#hasNumber()) return undefined
    const [before, value] = [this.#at, fixed ?? this.#varint()]
    if (wireType === wireTypes.varint) return { number, wireType, start: before, end: this.#at }
    return { number, wireType, start: this.#at, end: this.#at + value }
  }

  /** Whether the number that begins here can be read: it ends in what has come, or is too long. */
  #hasNumber(): boolean {
    const [bytes, last] = [this.#bytes, this.#at + mostVarint]
    if (last <= bytes.length) return true
    for (let at = this.#at; at < bytes.length; at++) if ((bytes[at] as number) < 128) return true
    return false
  }

  #message(end: number, known: MessageFields): Record<string, unknown> {
    const message: Record<string, unknown> = {}
    while (this.#at < end) {
      const tag = this.#varint()
      const wireType = tag % 8
      const field = known[(tag - wireType) / 8]
      if (field?.wireType === wireType) this.#field(message, field)
      else this.#skip(wireType)
    }
    if (this.#at > end) throw new Error('a field of a message is longer than the message')
    return message
  }

  #field(message: Record<string, unknown>, { name, type, isList }: Field): void {
    if (++this.#values > mostValues) throw new Error(`an object has more than ${mostValues} values`)
    if (type === 'wordByKey') {
      const known = message[name] as Record<string, string> | undefined
      const entries = known ?? {}
      if (!known) message[name] = entries
      return this.#entry(entries)
    }
    const value = this.#value(type)
    if (isList) {
      const known = message[name] as unknown[] | undefined
      if (known) known.push(value)
      else message[name] = [value]
    } else if (value !== '' && value !== 0 && value !== undefined) message[name] = value
  }

  #value(type: Exclude<FieldType, 'wordByKey'>): unknown {
    if (type === 'number') return this.#varint()
    if (type === 'bool') return this.#varint() !== 0
    const end = this.#endOfBytes()
    if (type === 'text' || type === 'word') return this.#text(type, end)
    if (type === 'bytes') {
      const start = this.#at
      this.#at = end
      return this.#bytes.subarray(start, end)
    }
    if (type === 'time') return timeOf(this.#message(end, timeFields))
    if (type === 'numberOrText') return numberOrTextOf(this.#message(end, numberOrTextFields))
    return this.#message(end, type)
  }

  #text(type: 'text' | 'word', end: number): string {
    const start = this.#at
    this.#at = end
    return type === 'word' ? this.#shared.of(this.#bytes, start, end) : textOf(this.#bytes, start, end)
  }

  /** An entry of a mapping: a message with a key and a value. */
  #entry(entries: Record<string, string>): void {
    const { key = '', value = '' } = this.#message(this.#endOfBytes(), entryFields) as { key?: string; value?: string }
    // The orchestrator has no such name of a label or an annotation, and JavaScript gives it a meaning.
    if (key !== '__proto__') entries[key] = value
  }

  #endOfBytes(): number {
    const length = this.#varint()
    const end = this.#at + length
    if (end > this.#bytes.length) throw new Error('a message is longer than its bytes')
    return end
  }

  #skip(wireType: number): void {
    if (wireType === wireTypes.varint) this.#varint()
    else if (wireType === wireTypes.bytes) this.#at = this.#endOfBytes()
    else this.#at += fixedLength(wireType) ?? 0
  }

  /** A number of variable length. Numbers below zero, which no field that is read has, come out as large ones. */
  #varint(): number {
    const bytes = this.#bytes
    let [value, factor] = [0, 1]
    const last = Math.min(this.#at + mostVarint, bytes.length)
    while (this.#at < last) {
      const byte = bytes[this.#at++] as number
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
    throw new Error('a number of a message has no end')
  }
}

/** The largest number of values of an object: an empty one has two bytes, and costs some fifty of memory. */
const mostValues = 1_000_000

/** A number of variable length has at most so many bytes. */
const mostVarint = 10

/** No bytes: those that were read are not kept. */
const none = new Uint8Array()

/** The length of a field of a wire type; undefined: the field begins with a number that is its content or its length. Throws for other types. */
function fixedLength(wireType: number): number | undefined {
  if (wireType === wireTypes.bits64) return 8
  if (wireType === wireTypes.bits32) return 4
  if (wireType === wireTypes.varint || wireType === wireTypes.bytes) return undefined
  throw new Error(`a message has a field of the wire type ${wireType}`)
}

function timeOf({ seconds }: Readonly<Record<string, unknown>>): string | undefined {
  const moment = new Date(typeof seconds === 'number' ? seconds * 1000 : Number.NaN)
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString().replace('.000Z', 'Z')
}

const numberOrTextOf = ({ type, number = 0, text = '' }: Readonly<Record<string, unknown>>): unknown => (type === 1 ? text : number)

const entryFields = fields({ 1: ['key', 'word'], 2: ['value', 'word'] })
const numberOrTextFields = fields({ 1: ['type', 'number'], 2: ['number', 'number'], 3: ['text', 'word'] })
const timeFields = fields({ 1: ['seconds', 'number'] })
