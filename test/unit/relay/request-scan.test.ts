import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { RequestScan } from '../../../src/relay/request-scan.ts'
import { BadFrame, messageFrame } from '../../../src/xds/stream/frames.ts'
import { chunked, cuts } from '../../harness/chunks.ts'

const request = fc.record({
  typeUrl: fc.constantFrom('a.Listener', 'a.Cluster', ''),
  names: fc.array(fc.string({ maxLength: 50 }), { maxLength: 20 }),
  nonce: fc.string({ maxLength: 20 }),
  id: fc.string({ maxLength: 50 }),
})

const encoded = (isDelta: boolean, { typeUrl, names, nonce, id }: { typeUrl: string; names: string[]; nonce: string; id: string }) =>
  isDelta
    ? toBinary(
        DeltaDiscoveryRequestSchema,
        create(DeltaDiscoveryRequestSchema, { node: { id }, typeUrl, resourceNamesSubscribe: names, responseNonce: nonce }),
      )
    : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node: { id }, typeUrl, resourceNames: names, responseNonce: nonce }))

describe('relayed requests', () => {
  for (const isDelta of [false, true])
    it(`of ${isDelta ? 'delta' : 'SotW'} pass unchanged, with own requests inserted between them, however the bytes are split`, () => {
      fc.assert(
        fc.property(fc.array(request, { maxLength: 6 }), cuts, (requests, at) => {
          const frames = requests.map((each) => messageFrame(encoded(isDelta, each)))
          const own = Buffer.from('own')
          const scan = new RequestScan(isDelta)
          const passed: Buffer[] = []
          const types: string[] = []
          for (const chunk of chunked(Buffer.concat(frames), at))
            scan.take(
              chunk,
              (bytes) => passed.push(Buffer.from(bytes)),
              (typeUrl) => {
                types.push(typeUrl)
                return typeUrl === 'a.Listener' ? [own] : []
              },
            )
          expect(types).to.deep.equal(requests.map(({ typeUrl }) => typeUrl))
          const expected = frames.flatMap((frame, index) => (requests[index]?.typeUrl === 'a.Listener' ? [frame, own] : [frame]))
          expect(Buffer.concat(passed).equals(Buffer.concat(expected))).to.equal(true)
          expect(scan.isBetween).to.equal(true)
        }),
      )
    })

  it('pass even if they are not protobuf, but compressed ones are rejected', () => {
    const scan = new RequestScan(false)
    const passed: Buffer[] = []
    const types: string[] = []
    const take = (bytes: Buffer) =>
      scan.take(
        bytes,
        (each) => passed.push(each),
        (typeUrl) => {
          types.push(typeUrl)
          return []
        },
      )
    const stream = Buffer.concat([messageFrame(Buffer.from([0x0f, 1, 2, 3])), messageFrame(Buffer.alloc(0))])
    take(stream)
    expect(passed, 'as one piece').to.deep.equal([stream])
    expect(types).to.deep.equal(['', ''])
    expect(() => take(Buffer.from([1]))).to.throw(BadFrame)
  })
})
