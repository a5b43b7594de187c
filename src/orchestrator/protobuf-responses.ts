/**
 * Reads the protobuf encoding of what an API server sends (`runtime/serializer/protobuf` of its machinery): objects have an envelope after four
 * bytes, events of a watch are frames with their length in front.
 */
import { CollectedBytes } from '../model/collected-bytes.ts'
import { fields, type MessageFields, MessageReader, wireTypes } from './protobuf-messages.ts'
import { checkKind, eventOf, listKind, type Page, pageOf, type ReadEvent } from './responses.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The bytes before each object: `k8s` and zero. */
const magic = [107, 56, 115, 0]
/** The envelope of an object (`runtime` Unknown): the numbers of the fields with the object and its type. */
const objectNumber = 2
const typeNumber = 1
const typeFields = fields({ 2: ['kind', 'word'] })
const envelopeFields = fields({ [typeNumber]: ['type', typeFields], [objectNumber]: ['raw', 'bytes'] })
const eventFields = fields({ 1: ['type', 'text'], 2: ['object', fields({ 1: ['raw', 'bytes'] })] })
/** What is read of the object of a bookmark, of whatever kind. */
const bookmarkFields = fields({ 1: ['metadata', fields({ 6: ['resourceVersion', 'text'], 12: ['annotations', 'wordByKey'] })] })
const statusFields = fields({ 3: ['message', 'text'], 6: ['code', 'number'] })
/** The fields of a list. */
const numbers = { metadata: 1, items: 2 }
const listFields = fields({ 2: ['resourceVersion', 'text'], 3: ['continue', 'text'] })
/** The longest part of a list outside of its items, in bytes. */
const mostAround = 65_536
/** The length of a frame is a number of so many bytes. */
const lengthBytes = 4

/** Keeps bytes until there are as many as are needed to go on. */
class PendingBytes {
  readonly #kept = new CollectedBytes()
  #needed = 0

  get length(): number {
    return this.#kept.length
  }

  /** Returns all bytes that are pending with these; undefined while more are needed. */
  with(bytes: Uint8Array): Uint8Array | undefined {
    const isFirst = this.length === 0
    if (!isFirst || bytes.length < this.#needed) this.#kept.add(bytes)
    if ((isFirst ? bytes.length : this.length) < this.#needed) return undefined
    const all = isFirst ? bytes : this.#kept.take()
    // Parts of a Buffer are Buffers, which cost ten times what those of an array do.
    return new Uint8Array(all.buffer, all.byteOffset, all.length)
  }

  /** Keeps the rest, with which nothing can be done before there are `needed` bytes. */
  keep(rest: Uint8Array, needed: number): void {
    this.#needed = needed
    this.#kept.add(rest)
  }
}

/** Reads a watch. */
export class ProtobufWatch {
  readonly #most: number
  readonly #known: MessageFields
  readonly #kind: string | undefined
  readonly #pending = new PendingBytes()
  readonly #reader = new MessageReader()

  /** `most`: the length of the longest event in bytes. `kind`: that of the objects; undefined: any. */
  constructor(most: number, known: MessageFields, kind?: string) {
    this.#most = most
    this.#known = known
    this.#kind = kind
  }

  /** Returns the events that end in these bytes; each is read when it is asked for. Throws an Error when one is too long, or is none. */
  *take(bytes: Uint8Array): Generator<ReadEvent> {
    for (const frame of this.#frames(bytes)) yield this.#event(frame)
  }

  #frames(bytes: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = []
    const all = this.#pending.with(bytes)
    if (!all) return frames
    const view = new DataView(all.buffer, all.byteOffset, all.length)
    let [at, needed] = [0, lengthBytes]
    while (all.length - at >= lengthBytes) {
      const length = view.getUint32(at)
      if (length > this.#most) throw new Error(`an event has more than ${this.#most} bytes`)
      needed = lengthBytes + length
      if (all.length - at < needed) break
      frames.push(all.subarray(at + lengthBytes, at + needed))
      at += needed
      needed = lengthBytes
    }
    this.#pending.keep(all.subarray(at), needed)
    return frames
  }

  #event(frame: Uint8Array): ReadEvent {
    const { type, object } = this.#reader.read(frame, eventFields)
    const raw = (object as Mapping | undefined)?.raw
    if (!(raw instanceof Uint8Array)) throw new Error('the watch has an event without an object')
    const other = type === 'BOOKMARK' ? bookmarkFields : type === 'ERROR' ? statusFields : undefined
    const bytes = objectIn(raw, this.#reader, other ? undefined : this.#kind)
    return eventOf({ type, object: this.#reader.read(bytes, other ?? this.#known) })
  }
}

/** The message of a `Status`; undefined where the bytes are none. */
export function protobufStatus(body: Uint8Array): unknown {
  const reader = new MessageReader()
  try {
    return reader.read(objectIn(body, reader), statusFields).message
  } catch {
    return undefined
  }
}

/** The object in its envelope. `kind`: that of which it has to be. */
function objectIn(bytes: Uint8Array, reader: MessageReader, kind?: string): Uint8Array {
  if (!hasMagic(bytes)) throw new Error('the server sent no object in protobuf')
  const { raw, type } = reader.read(bytes.subarray(magic.length), envelopeFields)
  checkKind((type as Mapping | undefined)?.kind, kind)
  return raw instanceof Uint8Array ? raw : new Uint8Array()
}

const hasMagic = (bytes: Uint8Array): boolean => magic.every((byte, at) => bytes[at] === byte)

/** Reads a page of a list as its bytes come, so that the objects of a page are never in memory together. */
export class ProtobufList {
  readonly #most: number
  readonly #known: MessageFields
  readonly #kind: string | undefined
  readonly #pending = new PendingBytes()
  readonly #reader = new MessageReader()
  #hasBegun = false
  /** The number of bytes of the list that have not come, within the envelope; undefined: outside of the list. */
  #rest: number | undefined
  #metadata: Mapping | undefined

  /** `most`: the length of the longest item in bytes. `kind`: that of the items; undefined: any. */
  constructor(most: number, known: MessageFields, kind?: string) {
    this.#most = most
    this.#known = known
    this.#kind = kind
  }

  /** Returns the objects that end in these bytes. Throws an Error when one, or what is around them, is too long, or the bytes are no list. */
  take(bytes: Uint8Array): Mapping[] {
    const items: Mapping[] = []
    const all = this.#pending.with(bytes)
    if (!all) return items
    let at = 0
    if (!this.#hasBegun) {
      if (all.length < magic.length) return this.#wait(all, magic.length, items)
      if (!hasMagic(all)) throw new Error('the server sent no list in protobuf')
      this.#hasBegun = true
      at = magic.length
    }
    while (at < all.length) {
      const field = this.#reader.fieldAt(all, at)
      if (!field) return this.#wait(all.subarray(at), all.length - at + 1, items)
      const isList = this.#rest === undefined && field.number === objectNumber && field.wireType === wireTypes.bytes
      const end = isList ? field.start : field.end
      const isItem = this.#rest !== undefined && field.number === numbers.items
      this.#checkLength(field.end - field.start, isList, isItem)
      if (end > all.length) return this.#wait(all.subarray(at), end - at, items)
      if (this.#rest === undefined && field.number === typeNumber)
        checkKind(this.#reader.read(all.subarray(field.start, field.end), typeFields).kind, listKind(this.#kind))
      if (isList) this.#rest = field.end - field.start
      else if (this.#rest !== undefined) {
        this.#rest -= end - at
        const content = all.subarray(field.start, field.end)
        if (isItem) items.push(this.#reader.read(content, this.#known))
        else if (field.number === numbers.metadata) this.#metadata = this.#reader.read(content, listFields)
      }
      if (this.#rest !== undefined && this.#rest <= 0) this.#endList(this.#rest)
      at = end
    }
    return this.#wait(new Uint8Array(), 0, items)
  }

  /** Returns the page without its items. Throws an Error when the bytes are no page of a list. */
  end(): Page {
    if (this.#rest !== undefined || this.#pending.length > 0 || !this.#metadata) throw new Error('it ends in its middle')
    return pageOf(this.#metadata)
  }

  #wait(rest: Uint8Array, needed: number, items: Mapping[]): Mapping[] {
    this.#pending.keep(rest, needed)
    return items
  }

  #endList(rest: number): void {
    if (rest < 0) throw new Error('a list is shorter than its fields')
    this.#rest = undefined
  }

  #checkLength(length: number, isList: boolean, isItem: boolean): void {
    if (isItem && length > this.#most) throw new Error(`an object of a list has more than ${this.#most} bytes`)
    if (!isList && !isItem && length > mostAround) throw new Error(`a list has more than ${mostAround} bytes besides its objects`)
  }
}
