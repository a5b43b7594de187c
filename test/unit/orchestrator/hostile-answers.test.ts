/** Answers of an API server that come in single bytes, have more values than any object, or are of another kind than was asked for (docs/operation.md, C3). */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { expect } from 'chai'
import { sliceFields } from '../../../src/orchestrator/object-fields.ts'
import { formatOf } from '../../../src/orchestrator/object-format.ts'
import { MessageReader } from '../../../src/orchestrator/protobuf-messages.ts'

const mib = 1024 * 1024
const most = 16 * mib
const json = formatOf('application/json', undefined)
const protobuf = formatOf('application/vnd.kubernetes.protobuf', sliceFields)
const usedMib = () => {
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return (heapUsed + external + arrayBuffers) / mib
}

describe('hostile answers of an API server', () => {
  it('cost no more than their length where they come in single bytes', function () {
    this.timeout(120_000)
    const frame = Buffer.alloc(4)
    frame.writeUInt32BE(8 * mib)
    for (const [reader, begin] of [
      [json.list(most), Buffer.from('{"items":[{"metadata":{"name":"')],
      [json.watch(most), Buffer.from('{"type":"')],
      [protobuf.watch(most), frame],
    ] as const) {
      const before = usedMib()
      for (const _ of reader.take(begin)) throw new Error('nothing has ended')
      // Memory of its own, as each piece of a socket has.
      for (let at = 0; at < mib; at++) for (const _ of reader.take(Uint8Array.of(0x61))) throw new Error('nothing has ended')
      expect(usedMib() - before).to.be.below(60)
    }
  })

  it('are refused where they are of another kind than was asked for, before any object of them is told', () => {
    const list = (kind: string) => [...json.list(most, 'Service').take(Buffer.from(`{"kind":"${kind}","metadata":{},"items":[{"metadata":{}}]}`))]
    expect(list('ServiceList')).to.have.length(1)
    expect(() => list('PodList')).to.throw('the server was asked for ServiceList and sent PodList')
    const event = (type: string, kind: string) => [
      ...json.watch(most, 'Service').take(Buffer.from(`{"type":"${type}","object":{"kind":"${kind}"}}\n`)),
    ]
    for (const [type, kind] of [
      ['ADDED', 'Service'],
      ['BOOKMARK', 'Pod'],
      ['ERROR', 'Status'],
    ] as const)
      expect(event(type, kind)).to.have.length(1)
    for (const type of ['ADDED', 'MODIFIED', 'DELETED']) expect(() => event(type, 'Pod')).to.throw('the server was asked for Service and sent Pod')
  })

  it('are refused likewise in protobuf', () => {
    const message = (...given: readonly (readonly [number: number, bytes: Uint8Array])[]) => {
      const writer = new BinaryWriter()
      for (const [number, bytes] of given) writer.tag(number, WireType.LengthDelimited).bytes(bytes)
      return writer.finish()
    }
    const text = (value: string) => Buffer.from(value)
    const envelope = (kind: string, raw: Uint8Array) =>
      Buffer.concat([text('k8s\0'), message([1, message([1, text('v1')], [2, text(kind)])], [2, raw])])
    const list = (kind: string) => [
      ...protobuf.list(most, 'EndpointSlice').take(envelope(kind, message([1, message([2, text('7')])], [2, message()]))),
    ]
    expect(list('EndpointSliceList')).to.have.length(1)
    expect(() => list('PodList')).to.throw('the server was asked for EndpointSliceList and sent PodList')
    const event = (type: string, kind: string) => {
      const content = message([1, text(type)], [2, message([1, envelope(kind, message())])])
      const frame = Buffer.alloc(4)
      frame.writeUInt32BE(content.length)
      return [...protobuf.watch(most, 'EndpointSlice').take(Buffer.concat([frame, content]))]
    }
    expect([...event('ADDED', 'EndpointSlice'), ...event('BOOKMARK', 'Pod'), ...event('ERROR', 'Status')]).to.have.length(3)
    expect(() => event('DELETED', 'Pod')).to.throw('the server was asked for EndpointSlice and sent Pod')
  })

  it('are refused where an object has more values than any', () => {
    const wide = (values: number) => `[${'{},'.repeat(values)}{}]`
    const list = (text: string) => [...json.list(most).take(Buffer.from(`{"items":[{"metadata":${text}}]}`))]
    expect(list(wide(300_000))).to.have.length(1)
    expect(() => list(wide(1_000_000))).to.throw('an object of the server cannot be read: more than 1000000 values')
    expect(() => list(`${'['.repeat(mib)}${']'.repeat(mib)}`)).to.throw('nested in more than 1000 levels')
    const event = `{"type":"ADDED","object":{"metadata":${wide(1_000_000)}}}\n`
    expect(() => [...json.watch(most).take(Buffer.from(event))]).to.throw('more than 1000000 values')
    const number = sliceFields.findIndex((field) => field?.name === 'endpoints')
    const slice = (endpoints: number) => {
      const writer = new BinaryWriter()
      for (let at = 0; at < endpoints; at++) writer.tag(number, WireType.LengthDelimited).bytes(new Uint8Array())
      return writer.finish()
    }
    expect(new MessageReader().read(slice(1000), sliceFields).endpoints).to.have.length(1000)
    expect(() => new MessageReader().read(slice(1_000_001), sliceFields)).to.throw('an object has more than 1000000 values')
  })
})
