import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { KeptAnswers, readFirst } from '../../../src/relay/kept-answers.ts'
import { KeptConfiguration } from '../../../src/relay/kept-configuration.ts'
import { textField, WireError } from '../../../src/xds/slab/wire.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { clusterType, endpointType, listenerType, secretType } from '../../../src/xds/type-urls.ts'

const value = (name: string, content = '') => Buffer.concat([textField(1, name), textField(9, content)])
const sotw = (typeUrl: string, resources: readonly Buffer[]) =>
  Buffer.from(
    toBinary(
      DiscoveryResponseSchema,
      create(DiscoveryResponseSchema, { typeUrl, versionInfo: 'v', nonce: 'n', resources: resources.map((each) => ({ typeUrl, value: each })) }),
    ),
  )
const delta = (typeUrl: string, resources: readonly (readonly [name: string, value: Buffer])[], removedResources: readonly string[] = []) =>
  Buffer.from(
    toBinary(
      DeltaDiscoveryResponseSchema,
      create(DeltaDiscoveryResponseSchema, {
        typeUrl,
        nonce: 'n',
        removedResources: [...removedResources],
        resources: resources.map(([name, each]) => ({ name, version: 'v', resource: { typeUrl, value: each } })),
      }),
    ),
  )
const all = (kept: KeptConfiguration, typeUrl = clusterType) =>
  Object.fromEntries(kept.names(typeUrl).map((name) => [name, String(kept.resource(typeUrl, name))]))

describe('the kept configuration', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const change = fc.record({ set: fc.dictionary(name, fc.string({ maxLength: 20 })), removed: fc.array(name) })

  it('equals what the proxy was sent last, over SotW and delta, also after encoding and decoding', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 8 }), fc.boolean(), (changes, isDelta) => {
        const kept = new KeptConfiguration('me')
        const model = new Map<string, string>()
        for (const { set, removed } of changes) {
          for (const each of removed) model.delete(each)
          for (const [each, content] of Object.entries(set)) model.set(each, String(value(each, content)))
          const resources = Object.entries(set).map(([each, content]) => [each, value(each, content)] as const)
          kept.take(
            isDelta,
            isDelta
              ? delta(clusterType, resources, removed)
              : sotw(
                  clusterType,
                  [...model.values()].map((each) => Buffer.from(each)),
                ),
          )
        }
        const read = KeptConfiguration.decode(Buffer.concat(kept.encode()))
        expect([all(kept), all(read), read.nodeId]).to.deep.equal([Object.fromEntries(model), Object.fromEntries(model), 'me'])
      }),
    )
  })

  it('accumulates resources subscribed by name, and contains no secrets', () => {
    const kept = new KeptConfiguration('me')
    kept.take(false, sotw(endpointType, [value('one')]))
    kept.take(false, sotw(endpointType, [value('two')]))
    kept.take(false, sotw(secretType, [value('key', 'a secret')]))
    kept.take(true, delta(secretType, [['key', value('key', 'a secret')]]))
    expect(Object.keys(all(kept, endpointType))).to.deep.equal(['one', 'two'])
    expect(Buffer.concat(kept.encode()).includes('a secret')).to.equal(false)
  })

  it('is too large from 64 MiB on', () => {
    const kept = new KeptConfiguration('me')
    kept.take(true, delta(clusterType, [['a', Buffer.alloc(67_000_000)]]))
    expect(kept.isTooLarge).to.equal(false)
    kept.take(true, delta(clusterType, [['b', Buffer.alloc(200_000)]]))
    expect(kept.isTooLarge).to.equal(true)
    kept.take(true, delta(clusterType, [], ['b']))
    expect(kept.isTooLarge).to.equal(false)
  })

  it('is rejected if the bytes are something else', () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('hello'), textField(1, 'another form'), textField(1, 'mesh-configuration-1')])
      expect(() => KeptConfiguration.decode(bytes)).to.throw(WireError)
  })
})

describe('responses from the kept configuration', () => {
  const kept = new KeptConfiguration('me')
  kept.take(
    true,
    delta(clusterType, [
      ['a', value('a')],
      ['b', value('b')],
    ]),
  )
  kept.take(
    true,
    delta(endpointType, [
      ['a', value('a')],
      ['b', value('b')],
    ]),
  )

  it('in SotW have the newly requested resources, and everything for a wildcard', () => {
    const answers = new KeptAnswers(false, kept)
    const nonces = new Map<string, string>()
    const ask = (typeUrl: string, resourceNames: string[] = [], responseNonce = nonces.get(typeUrl) ?? '') => {
      const request = create(DiscoveryRequestSchema, { typeUrl, resourceNames, responseNonce })
      const answer = answers.answer(Buffer.from(toBinary(DiscoveryRequestSchema, request)))
      if (!answer) return undefined
      const { typeUrl: type, resources, versionInfo, nonce } = fromBinary(DiscoveryResponseSchema, answer)
      expect([type, versionInfo === 'kept' || resources.length === 0, resources.every((each) => each.typeUrl === typeUrl)]).to.deep.equal([
        typeUrl,
        true,
        true,
      ])
      nonces.set(typeUrl, nonce)
      return resources.map((each) => String(Buffer.from(each.value)))
    }
    const [a, b] = [String(value('a')), String(value('b'))]
    expect([ask(clusterType), ask(clusterType)]).to.deep.equal([[a, b], undefined])
    expect([ask(endpointType, ['b']), ask(endpointType, ['b', 'a'], ''), ask(endpointType, ['b', 'a']), ask(endpointType, ['x'])]).to.deep.equal([
      [b],
      undefined,
      [a],
      undefined,
    ])
    expect([ask(endpointType), ask(listenerType), ask(listenerType)], 'none of a wildcard type is an answer').to.deep.equal([
      undefined,
      [],
      undefined,
    ])
  })

  it('in delta also list the names that do not exist', () => {
    const answers = new KeptAnswers(true, kept)
    const ask = (typeUrl: string, resourceNamesSubscribe: string[] = []) => {
      const request = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe })
      const answer = answers.answer(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request)))
      if (!answer) return undefined
      const { resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, answer)
      return [resources.map((each) => `${each.name} ${each.version} ${each.resource?.typeUrl === typeUrl}`), removedResources]
    }
    expect([ask(clusterType), ask(clusterType)]).to.deep.equal([[['a kept true', 'b kept true'], []], undefined])
    expect([ask(endpointType, ['b', 'x']), ask(endpointType)], 'one response at a time').to.deep.equal([[['b kept true'], ['x']], undefined])
  })

  it('are only for a proxy without any configuration yet', () => {
    const first = (isDelta: boolean, bytes: Uint8Array) => readFirst(isDelta, messageFrame(bytes))
    const node = { id: 'me' }
    expect(first(false, toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node })))).to.deep.equal({ nodeId: 'me', isFresh: true })
    expect(first(false, toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node, versionInfo: 'v' })))?.isFresh).to.equal(false)
    const known = create(DeltaDiscoveryRequestSchema, { node, initialResourceVersions: { a: 'v' } })
    expect(first(true, toBinary(DeltaDiscoveryRequestSchema, known))).to.deep.equal({ nodeId: 'me', isFresh: false })
    expect([readFirst(true, Buffer.from([0, 0])), readFirst(true, Buffer.from([0, 0, 0, 0, 9, 1])), first(true, Buffer.from([0x0f]))]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ])
  })
})
