/**
 * Proxies that stay connected through random changes must end with the same resources as a new proxy of a planner that saw only the final
 * state.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { PushContent } from '../../../protocols/messages/push.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Planner } from '../../../src/push/planner.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { CompletePushes } from '../../harness/received.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'
import { SimulatedProxy, stateOf } from '../../harness/simulated-proxy.ts'

const planner = () => new Planner(testSettings())

function object(kind: string, name: string, spec: string): ConfigObject {
  const text = `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
  const { objects, faults } = parseConfigFile('f.yaml', text, names)
  if (!objects[0]) throw new Error(JSON.stringify(faults))
  return objects[0]
}

const node: ProxyNode = {
  id: 'sidecar~10.1.0.1~p.ns~ns.svc.cluster.local',
  type: 'sidecar',
  addresses: ['10.1.0.1'],
  namespace: 'ns',
  domain: 'ns.svc.cluster.local',
  version: undefined,
  labels: {},
  network: '',
  clusterId: '',
  locality: '',
  takesVirtualHosts: false,
  metadata: {},
}

const host = (name: string) => `${name}.ns.svc.cluster.local`
const arbitraryService = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c'),
    port: fc.constantFrom(80, 81),
    last: fc.integer({ min: 1, max: 4 }),
    own: fc.constantFrom('', '8080', '9090'),
  })
  .map(({ name, port, last, own }) =>
    object(
      'ServiceEntry',
      name,
      `{hosts: [${host(name)}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 10.0.0.${last}, labels: {v: "${last}"}}${own === '' ? '' : `, {address: 10.1.0.1, ports: {http: ${own}}, labels: {v: "${last}"}}`}]}`,
    ),
  )
const policies = [
  '',
  ', trafficPolicy: {connectionPool: {tcp: {idleTimeout: 5s}}}',
  ', trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}}',
]
const arbitraryRule = fc
  .record({ name: fc.constantFrom('a', 'b', 't'), subset: fc.constantFrom('1', '2'), policy: fc.constantFrom(...policies) })
  .map(({ name, subset, policy }) =>
    object('DestinationRule', name, `{host: ${host(name)}${policy}, subsets: [{name: s${subset}, labels: {v: "${subset}"}}]}`),
  )
const bytes = object(
  'ServiceEntry',
  't',
  `{hosts: [${host('t')}], addresses: [240.0.0.1], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 82, name: tcp}], endpoints: [{address: 10.0.0.9}]}`,
)
const arbitraryRoute = fc
  .record({ name: fc.constantFrom('a', 'b'), to: fc.constantFrom('a', 'c'), timeout: fc.constantFrom('1s', '2s') })
  .map(({ name, to, timeout }) =>
    object(
      'VirtualService',
      name,
      `{hosts: [${host(name)}], http: [{timeout: ${timeout}, route: [{destination: {host: ${host(to)}, port: {number: 80}}}]}]}`,
    ),
  )
const arbitrarySidecar = fc
  .constantFrom('./a.ns.svc.cluster.local', './*', '*/*')
  .map((scope) => object('Sidecar', 'default', `{egress: [{hosts: ["${scope}"]}]}`))

const arbitraryFilter = fc
  .constantFrom('1s', '2s')
  .map((timeout) =>
    object(
      'EnvoyFilter',
      'f',
      `{configPatches: [{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {connect_timeout: ${timeout}}}}]}`,
    ),
  )
const selected = object(
  'ServiceEntry',
  'w',
  `{hosts: [${host('w')}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: w}}}`,
)
const arbitraryWorkload = fc
  .record({ name: fc.constantFrom('w1', 'w2'), last: fc.integer({ min: 1, max: 3 }) })
  .map(({ name, last }) => object('WorkloadEntry', name, `{address: 10.2.0.${last}, labels: {app: w}}`))

/** The changes, in order. The booleans decide what else happens in the step. */
const arbitraryStep = fc.record({
  object: fc.oneof(
    { weight: 4, arbitrary: arbitraryService },
    arbitraryRule,
    arbitraryRoute,
    arbitrarySidecar,
    arbitraryFilter,
    arbitraryWorkload,
    fc.constant(selected),
    fc.constant(bytes),
  ),
  removed: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
  twice: fc.boolean(),
  pushed: fc.boolean(),
  swept: fc.boolean(),
  delivered: fc.boolean(),
  answered: fc.boolean(),
  /** The proxies that neither read nor acknowledge during the step. */
  lagging: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  /** An action of one of the proxies. */
  act: fc.oneof(
    { weight: 6, arbitrary: fc.constant('nothing' as const) },
    fc.constantFrom('comes back', 'comes back with nothing', 'forgets endpoints', 'remembers endpoints'),
  ),
  actor: fc.nat({ max: 2 }),
  /** How often the object is removed and added again, each time in a push of its own. */
  storm: fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, fc.constant(70)),
})

/** Planner, catalog and three streams of the same proxy, with pushes in flight between planner and catalog. */
class World {
  readonly planner = planner()
  readonly catalog = new Catalog(new KeyedSums('of a test'))
  readonly #pushes = new CompletePushes(this.planner)
  readonly #onTheWay: PushContent[] = []
  #nonce = 0
  now = 1000
  readonly proxies = (['sotw', 'delta', 'hosts'] as const).map((kind) => new SimulatedProxy(kind, this.catalog, () => `n${++this.#nonce}`))

  connect(): void {
    for (const proxy of this.proxies) this.#connect(proxy)
  }

  #connect(proxy: SimulatedProxy): void {
    proxy.connect()
    this.planner.connect(proxy.connection, { ...node, takesVirtualHosts: proxy.kind === 'hosts' })
    proxy.start()
    this.#onTheWay.push(this.#pushes.take())
  }

  /** A proxy reconnects: with its resources, or as a new process without any. */
  reconnect(proxy: SimulatedProxy, empty: boolean): void {
    this.planner.disconnect(proxy.connection)
    if (empty) proxy.lose()
    this.#connect(proxy)
  }

  /** Pushes the changes. Lingering resources, if swept, are removed in a push of their own. */
  push(sweep: boolean): void {
    this.planner.advance()
    this.#onTheWay.push(this.#pushes.take())
    if (!sweep) return
    this.planner.sweep()
    this.#onTheWay.push(this.#pushes.take())
  }

  deliver(): void {
    for (const push of this.#onTheWay.splice(0)) {
      this.catalog.apply(push)
      for (const { connection, classId } of push.assignments)
        for (const proxy of this.proxies) if (proxy.connection === connection) proxy.session.classId = classId
    }
  }

  send(lagging: readonly boolean[] = []): void {
    for (const [index, proxy] of this.proxies.entries()) while (!lagging[index] && proxy.receive(this.now)) this.now++
  }

  answer(lagging: readonly boolean[] = []): void {
    for (const [index, proxy] of this.proxies.entries()) if (!lagging[index]) proxy.answer(this.now)
  }

  /** Delivers, sends and acknowledges until nothing is pending. */
  settle(): void {
    this.push(true)
    for (const proxy of this.proxies) proxy.remember(this.now)
    for (let round = 0; round < 20; round++) {
      this.deliver()
      this.send()
      this.answer()
      this.now += 10_000
    }
  }
}

/** Returns the virtual hosts by route, inline or from VHDS. */
function routesOf({ held }: SimulatedProxy): Record<string, string[]> {
  const hosts = [...(held.get(virtualHostType) ?? [])]
  return Object.fromEntries(
    [...(held.get(routeType) ?? [])].sort().map(([name, value]) => {
      const inline = fromBinary(RouteConfigurationSchema, Buffer.from(value, 'base64')).virtualHosts
      const alone = hosts
        .filter(([host]) => host.startsWith(`${name}/`))
        .map(([host, bytes]) => ({ ...fromBinary(VirtualHostSchema, Buffer.from(bytes, 'base64')), name: host.slice(name.length + 1) }))
      // Equal messages may have their fields in a different order.
      return [name, [...inline, ...alone].map((host) => Buffer.from(toBinary(VirtualHostSchema, host)).toString('base64')).sort()]
    }),
  )
}

describe('SotW, delta and VHDS streams', () => {
  it('end with the resources of a new proxy, whatever order, merging, repetition and delay the changes had', () => {
    fc.assert(
      fc.property(fc.array(arbitraryStep, { minLength: 1, maxLength: 25 }), (steps) => {
        const world = new World()
        world.connect()
        const last = new Map<string, ConfigObject | undefined>()
        for (const step of steps) {
          const proxy = world.proxies[step.actor] as SimulatedProxy
          if (step.act === 'comes back' || step.act === 'comes back with nothing') world.reconnect(proxy, step.act !== 'comes back')
          if (step.act === 'forgets endpoints') proxy.forget(world.now)
          if (step.act === 'remembers endpoints') proxy.remember(world.now)
          const key = configKey(step.object)
          for (let time = 0; time < step.storm; time++) {
            world.planner.state.setConfig(key, time % 2 === 0 ? undefined : step.object)
            world.push(true)
            world.deliver()
          }
          const next = step.removed ? undefined : step.object
          last.set(key, next)
          for (let time = 0; time < (step.twice ? 2 : 1); time++) world.planner.state.setConfig(key, next)
          if (step.pushed) world.push(step.swept)
          if (step.delivered) world.deliver()
          if (step.delivered) world.send(step.lagging)
          if (step.answered) world.answer(step.lagging)
          world.now += 50
        }
        world.settle()
        const fresh = new World()
        for (const [key, value] of last) fresh.planner.state.setConfig(key, value)
        fresh.planner.advance()
        fresh.connect()
        fresh.settle()
        const [sotw, delta, hosts] = world.proxies.map(stateOf)
        const [wanted, wantedDelta, wantedHosts] = fresh.proxies.map(stateOf)
        expect(wantedDelta).to.deep.equal(wanted)
        expect(hosts).to.deep.equal(wantedHosts)
        expect(routesOf(world.proxies[2] as SimulatedProxy)).to.deep.equal(routesOf(world.proxies[1] as SimulatedProxy))
        expect(sotw).to.deep.equal(wanted)
        expect(delta).to.deep.equal(wanted)
      }),
      { numRuns: runs(400) },
    )
  })
})
