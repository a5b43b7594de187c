import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { NodeSchema } from '../../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { BudgetExceeded, UnknownNames } from '../../../../src/xds/session/budget.ts'
import { Catalog } from '../../../../src/xds/session/catalog.ts'
import { readNodeBytes } from '../../../../src/xds/session/node.ts'
import { Plans } from '../../../../src/xds/session/plans.ts'
import { readDeltaRequest, readSotwRequest } from '../../../../src/xds/session/request.ts'
import { XdsSession } from '../../../../src/xds/session/session.ts'
import { Subscriptions } from '../../../../src/xds/session/subscription.ts'
import { GroupStore } from '../../../../src/xds/slab/group-store.ts'
import { encodeResource } from '../../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { endpointType, secretType } from '../../../../src/xds/type-urls.ts'

const none = Buffer.alloc(0)
const list = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}|${index}|a.name.of.about.sixty.bytes.svc.cluster.local`)
const known = list(2200, 'outbound')

/** A configuration with the endpoints of known names, and what its sessions share. */
class World {
  readonly catalog = new Catalog()
  readonly slabs = new SlabStore()
  readonly groups = new GroupStore(this.slabs, new KeyedSums('key'))
  readonly parts = {
    catalog: this.catalog,
    plans: new Plans(this.catalog, { enabled: true, size: 0 }),
    subscriptions: new Subscriptions(),
    unknownNames: new UnknownNames(),
    flowControl: undefined,
    nonce: () => 'n',
    held: () => undefined,
  }

  constructor() {
    this.set(known)
  }

  set(names: readonly string[]): void {
    const assignment = (name: string) => encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name }), name)
    this.groups.replace('g', names.map(assignment))
    const { patches } = this.groups.takePatches()
    const manifests = [{ classId: 'class', groups: { [endpointType]: ['g'] } }]
    this.catalog.apply({
      slabs: this.slabs.takeFresh(),
      retiredSlabs: [],
      groups: patches,
      retiredGroups: [],
      manifests,
      retiredClasses: [],
      whole: false,
    })
  }

  stream(delta = false): XdsSession {
    const session = new XdsSession(delta, this.parts)
    session.classId = 'class'
    return session
  }
}

function ask(session: XdsSession, names: readonly string[], { typeUrl = endpointType, version = '', nonce = '' } = {}): void {
  if (session.delta) {
    const initialResourceVersions: Record<string, string> = version === '' ? {} : { x: version }
    const message = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe: [...names], initialResourceVersions })
    session.takeDelta(readDeltaRequest(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message)), none), 0)
  } else {
    const message = create(DiscoveryRequestSchema, { typeUrl, resourceNames: [...names], versionInfo: version, responseNonce: nonce })
    session.takeSotw(readSotwRequest(Buffer.from(toBinary(DiscoveryRequestSchema, message)), none), 0)
  }
}

describe('budgets of a stream', () => {
  for (const delta of [false, true]) {
    const variant = delta ? 'delta' : 'state of the world'
    it(`${variant}: names that exist cost nothing, others 64 KiB at most`, () => {
      const session = new World().stream(delta)
      ask(session, known)
      ask(session, delta ? list(500, 'made-up') : [...known, ...list(500, 'made-up')])
      expect(session.next(0)?.plan.count).to.be.greaterThan(0)
      expect(() => ask(session, list(800, 'more'), { typeUrl: secretType })).to.throw(BudgetExceeded, 'that do not exist, at most 65536')
    })

    it(`${variant}: names given before the class is known are counted when it is`, () => {
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

    it(`${variant}: a proxy that comes back is not ended for names that went meanwhile`, () => {
      const session = new World().stream(delta)
      ask(session, [...known.slice(0, 10), ...list(2000, 'gone')], { version: 'v' })
      expect(session.next(0)?.plan.count).to.be.greaterThan(9)
      expect(session.watches.get(endpointType)?.subscription.names.size).to.equal(10)
      expect(() => ask(session, list(2000, 'made-up'), { nonce: 'n' })).to.throw(BudgetExceeded)
    })
  }

  it('names that go after they were asked for do not count', () => {
    const world = new World()
    const session = world.stream()
    ask(session, known)
    session.next(0)
    world.set(known.slice(0, 5))
    ask(session, [...known, 'one more'], { nonce: 'n' })
    expect(session.watches.get(endpointType)?.subscription.names.size).to.equal(2201)
  })

  it('streams that ask for the same share one subscription, whatever the order and the way to it', () => {
    const world = new World()
    const [one, other] = [world.stream(), world.stream(true)]
    ask(one, known)
    ask(other, [...known].reverse().slice(100))
    ask(other, [...known].reverse().slice(0, 100))
    expect(one.watches.get(endpointType)?.subscription).to.equal(other.watches.get(endpointType)?.subscription)
  })

  it('versions that a client says it has are bounded, and kept for what it asks for only', () => {
    const session = new World().stream(true)
    const versions = (count: number, prefix: string) => Object.fromEntries(list(count, prefix).map((name) => [name, 'v'.repeat(1000)]))
    const open = (typeUrl: string, names: string[], initialResourceVersions: Record<string, string>) => {
      const message = create(DeltaDiscoveryRequestSchema, { typeUrl, resourceNamesSubscribe: names, initialResourceVersions })
      session.takeDelta(readDeltaRequest(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message)), none), 0)
    }
    open(secretType, [], versions(3000, 'a'))
    expect(session.watches.get(secretType)?.initialVersions).to.equal(undefined)
    open('one', ['*'], versions(4000, 'b'))
    open('two', ['*'], versions(3500, 'c'))
    expect(() => open('three', ['*'], versions(1000, 'd'))).to.throw(BudgetExceeded, 'initial_resource_versions')
  })

  it('a node, a type and a refusal are bounded', () => {
    const node = (fields: object) => Buffer.from(toBinary(NodeSchema, create(NodeSchema, { id: 'a', ...fields })))
    expect(() => readNodeBytes(node({ metadata: { x: 'x'.repeat(65_000) } }))).not.to.throw()
    expect(() => readNodeBytes(node({ metadata: { x: 'x'.repeat(66_000) } }))).to.throw('node: metadata makes it larger than 65536 bytes')
    const extensions = Array.from({ length: 2000 }, (_, index) => ({ name: `envoy.extensions.with.a.name.of.their.own.${index}` }))
    expect(readNodeBytes(node({ extensions })).id).to.equal('a')
    const request = (fields: object) => Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, fields)))
    expect(() => readSotwRequest(request({ typeUrl: 't'.repeat(513) }), none)).to.throw('type_url is longer than 512 bytes')
    expect(readSotwRequest(request({ errorDetail: { message: 'x'.repeat(10_000) } }), none).error?.message).to.have.length(4096)
  })
})
