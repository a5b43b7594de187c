/** What an answer of an API server may cost that has single bytes, or more values than any object (docs/operation.md, C3). */
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
