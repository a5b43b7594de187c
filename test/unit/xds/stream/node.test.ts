import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { NodeSchema } from '../../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { WireError } from '../../../../src/xds/slab/wire.ts'
import { readNodeBytes } from '../../../../src/xds/stream/node.ts'

const json = fc.jsonValue({ maxDepth: 4 })
const word = fc.string({ unit: 'grapheme', maxLength: 8 })
const node = fc.record({
  id: word,
  cluster: word,
  metadata: fc.option(fc.dictionary(word, json, { maxKeys: 5 }), { nil: undefined }),
  locality: fc.option(fc.record({ region: word, zone: word, subZone: word }), { nil: undefined }),
  userAgentName: word,
  version: fc.option(fc.tuple(fc.nat(300), fc.nat(300)), { nil: undefined }),
})
const encode = ({ version, metadata, ...rest }: { version?: [number, number] | undefined; metadata?: unknown } & Record<string, unknown>) =>
  Buffer.from(
    toBinary(
      NodeSchema,
      create(NodeSchema, {
        ...rest,
        metadata: metadata as never,
        extensions: [{ name: 'left out' }],
        ...(version
          ? {
              userAgentVersionType: {
                case: 'userAgentBuildVersion',
                value: { version: { majorNumber: version[0], minorNumber: version[1], patch: 7 } },
              },
            }
          : {}),
      }),
    ),
  )

describe('nodes of discovery requests', () => {
  it('are decoded as the schema says', () => {
    fc.assert(
      fc.property(node, (given) => {
        const bytes = encode(given)
        const known = fromBinary(NodeSchema, bytes)
        const { locality } = known
        expect(readNodeBytes(bytes)).to.deep.equal({
          id: known.id,
          metadata: known.metadata ?? {},
          locality: locality ? { region: locality.region, zone: locality.zone, subZone: locality.subZone } : undefined,
          agent: { name: known.userAgentName, version: given.version ?? [0, 0] },
        })
      }),
    )
  })

  it('say that they have the filter for MySQL when their list of extensions has it, not disabled, and no other name', () => {
    const wanted = 'envoy.filters.network.mysql_proxy'
    const entry = fc.record({
      name: fc.constantFrom(wanted, `${wanted}_2`, `x.${wanted}`, 'envoy.filters.network.tcp_proxy', ''),
      category: fc.constantFrom('envoy.filters.network', wanted),
      typeDescriptor: fc.constantFrom('', wanted),
      disabled: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), fc.constantFrom('p', wanted), (extensions, id) => {
        const bytes = Buffer.from(toBinary(NodeSchema, create(NodeSchema, { id, extensions })))
        const isThere = extensions.some(({ name, disabled }) => name === wanted && !disabled)
        expect(readNodeBytes(bytes).readsMysql).to.equal(isThere ? true : undefined)
      }),
    )
  })

  it('in very many parts are decoded in linear time', () => {
    // Metadata, and then 12,000 empty parts of a locality: the merged message must not be copied for each part.
    const locality = Buffer.from(toBinary(NodeSchema, create(NodeSchema, { locality: { region: 'x'.repeat(30_000) } })))
    const parts = Buffer.concat([locality, ...Array.from({ length: 12_000 }, () => Buffer.from([0x22, 0]))])
    const { concat } = Buffer
    let copied = 0
    Buffer.concat = (list, ...length) => {
      const whole = concat(list, ...length)
      copied += whole.length
      return whole
    }
    try {
      expect(readNodeBytes(parts).locality).to.deep.equal({ region: 'x'.repeat(30_000), zone: '', subZone: '' })
    } finally {
      Buffer.concat = concat
    }
    expect(copied).to.be.below(2 * parts.length)
  })

  it('with corrupt bytes are decoded or rejected as malformed', () => {
    fc.assert(
      fc.property(node, fc.nat(), fc.nat(255), (given, where, byte) => {
        const bytes = encode(given)
        bytes[where % bytes.length] = byte
        try {
          readNodeBytes(bytes)
        } catch (error) {
          expect(error).to.be.instanceOf(WireError)
        }
      }),
    )
    const deep = Buffer.from(
      toBinary(NodeSchema, create(NodeSchema, { metadata: { x: Array.from({ length: 40 }).reduce((inner) => [inner], 1) as never } })),
    )
    expect(() => readNodeBytes(deep)).to.throw(WireError, 'nested deeper than 64')
    expect(() => readNodeBytes(Buffer.from([0x0a, 1, 0xff]))).to.throw(WireError, 'not UTF-8')
  })
})
