/**
 * Proxies that stay connected through random changes must end with the same resources as a new proxy of a planner that saw only the final
 * state.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import { Cluster_DiscoveryType, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { PushContent } from '../../../protocols/messages/push.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Planner } from '../../../src/push/planner.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { scanFields } from '../../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { responseFrame } from '../../../src/xds/stream/frames.ts'
import { Plans } from '../../../src/xds/stream/plans.ts'
import { XdsSession } from '../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../src/xds/stream/subscription.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { CompletePushes } from '../../harness/received.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

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

/** A proxy with a SotW stream, with a delta stream, or with a delta stream that uses VHDS. */
class SimulatedProxy {
  readonly kind: 'sotw' | 'delta' | 'hosts'
  session: XdsSession
  connection = ''
  readonly held = new Map<string, Map<string, string>>(
    [clusterType, endpointType, listenerType, routeType, virtualHostType].map((type) => [type, new Map()]),
  )
  readonly #open: () => XdsSession
  readonly #versions = new Map<string, Map<string, string>>([...this.held.keys()].map((type) => [type, new Map()]))
  #answers: { typeUrl: string; nonce: string }[] = []
  readonly #nonces = new Map<string, string>()
  /** The load assignments that its clusters refer to, those it subscribed to, and those it does not want for now. */
  #endpoints: readonly string[] = []
  #asked = new Set<string>()
  readonly #forgotten = new Set<string>()
  readonly #everHad = new Set<string>()
  #connections = 0

  #routes: readonly string[] = ['80', '81']

  constructor(kind: SimulatedProxy['kind'], catalog: Catalog, nonce: () => string) {
    this.kind = kind
    if (kind === 'hosts') this.#routes = []
    const plans = new Plans(catalog, { enabled: true, size: 100 })
    const parts = {
      catalog,
      plans,
      subscriptions: new Subscriptions(),
      flowControlTimeoutMs: undefined,
      nonce,
      held: () => undefined,
    }
    this.#open = () => new XdsSession(kind !== 'sotw', parts, new ConnectionBudget())
    this.session = this.#open()
  }

  /** Opens a new stream. */
  connect(): void {
    this.session = this.#open()
    this.connection = `${this.kind}-${++this.#connections}`
    this.#nonces.clear()
    this.#answers = []
    this.#asked.clear()
  }

  /** Drops all resources, like a new process. */
  lose(): void {
    for (const held of [...this.held.values(), ...this.#versions.values()]) held.clear()
    this.#everHad.clear()
    this.#endpoints = []
    this.#forgotten.clear()
  }

  start(): void {
    this.#ask(clusterType, '', [], [], 0)
    this.#ask(listenerType, '', [], [], 0)
    if (this.#routes.length > 0) this.#ask(routeType, '', this.#routes, [], 0)
    // Envoy subscribes to virtual hosts before routes when it reconnects without a route.
    if (this.kind === 'hosts') this.#ask(virtualHostType, '', [], [], 0)
    this.#follow(0)
  }

  /** Receives the next response. Returns whether there was one. */
  receive(now: number): boolean {
    const response = this.session.classId === '' ? undefined : this.session.next(now)
    if (!response) return false
    const { delta } = this.session
    const message = Buffer.concat(responseFrame(response, delta)).subarray(5)
    const decoded = delta ? fromBinary(DeltaDiscoveryResponseSchema, message) : fromBinary(DiscoveryResponseSchema, message)
    const values = decoded.resources.map((resource) =>
      Buffer.from('resource' in resource ? (resource.resource?.value ?? []) : (resource as { value: Uint8Array }).value),
    )
    const held = this.held.get(decoded.typeUrl) as Map<string, string>
    const versions = this.#versions.get(decoded.typeUrl) as Map<string, string>
    if (!delta && (decoded.typeUrl === clusterType || decoded.typeUrl === listenerType)) held.clear()
    values.forEach((value, index) => {
      const { name, version } = decoded.resources[index] as { name?: string; version?: string }
      // Envoy ignores virtual hosts of a route that it never had, and keeps using a route that is removed.
      if (decoded.typeUrl === virtualHostType && !this.#everHad.has(String(name).split('/')[0] as string)) return
      if (decoded.typeUrl === routeType) this.#everHad.add(String(name))
      // Envoy finds a virtual host that is removed by the name in its message.
      const key =
        decoded.typeUrl === virtualHostType ? fromBinary(VirtualHostSchema, value).name : (name ?? [...scanFields(value)][0]?.bytes?.toString() ?? '')
      // Envoy ignores load assignments that it did not subscribe to.
      if (decoded.typeUrl === endpointType && !this.#asked.has(key)) return
      held.set(key, value.toString('base64'))
      if (version !== undefined) versions.set(key, version)
    })
    if ('removedResources' in decoded)
      for (const name of decoded.removedResources) {
        held.delete(name)
        versions.delete(name)
      }
    this.#nonces.set(decoded.typeUrl, decoded.nonce)
    this.#answers.push({ typeUrl: decoded.typeUrl, nonce: decoded.nonce })
    return true
  }

  /** Acknowledges the responses and subscribes to the endpoints of the present clusters. */
  answer(now: number): void {
    for (const { typeUrl, nonce } of this.#answers.splice(0)) {
      this.#ask(typeUrl, nonce, typeUrl === endpointType ? [...this.#asked] : typeUrl === routeType ? this.#routes : [], [], now)
      if ((typeUrl === listenerType || typeUrl === routeType) && this.#routes.length < 2) {
        const added = this.#routes.length === 0 ? '80' : '81'
        this.#routes = [...this.#routes, added]
        this.#ask(routeType, '', [added], [], now)
      }
      if (typeUrl === clusterType) this.#follow(now)
    }
  }

  /** Unsubscribes from the endpoints of a cluster that still exists. */
  forget(now: number): void {
    const [name] = this.#asked
    if (name === undefined) return
    this.#forgotten.add(name)
    this.#follow(now)
  }

  /** Subscribes again to the endpoints that it unsubscribed from. */
  remember(now: number): void {
    this.#forgotten.clear()
    this.#follow(now)
  }

  /** Subscribes to the endpoints that it wants, and unsubscribes from the others. */
  #follow(now: number): void {
    this.#endpoints = [...(this.held.get(clusterType)?.values() ?? [])].flatMap((value) => {
      const cluster = fromBinary(ClusterSchema, Buffer.from(value, 'base64'))
      return cluster.clusterDiscoveryType.value === Cluster_DiscoveryType.EDS ? [cluster.edsClusterConfig?.serviceName || cluster.name] : []
    })
    const before = this.#asked
    this.#asked = new Set(this.#endpoints.filter((name) => !this.#forgotten.has(name)))
    const added = [...this.#asked].filter((name) => !before.has(name))
    const gone = [...before].filter((name) => !this.#asked.has(name))
    for (const name of this.held.get(endpointType)?.keys() ?? []) {
      if (this.#asked.has(name)) continue
      this.held.get(endpointType)?.delete(name)
      this.#versions.get(endpointType)?.delete(name)
    }
    if (added.length + gone.length === 0) return
    const { delta } = this.session
    this.#ask(endpointType, delta ? '' : (this.#nonces.get(endpointType) ?? ''), delta ? added : [...this.#asked], gone, now)
  }

  #ask(typeUrl: string, nonce: string, wanted: readonly string[], unsubscribe: readonly string[], now: number): void {
    const raw = (names: readonly string[]) =>
      Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: [...names] })))
    const head = { node: undefined, typeUrl, nonce, error: undefined }
    // A SotW request lists all names each time. A delta request lists only new ones, and an ACK none.
    if (!this.session.delta) {
      this.session.takeSotw({ ...head, hasVersion: (this.held.get(typeUrl)?.size ?? 0) > 0, rawNames: raw(wanted) }, now)
      return
    }
    const first = !this.session.watches.has(typeUrl)
    const initialVersions = new Map(first ? this.#versions.get(typeUrl) : [])
    this.session.takeDelta({ ...head, rawSubscribe: raw(nonce === '' ? wanted : []), unsubscribe, initialVersions }, now)
  }
}

/**
 * Returns the resources by type and name. A removed name of delta corresponds in SotW to a resource that has only its name. The order of the
 * virtual hosts of a route means nothing and is no part of its version, so they are sorted.
 */
const stateOf = ({ held }: SimulatedProxy) =>
  Object.fromEntries(
    [...held].map(([type, resources]) => {
      const present = [...resources].sort().filter(([, value]) => [...scanFields(Buffer.from(value, 'base64'))].length > 1)
      return [type, Object.fromEntries(type === routeType ? present.map(([name, value]) => [name, sortedHosts(value)]) : present)]
    }),
  )

function sortedHosts(value: string): string {
  const route = fromBinary(RouteConfigurationSchema, Buffer.from(value, 'base64'))
  route.virtualHosts.sort((one, other) => (one.name < other.name ? -1 : 1))
  return Buffer.from(toBinary(RouteConfigurationSchema, route)).toString('base64')
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
