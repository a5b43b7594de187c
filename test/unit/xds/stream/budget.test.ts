import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { NodeSchema } from '../../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { GroupStore } from '../../../../src/xds/slab/group-store.ts'
import { encodeResource } from '../../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { textField } from '../../../../src/xds/slab/wire.ts'
import { BudgetExceeded, ConnectionBudget, memoryOf, memoryOfData } from '../../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import { readNodeBytes } from '../../../../src/xds/stream/node.ts'
import { Plans } from '../../../../src/xds/stream/plans.ts'
import { readDeltaRequest, readSotwRequest } from '../../../../src/xds/stream/request.ts'
import { XdsSession } from '../../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { endpointType, routeType, secretType } from '../../../../src/xds/type-urls.ts'
import { slabsOf } from '../../../harness/slabs.ts'
import { wholeGroups } from '../../../harness/uses.ts'

const list = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}|${index}|a.name.of.about.sixty.bytes.svc.cluster.local`)
const known = list(2200, 'outbound')

/** A configuration with the endpoints of known names, and the state its sessions share. */
class World {
  readonly catalog = new Catalog(new KeyedSums('key'))
  readonly slabs = new SlabStore()
  readonly groups = new GroupStore(this.slabs, new KeyedSums('key'))
  readonly parts = {
    catalog: this.catalog,
    plans: new Plans(this.catalog, { enabled: true, size: 0 }),
    subscriptions: new Subscriptions(),
    flowControlTimeoutMs: undefined,
    nonce: () => 'n',
    held: () => undefined,
  }

  constructor() {
    this.set(known)
  }

  set(names: readonly string[]): void {
    const assignment = (name: string) => encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name }), name)
    this.groups.replace('g', names.map(assignment))
    const groups = this.groups.takeUpdates()
    const manifests = [{ classId: 'class', groups: { [endpointType]: wholeGroups('g') } }]
    this.catalog.apply({
      slabs: slabsOf(groups, (id) => this.slabs.data(id)),
      retiredSlabs: [],
      groups,
      retiredGroups: [],
      manifests,
      retiredClasses: [],
      whole: false,
    })
  }

  stream(delta = false, budget = new ConnectionBudget()): XdsSession {
    const session = new XdsSession(delta, this.parts, budget)
    session.classId = 'class'
    return session
  }
}

function ask(session: XdsSession, names: readonly string[], { typeUrl = endpointType, version = '', nonce = '' } = {}): void {
  if (session.delta) {
    const initialResourceVersions: Record<string, string> = version === '' ? {} : { x: version }
    const message = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe: [...names], initialResourceVersions })
    session.takeDelta(readDeltaRequest(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message))), 0)
  } else {
    const message = create(DiscoveryRequestSchema, { typeUrl, resourceNames: [...names], versionInfo: version, responseNonce: nonce })
    session.takeSotw(readSotwRequest(Buffer.from(toBinary(DiscoveryRequestSchema, message))), 0)
  }
}

describe('subscribed names that do not exist', () => {
  it('are looked up once for all classes with the same groups, and again after a group changed', () => {
    const world = new World()
    const manifests = [{ classId: 'other', groups: { [endpointType]: wholeGroups('g') } }]
    world.catalog.apply({ slabs: [], retiredSlabs: [], groups: [], retiredGroups: [], manifests, retiredClasses: [], whole: false })
    const subscription = { id: 7, wildcard: false, names: new Set([...known, 'new']) }
    const missing = (classId: string) => world.parts.plans.missing(subscription, world.catalog.typeState(classId, endpointType))
    const first = missing('class')
    expect(first).to.deep.equal(['new'])
    expect(missing('other')).to.equal(first)
    world.set([...known, 'new'])
    expect([missing('class'), missing('other')]).to.deep.equal([[], []])
    world.set(known)
    expect(missing('class')).to.deep.equal(['new'])
  })
})

describe('subscribed names of a stream', () => {
  for (const delta of [false, true]) {
    const variant = delta ? 'delta' : 'state of the world'
    it(`${variant}: are not limited if they exist, others to 64 KiB`, () => {
      const session = new World().stream(delta)
      ask(session, known)
      ask(session, delta ? list(500, 'made-up') : [...known, ...list(500, 'made-up')])
      expect(session.next(0)?.plan.count).to.be.greaterThan(0)
      expect(() => ask(session, list(800, 'more'), { typeUrl: routeType })).to.throw(BudgetExceeded, 'that do not exist, at most 65536')
    })

    it(`${variant}: of secrets have a limit of their own, 256 KiB`, () => {
      const session = new World().stream(delta)
      ask(session, list(4000, 'site'), { typeUrl: secretType })
      session.next(0)
      expect(() => ask(session, list(6000, 'page'), { typeUrl: secretType, nonce: session.watches.get(secretType)?.nonce ?? '' })).to.throw(
        BudgetExceeded,
        'names of secrets',
      )
    })

    it(`${variant}: that arrived before the class was known are counted once it is known`, () => {
      const session = new World().stream(delta)
      session.classId = ''
      ask(session, list(2000, 'made-up'))
      session.classId = 'class'
      expect(() => session.next(0)).to.throw(BudgetExceeded)
      const early = new World().stream(delta)
      early.classId = ''
      ask(early, known)
      early.classId = 'class'
      expect(early.next(0)?.plan.count).to.equal(2200)
    })

    it(`${variant}: that were removed meanwhile do not end a reconnecting proxy`, () => {
      const session = new World().stream(delta)
      ask(session, [...known.slice(0, 10), ...list(2000, 'gone')], { version: 'v' })
      expect(session.next(0)?.plan.count).to.be.greaterThan(9)
      expect(session.watches.get(endpointType)?.subscription.names.size).to.equal(10)
      expect(() => ask(session, list(2000, 'made-up'), { nonce: 'n' })).to.throw(BudgetExceeded)
    })
  }

  it('do not count if they are removed after they were subscribed', () => {
    const world = new World()
    const session = world.stream()
    ask(session, known)
    session.next(0)
    world.set(known.slice(0, 5))
    ask(session, [...known, 'one more'], { nonce: 'n' })
    expect(session.watches.get(endpointType)?.subscription.names.size).to.equal(2201)
  })

  it('repeated by an ACK are compared with the previous list of the type, and parsed only if it differs', () => {
    const { subscriptions } = new World().parts
    const raw = (prefix: string, count: number) =>
      readSotwRequest(Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: list(count, prefix) })))).rawNames
    const first = subscriptions.asked(raw('one', 2200))
    for (let index = 0; index < 120; index++) subscriptions.asked(raw(`other-${index}`, 2200))
    // Nothing else keeps it any more.
    expect(subscriptions.asked(raw('one', 2200))).not.to.equal(first)
    expect(subscriptions.asked(raw('one', 2200), first)).to.equal(first)
    expect(subscriptions.asked(raw('two', 2200), first).subscription.names.has(list(1, 'two')[0] as string)).to.equal(true)
    const short = subscriptions.asked(raw('one', 2))
    expect(subscriptions.asked(raw('one', 2), short)).to.equal(short)
  })

  it('are one shared subscription for all streams with the same names, whatever order and requests led to it', () => {
    const world = new World()
    const [one, other] = [world.stream(), world.stream(true)]
    ask(one, known)
    ask(other, [...known].reverse().slice(100))
    ask(other, [...known].reverse().slice(0, 100))
    expect(one.watches.get(endpointType)?.subscription).to.equal(other.watches.get(endpointType)?.subscription)
  })

  it('of many kinds of streams are shared within each kind, although more lists are in use than are remembered', () => {
    const { subscriptions } = new World().parts
    const listOf = (kind: number) => Buffer.concat([...list(6000, 'outbound'), `own-${kind}`].map((name) => textField(3, name)))
    const kinds = Array.from({ length: 40 }, (_, kind) => subscriptions.asked(listOf(kind)).subscription)
    expect(new Set(kinds).size).to.equal(40)
    for (const [kind, subscription] of kinds.entries()) {
      expect(subscriptions.asked(listOf(kind)).subscription).to.equal(subscription)
      const reversed = Buffer.concat([`own-${kind}`, ...list(6000, 'outbound').reverse()].map((name) => textField(3, name)))
      expect(subscriptions.asked(reversed).subscription).to.equal(subscription)
    }
  })

  describe('memory limits for data of a client', () => {
    const open = (session: XdsSession, typeUrl: string, names: string[], initialResourceVersions: Record<string, string>) => {
      const message = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe: names, initialResourceVersions })
      session.takeDelta(readDeltaRequest(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message))), 0)
    }
    const versions = (names: readonly string[], version = 'v') => Object.fromEntries(names.map((name) => [name, version]))
    const short = (count: number, prefix: string) => versions(Array.from({ length: count }, (_, index) => prefix + index.toString(36)))

    it('include initial resource versions only of subscribed names', () => {
      const budget = new ConnectionBudget()
      const session = new World().stream(true, budget)
      open(session, secretType, [], versions(list(3000, 'a')))
      expect(session.watches.get(secretType)?.initialVersions).to.equal(undefined)
      expect(budget.versions.taken).to.equal(0)
    })

    it('count initial resource versions by their memory, over all streams of a connection', () => {
      const budget = new ConnectionBudget()
      const world = new World()
      const [one, other] = [world.stream(true, budget), world.stream(true, budget)]
      open(one, 'one', ['*'], short(75_000, 'b'))
      expect(budget.versions.taken).to.be.within(75_000 * 100, 75_000 * 108)
      open(other, 'two', ['*'], short(75_000, 'c'))
      const exceeded = 'initial_resource_versions: more than 16777216 bytes in memory before they are answered on one connection'
      expect(() => open(world.stream(true, budget), 'three', ['*'], short(20_000, 'd'))).to.throw(BudgetExceeded, exceeded)
      // Another connection has a budget of its own.
      open(world.stream(true), 'three', ['*'], short(20_000, 'd'))
    })

    it('count initial resource versions until the first response is made or the stream ends', () => {
      const budget = new ConnectionBudget()
      const world = new World()
      const session = world.stream(true, budget)
      open(session, endpointType, ['*'], versions(known))
      expect(budget.versions.taken).to.equal(known.reduce((sum, name) => sum + memoryOf(name, 'v'), 0))
      expect(session.next(0)?.plan.count).to.equal(known.length)
      expect(budget.versions.taken).to.equal(0)
      session.close()
      expect(budget.versions.taken).to.equal(0)
      const other = world.stream(true, budget)
      open(other, endpointType, ['*'], versions(known))
      other.close()
      other.close()
      expect(budget.versions.taken).to.equal(0)
    })

    it('allow a sidecar with 20,000 resources of two types to resume', () => {
      const session = new World().stream(true)
      for (const typeUrl of ['one', 'two']) open(session, typeUrl, ['*'], versions(list(20_000, 'outbound'), '0123456789abcdef'))
      expect(session.watches.get('two')?.initialVersions?.size).to.equal(20_000)
    })
  })

  it('count subscribed names by their memory until the class is known', () => {
    const session = new World().stream(true)
    session.classId = ''
    const names = Array.from({ length: 90_000 }, (_, index) => index.toString(36))
    expect(() => ask(session, names)).to.throw(BudgetExceeded, 'resource names: more than 8388608 bytes at once')
    const usual = new World().stream(true)
    usual.classId = ''
    expect(() => ask(usual, list(20_000, 'outbound'))).not.to.throw()
  })

  it('count structured data by its memory, however short its parts are', () => {
    expect(memoryOfData('x'.repeat(1000))).to.be.within(1000, 1100)
    expect(memoryOfData(Array.from({ length: 1000 }, () => null))).to.be.greaterThan(40_000)
    expect(memoryOfData(Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [index.toString(36), ''])))).to.be.greaterThan(100_000)
    expect(memoryOfData({ a: { b: ['cd', 1, undefined] } })).to.equal(8 * 50 + 4)
  })

  it('restrict the size of node, type URL and error detail', () => {
    const node = (fields: object) => Buffer.from(toBinary(NodeSchema, create(NodeSchema, { id: 'a', ...fields })))
    expect(() => readNodeBytes(node({ metadata: { x: 'x'.repeat(65_000) } }))).not.to.throw()
    expect(() => readNodeBytes(node({ metadata: { x: 'x'.repeat(66_000) } }))).to.throw('node: metadata makes it larger than 65536 bytes')
    const extensions = Array.from({ length: 2000 }, (_, index) => ({ name: `envoy.extensions.with.a.name.of.their.own.${index}` }))
    expect(readNodeBytes(node({ extensions })).id).to.equal('a')
    const request = (fields: object) => Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, fields)))
    expect(() => readSotwRequest(request({ typeUrl: 't'.repeat(513) }))).to.throw('type_url is longer than 512 bytes')
    expect(readSotwRequest(request({ errorDetail: { message: 'x'.repeat(10_000) } })).error?.message).to.have.length(4096)
  })
})
