import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { RouteSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { HttpConnectionManagerSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { GroupUpdate } from '../../../protocols/messages/push.ts'
import { checkMessage, InvalidResource } from '../../../src/xds/resource-check.ts'
import { GroupStore } from '../../../src/xds/slab/group-store.ts'
import { encodeResource } from '../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { scanFields, WireError } from '../../../src/xds/slab/wire.ts'
import { SliceEntry } from '../../../src/xds/stream/entry.ts'
import { Group } from '../../../src/xds/stream/group.ts'
import { namesIn, readDeltaRequest, readSotwRequest } from '../../../src/xds/stream/request.ts'
import { runs } from '../../harness/seed.ts'
import { slabsOf } from '../../harness/slabs.ts'

describe('discovery requests', () => {
  it('are decoded as protobuf says, wherever their names stand and however long they are', () => {
    const name = fc.oneof(
      fc.string(),
      fc.constantFrom(127, 128, 129, 4096, 16_383, 16_384, 20_000).map((length) => 'n'.repeat(length)),
    )
    fc.assert(
      fc.property(fc.array(fc.array(name, { maxLength: 20 }), { maxLength: 3 }), fc.string(), fc.string(), (lists, nonce, typeUrl) => {
        const encode = (message: object) => toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, message))
        const parts = lists.flatMap((resourceNames) => [encode({ resourceNames }), encode({ versionInfo: 'v' })])
        const request = readSotwRequest(Buffer.concat([...parts, encode({ responseNonce: nonce, typeUrl })]))
        const names = [...scanFields(request.rawNames)].map(({ bytes }) => bytes?.toString())
        expect([names, request.nonce, request.typeUrl]).to.deep.equal([lists.flat(), nonce, typeUrl])
        if (lists.flat().some((one) => Buffer.byteLength(one) > 4096))
          expect(() => namesIn(request.rawNames)).to.throw(WireError, 'longer than 4096 bytes')
        else expect([...namesIn(request.rawNames)]).to.deep.equal([...new Set(lists.flat())])
      }),
    )
  })

  it('are decoded in delta form', () => {
    const message = toBinary(
      DeltaDiscoveryRequestSchema,
      create(DeltaDiscoveryRequestSchema, {
        typeUrl: 't',
        resourceNamesSubscribe: ['a', 'b'],
        resourceNamesUnsubscribe: ['c'],
        initialResourceVersions: { d: '1' },
        responseNonce: 'n',
        errorDetail: { code: 3, message: 'no' },
      }),
    )
    const request = readDeltaRequest(Buffer.from(message))
    expect([...namesIn(request.rawSubscribe)]).to.deep.equal(['a', 'b'])
    expect(request).to.deep.include({ typeUrl: 't', unsubscribe: ['c'], nonce: 'n', error: { code: 3, message: 'no' } })
    expect([...request.initialVersions]).to.deep.equal([['d', '1']])
  })

  it('with arbitrary bytes are decoded or rejected as malformed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        for (const read of [
          () => readSotwRequest(Buffer.from(bytes)),
          () => readDeltaRequest(Buffer.from(bytes)),
          () => [...scanFields(Buffer.from(bytes))],
          () => [...namesIn(Buffer.from(bytes))],
        ]) {
          try {
            read()
          } catch (error) {
            expect(error).to.be.instanceOf(WireError)
          }
        }
      }),
      { numRuns: runs(2000) },
    )
  })
})

describe('the validation of resources', () => {
  it('rejects what Envoy would reject, with the path of the field', () => {
    expect(() => checkMessage(ClusterSchema, create(ClusterSchema, { name: '' }))).to.throw(InvalidResource, 'Cluster.name: required, but empty')
    expect(() => checkMessage(ClusterSchema, create(ClusterSchema, { name: 'a', connectTimeout: { seconds: 0n } }))).to.throw(
      InvalidResource,
      'connect_timeout: must be longer',
    )
    expect(() => checkMessage(RouteSchema, create(RouteSchema, {}))).to.throw(InvalidResource, 'action: one of its fields must be set')
    expect(() =>
      checkMessage(
        RouteSchema,
        create(RouteSchema, { match: { pathSpecifier: { case: 'prefix', value: '/' } }, action: { case: 'route', value: {} } }),
      ),
    ).to.throw(InvalidResource, 'route.cluster_specifier')
    checkMessage(ClusterSchema, create(ClusterSchema, { name: 'fine' }))
  })

  it('checks lists, maps, oneofs and wrappers', () => {
    const header = { header: { key: 'x', value: 'a\nb' } }
    const host = (of: object) => ({ name: 'a', domains: ['a'], ...of })
    const routes = (...virtualHosts: object[]) => create(RouteConfigurationSchema, { name: 'r', virtualHosts } as never)
    expect(() => checkMessage(RouteConfigurationSchema, routes(host({}), host({ domains: [] })))).to.throw(
      InvalidResource,
      /^RouteConfiguration\.virtual_hosts\[1\]\.domains: needs at least 1 entry$/,
    )
    expect(() => checkMessage(RouteConfigurationSchema, routes(host({ requestHeadersToRemove: ['fine', 'a\nb'] })))).to.throw(
      InvalidResource,
      /^RouteConfiguration\.virtual_hosts\[0\]\.request_headers_to_remove\[1\]: /,
    )
    expect(() => checkMessage(RouteConfigurationSchema, routes(host({ requestHeadersToAdd: [header] })))).to.throw(
      InvalidResource,
      /^RouteConfiguration\.virtual_hosts\[0\]\.request_headers_to_add\[0\]\.header\.value: /,
    )
    const manager = (maxRequestHeadersKb: number) =>
      create(HttpConnectionManagerSchema, {
        statPrefix: 's',
        maxRequestHeadersKb,
        routeSpecifier: { case: 'rds', value: { routeConfigName: 'r', configSource: { configSourceSpecifier: { case: 'ads', value: {} } } } },
      })
    checkMessage(HttpConnectionManagerSchema, manager(60))
    expect(() => checkMessage(HttpConnectionManagerSchema, manager(9000))).to.throw(InvalidResource, 'HttpConnectionManager.max_request_headers_kb: ')
  })
})

describe('slabs and groups', () => {
  const resource = (name: string, size = 10) => encodeResource(ClusterSchema, create(ClusterSchema, { name, altStatName: 'x'.repeat(size) }), name)
  /** Applies patches as a writer does. Returns the versions that it then has. */
  const follow = (slabs: SlabStore, group: Group, held: Map<number, Buffer>, patches: readonly GroupUpdate[]) => {
    for (const { id, bytes } of slabsOf(patches, (id) => slabs.data(id))) held.set(id, Buffer.from(bytes))
    for (const patch of patches)
      group.apply(
        patch,
        (data) => new SliceEntry(data, held.get(data.slices[0] as number) as Buffer, data.slices[1] as number, data.slices[2] as number),
      )
    for (const id of slabs.takeRetired()) held.delete(id)
    return Object.fromEntries([...group.entries].sort().map(([name, entry]) => [name, entry.version]))
  }

  it('list the names that another group lacks, recomputed only when a name is added or removed', () => {
    const groups = new GroupStore(new SlabStore(), new KeyedSums('key'))
    const hold = (id: string, ...names: string[]) =>
      groups.replace(
        id,
        names.map((name) => resource(name)),
      )
    const missing = () => groups.missingFrom('other', 'group')
    hold('group', 'a', 'b', 'c')
    expect(missing()).to.deep.equal(['a', 'b', 'c'])
    hold('other', 'b')
    const found = missing()
    expect(found).to.deep.equal(['a', 'c'])
    groups.update('other', [resource('b', 20)])
    expect(missing()).to.equal(found)
    hold('other', 'b', 'c')
    expect(missing()).to.deep.equal(['a'])
    hold('group', 'b', 'd')
    expect(missing()).to.deep.equal(['d'])
    groups.retire('other')
    expect(missing()).to.deep.equal(['b', 'd'])
  })

  it('keep writers equal to the store over any changes, and free unused slabs', () => {
    const step = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: 0, max: 3 })), { maxLength: 5 })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const slabs = new SlabStore()
        const groups = new GroupStore(slabs, new KeyedSums('key'))
        const group = new Group('g', { sums: new KeyedSums('key'), serial: () => 1 })
        const held = new Map<number, Buffer>()
        for (const wanted of steps) {
          groups.replace(
            'g',
            wanted.map(([name, size]) => resource(name, size * 100)),
          )
          const seen = follow(slabs, group, held, groups.takeUpdates())
          const truth = new Map<string, string>()
          for (const [name, size] of wanted) if (!truth.has(name)) truth.set(name, resource(name, size * 100).version)
          expect(seen).to.deep.equal(Object.fromEntries([...truth].sort()))
          expect(held.size).to.equal(slabs.usage().slabs)
        }
        groups.retire('g')
        groups.takeUpdates()
        expect(slabs.usage()).to.deep.equal({ bytes: 0, live: 0, slabs: 0 })
      }),
      { numRuns: runs(200) },
    )
  })

  it('publish moved bytes under the same version', () => {
    const slabs = new SlabStore()
    const groups = new GroupStore(slabs, new KeyedSums('key'))
    groups.replace('g', [resource('big', 5000), resource('small', 10)])
    const [first] = groups.takeUpdates()
    groups.replace('g', [resource('small', 10)])
    const [second] = groups.takeUpdates()
    expect(second?.changed.map((data) => data.name)).to.deep.equal(['small'])
    expect(second?.changed[0]?.version).to.equal(first?.changed.find((data) => data.name === 'small')?.version)
    expect(slabs.usage().bytes).to.be.lessThan(500)
  })

  it('return a group as a whole as its patches left it', () => {
    const slabs = new SlabStore()
    const groups = new GroupStore(slabs, new KeyedSums('key'))
    expect(groups.wholeUpdate('g')).to.equal(undefined)
    groups.replace('g', [resource('leaves'), resource('stays')])
    groups.takeUpdates()
    groups.replace('g', [resource('stays'), resource('new')], 2000)
    const [patch] = groups.takeUpdates()
    const { changed = [], ...whole } = groups.wholeUpdate('g') ?? {}
    expect(changed.map(({ name }) => name)).to.deep.equal(['leaves', 'stays', 'new'])
    expect(whole).to.deep.equal({ group: 'g', base: 0, sequence: patch?.sequence, version: patch?.version, removed: [], leaving: ['leaves'] })
    expect(changed.every(({ slices }) => slabs.data(slices[0] as number)?.bytes)).to.equal(true)
  })
})
