import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { expect } from 'chai'
import fc from 'fast-check'
import { podFields, serviceFields, sliceFields } from '../../../src/orchestrator/object-fields.ts'
import { formatOf } from '../../../src/orchestrator/object-format.ts'
import { type Field, type MessageFields, MessageReader } from '../../../src/orchestrator/protobuf-messages.ts'
import { runs } from '../../harness/seed.ts'

type Mapping = Readonly<Record<string, unknown>>

const tables = { Pod: podFields, Service: serviceFields, EndpointSlice: sliceFields }
const type = 'application/vnd.kubernetes.protobuf'

/** Writes a message as the orchestrator does, with fields between that nobody reads. */
function written(message: Mapping, known: MessageFields): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(900, WireType.Varint).uint32(7)
  for (const [number, field] of known.entries()) {
    if (!field || !Object.hasOwn(message, field.name)) continue
    const value = message[field.name]
    for (const each of field.isList ? (value as unknown[]) : field.type === 'wordByKey' ? Object.entries(value as Mapping) : [value])
      writeField(writer, number, field, each)
    writer.tag(901, WireType.LengthDelimited).string('unread')
    writer.tag(902, WireType.Bit64).fixed64(1n).tag(903, WireType.Bit32).fixed32(1)
  }
  return writer.finish()
}

function writeField(writer: BinaryWriter, number: number, { type }: Field, value: unknown): void {
  if (type === 'number') writer.tag(number, WireType.Varint).int64(BigInt(value as number))
  else if (type === 'bool') writer.tag(number, WireType.Varint).bool(value as boolean)
  else writer.tag(number, WireType.LengthDelimited).bytes(contentOf(type, value))
}

function contentOf(type: Exclude<Field['type'], 'number' | 'bool'>, value: unknown): Uint8Array {
  if (type === 'text' || type === 'word') return Buffer.from(value as string)
  const message = new BinaryWriter()
  if (type === 'time')
    return message
      .tag(1, WireType.Varint)
      .int64(BigInt(Date.parse(value as string) / 1000))
      .finish()
  if (type === 'numberOrText')
    return typeof value === 'string'
      ? message.tag(1, WireType.Varint).int64(1).tag(3, WireType.LengthDelimited).string(value).finish()
      : message
          .tag(2, WireType.Varint)
          .int32(value as number)
          .finish()
  if (type === 'wordByKey') {
    const [key, text] = value as [string, string]
    return message.tag(1, WireType.LengthDelimited).string(key).tag(2, WireType.LengthDelimited).string(text).finish()
  }
  return written(value as Mapping, type as MessageFields)
}

const text = fc
  .oneof(fc.constantFrom('shop', 'app', 'version', 'http'), fc.string({ minLength: 1, maxLength: 90, unit: 'grapheme' }))
  .filter((value) => value !== '__proto__')
const moment = fc.integer({ min: 1, max: 10_000_000_000 }).map((seconds) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'))
const natural = fc.integer({ min: 1, max: 2 ** 31 - 1 })

function anyOf({ type, isList }: Field): fc.Arbitrary<unknown> {
  const one: fc.Arbitrary<unknown> =
    type === 'text' || type === 'word'
      ? text
      : type === 'number'
        ? natural
        : type === 'bool'
          ? fc.boolean()
          : type === 'time'
            ? moment
            : type === 'numberOrText'
              ? fc.oneof(natural, text)
              : type === 'wordByKey'
                ? fc.dictionary(text, text, { minKeys: 1, maxKeys: 4 })
                : messageOf(type as MessageFields)
  return isList ? fc.array(one, { minLength: 1, maxLength: 3 }) : one
}

const messageOf = (known: MessageFields): fc.Arbitrary<Mapping> =>
  fc.record(Object.fromEntries(known.flatMap((field) => (field ? [[field.name, anyOf(field)]] : []))), { requiredKeys: [], noNullPrototype: true })

/** The text of a value: fields come in the order of their numbers. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const envelope = (object: Uint8Array): Uint8Array => {
  const typeMeta = new BinaryWriter().tag(1, WireType.LengthDelimited).string('v1').tag(2, WireType.LengthDelimited).string('Pod').finish()
  const unknown = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(typeMeta).tag(2, WireType.LengthDelimited).bytes(object)
  return Buffer.concat([
    Buffer.from('k8s\0'),
    unknown.tag(3, WireType.LengthDelimited).string('').tag(4, WireType.LengthDelimited).string('').finish(),
  ])
}
const frame = (kind: string, object: Uint8Array): Uint8Array => {
  const raw = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(envelope(object)).finish()
  const event = new BinaryWriter().tag(1, WireType.LengthDelimited).string(kind).tag(2, WireType.LengthDelimited).bytes(raw).finish()
  const length = Buffer.alloc(4)
  length.writeUInt32BE(event.length)
  return Buffer.concat([length, event])
}
const listOf = (items: readonly Uint8Array[], version = '9'): Uint8Array => {
  const metadata = new BinaryWriter().tag(2, WireType.LengthDelimited).string(version).tag(3, WireType.LengthDelimited).string('more').finish()
  const list = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(metadata)
  for (const item of items) list.tag(2, WireType.LengthDelimited).bytes(item)
  return envelope(list.finish())
}
/** What is taken of bytes that come divided into parts of a size. */
const divided = <Part>(bytes: Uint8Array, size: number, take: (part: Uint8Array) => Iterable<Part>): Part[] => {
  const found: Part[] = []
  for (let start = 0; start < bytes.length; start += size) found.push(...take(Buffer.from(bytes.subarray(start, start + size))))
  return found
}

describe('objects in protobuf', () => {
  const pods = [{ metadata: { name: 'a', labels: { app: 'ü' } } }, { metadata: { name: 'b' }, spec: { hostNetwork: true } }]
  const bytesOf = (pod: Mapping) => written(pod, podFields)
  const format = formatOf(`${type};stream=watch`, podFields)

  for (const [kind, known] of Object.entries(tables))
    it(`are read as their JSON is: ${kind}`, () => {
      fc.assert(
        fc.property(messageOf(known), (message) => {
          expect(plain(new MessageReader().read(written(message, known), known))).to.deep.equal(plain(message))
        }),
        { numRuns: runs(500) },
      )
    })

  it('have what is shared by many once, and whatever has the same hash is another', () => {
    const reader = new MessageReader()
    fc.assert(
      fc.property(text, text, (one, other) => {
        const labels = { [one]: other }
        expect(reader.read(written({ metadata: { labels } }, podFields), podFields)).to.deep.equal({ metadata: { labels } })
      }),
      { numRuns: runs(2000) },
    )
  })

  it('leave out what JSON leaves out, and have no label that is a prototype', () => {
    const labels = Object.fromEntries([['__proto__', 'x']])
    const message = { metadata: { name: '', labels }, status: { conditions: [] } }
    expect(new MessageReader().read(written(message, podFields), podFields)).to.deep.equal({ metadata: { labels: {} }, status: {} })
  })

  it('are events of a watch, wherever the bytes are divided', () => {
    const bookmark = written({ metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } }, serviceFields)
    const status = new BinaryWriter().tag(3, WireType.LengthDelimited).string('too old').tag(6, WireType.Varint).int32(410).finish()
    const bytes = Buffer.concat([
      ...pods.map((pod) => frame('ADDED', bytesOf(pod))),
      frame('BOOKMARK', bookmark),
      frame('ERROR', status),
      frame('DELETED', bytesOf({})),
    ])
    for (let size = 1; size <= bytes.length; size++) {
      const reader = format.watch(1000)
      expect(plain(divided(bytes, size, (part) => reader.take(part)))).to.deep.equal([
        ...pods.map((object) => ({ type: 'ADDED', object })),
        { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } } },
        { type: 'ERROR', object: { message: 'too old', code: 410 } },
        { type: 'DELETED', object: {} },
      ])
    }
  })

  it('are pages of a list, whose objects are told as they come, wherever the bytes are divided', () => {
    const bytes = listOf(pods.map(bytesOf))
    for (let size = 1; size <= bytes.length; size++) {
      const reader = format.list(1000)
      expect(plain(divided(bytes, size, (part) => reader.take(part)))).to.deep.equal(pods)
      expect(reader.end()).to.deep.equal({ version: '9', next: 'more' })
    }
    const empty = format.list(1000)
    expect([...empty.take(listOf([]))]).to.deep.equal([])
    expect(empty.end().version).to.equal('9')
  })

  it('are refused when they are too long, broken or something else', () => {
    const page = (bytes: Uint8Array) => {
      const reader = format.list(50)
      for (const object of reader.take(bytes)) expect(object).to.be.an('object')
      return reader.end()
    }
    const whole = listOf([bytesOf(pods[0] as Mapping)])
    for (let length = 0; length < whole.length - 4; length++) expect(() => page(whole.subarray(0, length)), `${length} bytes`).to.throw()
    expect(() => page(listOf([], ''))).to.throw('the list has no resource version')
    expect(() => page(Buffer.from('{"items":[]}'))).to.throw('no list in protobuf')
    expect(() => page(listOf([new Uint8Array(51)]))).to.throw('an object of a list has more than 50 bytes')
    expect(() => page(listOf([], 'x'.repeat(70_000)))).to.throw('a list has more than 65536 bytes besides its objects')
    const around = (...bytes: number[]) => page(Buffer.concat([Buffer.from('k8s\0'), Buffer.from(bytes)]))
    expect(() => around(...new Array<number>(10).fill(255))).to.throw('a number of a message has no end')
    expect(() => around(8, ...new Array<number>(10).fill(128))).to.throw('a number of a message has no end')
    expect(() => around(...new Array<number>(9).fill(255))).to.throw('it ends in its middle')
    expect(() => around(12)).to.throw('a message has a field of the wire type 4')
    const watch = (bytes: Uint8Array) => [...format.watch(300).take(bytes)]
    expect(() => watch(Buffer.from([255, 0, 0, 0]))).to.throw('an event has more than 300 bytes')
    expect(() => watch(frame('OTHER', bytesOf({})))).to.throw('no event')
    expect(() => watch(Buffer.from([0, 0, 0, 1, 8]))).to.throw()
  })

  it('never make the reader do anything but throw an Error, nor go on for ever', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...Object.values(tables)), (bytes, known) => {
        for (const read of [
          () => new MessageReader().read(bytes, known),
          () => [...formatOf(type, known).watch(1000).take(bytes)],
          () => [
            ...formatOf(type, known)
              .list(1000)
              .take(Buffer.concat([Buffer.from('k8s\0'), bytes])),
          ],
        ])
          try {
            read()
          } catch (error) {
            expect(error).to.be.instanceOf(Error).and.not.instanceOf(TypeError)
          }
        expect(() => formatOf(type, known).messageIn(bytes)).not.to.throw()
      }),
      { numRuns: runs(5000) },
    )
  })

  it('come in JSON where the server has no protobuf, and for what has no table', () => {
    const watch = formatOf('application/json;stream=watch', podFields).watch(100)
    expect([...watch.take(Buffer.from('{"type":"ADDED","object":{}}\n'))]).to.deep.equal([{ type: 'ADDED', object: {} }])
    expect(formatOf(type, undefined)).to.equal(formatOf('application/json', podFields))
  })

  it('have messages in refusals', () => {
    const status = new BinaryWriter().tag(3, WireType.LengthDelimited).string('pods is forbidden').finish()
    expect([format.messageIn(envelope(status)), format.messageIn(Buffer.from('no'))]).to.deep.equal(['pods is forbidden', undefined])
  })
})
