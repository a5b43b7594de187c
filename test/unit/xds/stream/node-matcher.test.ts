import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { NodeMatcherSchema } from '../../../../protocols/gen/envoy/type/matcher/v3/node_pb.js'
import type { StringMatcherSchema } from '../../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ValueMatcherSchema } from '../../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import { nodeTest } from '../../../../src/xds/stream/node-matcher.ts'

type Value = MessageInitShape<typeof ValueMatcherSchema>
type Text = MessageInitShape<typeof StringMatcherSchema>
type Init = MessageInitShape<typeof NodeMatcherSchema>

const nodes = [
  { id: 'sidecar~10.0.0.1~a.shop~shop.svc', metadata: { MESH_VERSION: '1.9', LABELS: { app: 'a' }, ports: [80, 81], on: true, none: null } },
  { id: 'router~10.0.0.2~gw.edge~edge.svc', metadata: { MESH_VERSION: '1.8', weight: 0.5 } },
]
const accepted = (...matchers: readonly unknown[]) => {
  const test = nodeTest(matchers.map((matcher) => create(NodeMatcherSchema, matcher as Init)))
  return nodes.flatMap((node, index) => (test(node) ? [index] : []))
}
const id = (matchPattern: Text['matchPattern'], ignoreCase = false): Init => ({ nodeId: { matchPattern: matchPattern as never, ignoreCase } })
const metadata = (path: string, matchPattern: Value['matchPattern']): Init => ({
  nodeMetadatas: [{ path: path.split('/').map((value) => ({ segment: { case: 'key', value } })), value: { matchPattern: matchPattern as never } }],
})
const exactly = (value: string): Value['matchPattern'] => ({ case: 'stringMatch', value: { matchPattern: { case: 'exact', value } } as never })

describe('node matchers of the CSDS service', () => {
  it('match the node id by exact, prefix, suffix, contains and regular expression', () => {
    expect(accepted(id({ case: 'exact', value: nodes[0]?.id as string }))).to.deep.equal([0])
    expect(accepted(id({ case: 'prefix', value: 'router~' }))).to.deep.equal([1])
    expect(accepted(id({ case: 'suffix', value: '.svc' }))).to.deep.equal([0, 1])
    expect(accepted(id({ case: 'contains', value: 'A.SHOP' }))).to.deep.equal([])
    expect(accepted(id({ case: 'contains', value: 'A.SHOP' }, true))).to.deep.equal([0])
    expect(accepted(id({ case: 'safeRegex', value: { regex: '(sidecar|router)~10.*' } as never }))).to.deep.equal([0, 1])
    expect(accepted(id({ case: 'safeRegex', value: { regex: 'sidecar' } as never })), 'the whole id must match').to.deep.equal([])
  })

  it('match metadata by path, under mesh and alias names', () => {
    for (const name of ['MESH_VERSION', 'ISTIO_VERSION']) expect(accepted(metadata(name, exactly('1.9')))).to.deep.equal([0])
    expect(accepted(metadata('LABELS/app', exactly('a')))).to.deep.equal([0])
    expect(accepted(metadata('LABELS/constructor', { case: 'presentMatch', value: true }))).to.deep.equal([])
    expect(accepted(metadata('weight', { case: 'presentMatch', value: true }))).to.deep.equal([1])
    expect(accepted(metadata('weight', { case: 'presentMatch', value: false }))).to.deep.equal([0])
    expect(accepted(metadata('none', { case: 'nullMatch', value: {} as never }))).to.deep.equal([0])
    expect(accepted(metadata('on', { case: 'boolMatch', value: true }))).to.deep.equal([0])
    const within = (start: number, end: number): Value['matchPattern'] => ({
      case: 'doubleMatch',
      value: { matchPattern: { case: 'range', value: { start, end } } } as never,
    })
    expect([accepted(metadata('weight', within(0.5, 1))), accepted(metadata('weight', within(0, 0.5)))]).to.deep.equal([[1], []])
    const eighty = { matchPattern: { case: 'doubleMatch' as const, value: { matchPattern: { case: 'exact' as const, value: 80 } } } }
    expect(accepted(metadata('ports', { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value: eighty } } as never }))).to.deep.equal([0])
    const either = { valueMatchers: [{ matchPattern: exactly('1.8') }, { matchPattern: exactly('1.9') }] }
    expect(accepted(metadata('MESH_VERSION', { case: 'orMatch', value: either as never }))).to.deep.equal([0, 1])
  })

  it('are combined with OR, the conditions within one with AND; without matchers every node matches', () => {
    expect(accepted()).to.deep.equal([0, 1])
    expect(accepted({})).to.deep.equal([0, 1])
    expect(accepted(id({ case: 'prefix', value: 'router~' }), metadata('MESH_VERSION', exactly('1.9')))).to.deep.equal([0, 1])
    expect(accepted({ ...id({ case: 'prefix', value: 'router~' }), ...metadata('MESH_VERSION', exactly('1.9')) })).to.deep.equal([])
  })

  it('are rejected with the reason if they are invalid or too costly', () => {
    let deep: Value = { matchPattern: exactly('x') as never }
    for (let index = 0; index < 20; index++) deep = { matchPattern: { case: 'orMatch', value: { valueMatchers: [deep] } } as never }
    for (const [matcher, reason] of [
      [id({ case: 'safeRegex', value: { regex: '(' } as never }), /^not a valid RE2 pattern/],
      [id({ case: 'safeRegex', value: { regex: 'a'.repeat(101) } as never }), /more than 100 characters/],
      [id({ case: 'custom', value: {} as never }), /"custom" is not taken/],
      [id({ case: undefined }), /"none" is not taken/],
      [{ nodeMetadatas: [{}] }, /a path has 1 to 8 keys/],
      [{ nodeMetadatas: [{ path: [{}] }] }, /has no key/],
      [metadata('x', { case: undefined }), /says nothing/],
      [metadata('x', { case: 'doubleMatch', value: {} as never }), /neither exact nor range/],
      [metadata('x', { case: 'listMatch', value: {} as never }), /says no one_of/],
      [metadata('x', deep.matchPattern), /nested more than 8 deep/],
    ] as const)
      expect(() => accepted(matcher)).to.throw(reason)
    expect(() => accepted(...Array.from({ length: 101 }, () => ({})))).to.throw(/more than 100/)
  })
})
