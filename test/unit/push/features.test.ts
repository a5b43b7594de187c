/**
 * Features in combination: networks, subsets, TLS modes, PeerAuthentication, auto mutual TLS, visibility, Sidecars, locality, headless
 * services, gateways, and pods that restart, over streams of both protocols. What proxies hold after any history is held against an oracle
 * that knows the rules only, against load assignments that are made at once, and against proxies of a fresh start.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint } from '../../../protocols/data.ts'
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { PushContent } from '../../../protocols/messages/push.ts'
import { configKey, keyAt } from '../../../src/config/kinds.ts'
import { readMeshConfig, readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { visibleRule } from '../../../src/snapshot/visibility.ts'
import { policyFor } from '../../../src/xds/clusters/traffic-policy.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { clusterType, endpointType } from '../../../src/xds/type-urls.ts'
import {
  type Caller,
  type Host,
  hosts,
  type MeshModel,
  networksOf,
  type PeerModel,
  peerDocument,
  type Registry,
  type RuleModel,
  registries,
  root,
  ruleDocument,
  type ServiceModel,
  serviceOf,
  sidecarDocument,
  slicesOf,
  type WantedCluster,
  wantedClusters,
} from '../../harness/mesh-model.ts'
import { plainAssignment } from '../../harness/plain-assignment.ts'
import { CompletePushes } from '../../harness/received.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'
import { SimulatedProxy, stateOf } from '../../harness/simulated-proxy.ts'

const host = fc.constantFrom(...(Object.keys(hosts) as Host[]))
const registry = fc.constantFrom<Registry>(...registries)
const exportTo = fc.constantFrom<readonly string[]>([], [], ['*'], ['.'], ['n1'], ['n2'], ['.', 'n1'])
const tls = fc.constantFrom('DISABLE' as const, 'MESH_MUTUAL' as const, 'SIMPLE' as const)
const mode = fc.constantFrom('STRICT' as const, 'DISABLE' as const, 'DISABLE' as const, 'UNSET' as const)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
/** Seldom a value. */
const rarely = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })
/** Mostly a value; undefined removes one. */
const mostly = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 4, arbitrary: value })

const endpoint = fc
  .record({
    block: fc.constantFrom(1, 2),
    last: fc.integer({ min: 1, max: 6 }),
    network: fc.constantFrom('', 'near', 'far', 'far', 'lonely'),
    version: fc.constantFrom('v1', 'v2'),
    tlsMode: fc.constantFrom(undefined, undefined, 'istio', 'disabled'),
    account: fc.constantFrom('', 'a', 'a'),
    locality: fc.constantFrom('', 'r1/z1/s1', 'r1/z2/s1', 'r2/z1/s1'),
    weight: fc.constantFrom(0, 1, 1, 5),
    readiness: fc.constantFrom(undefined, undefined, undefined, 'ready' as const, 'terminating' as const, 'unready' as const),
    ports: fc.constantFrom<Record<string, number>>({}, {}, { http: 9090 }, { tcp: 8080 }),
  })
  .map(
    ({ block, last, version, tlsMode, account, readiness, ...rest }): Endpoint => ({
      ...rest,
      address: `10.${block}.0.${last}`,
      labels: { version, ...(tlsMode === undefined ? {} : { 'security.mesh.io/tlsMode': tlsMode }) },
      serviceAccount: account,
      // Replaced by the namespace of the service.
      namespace: '',
      workload: `w-${last}`,
      ...(readiness ? { readiness } : {}),
    }),
  )
const service = fc.record<ServiceModel>({
  exportTo,
  kind: fc.constantFrom('virtual' as const, 'virtual' as const, 'headless' as const, 'dns' as const),
  ports: fc.constantFrom<readonly ('http' | 'tcp')[]>(['http', 'tcp'], ['http'], ['tcp']),
})
const rule = fc.record<RuleModel>({
  exportTo,
  tls: maybe(tls),
  portTls: rarely(tls),
  subsets: fc.dictionary(fc.constantFrom('v1', 'v2'), rarely(tls), { maxKeys: 2 }),
  spread: fc.constantFrom('none' as const, 'failover' as const, 'distribute' as const),
})
const peer = fc.record<PeerModel>({ mode, port: maybe(mode) })
const egress = fc.constantFrom<readonly string[]>(
  ['*/*'],
  ['./*'],
  ['n1/*'],
  ['*/c.n2.svc.cluster.local', './a.n1.svc.cluster.local'],
  ['n2/*.n2.svc.cluster.local'],
)

/** A change of the mesh. */
const change = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('slice' as const),
      host,
      registry,
      part: fc.constantFrom('1', '2', '3'),
      endpoints: mostly(fc.array(endpoint, { maxLength: 4 })),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('restart' as const), host, registry, at: fc.nat(20), endpoint }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('service' as const), host, service: mostly(service) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('rule' as const), owner: fc.constantFrom('n1', 'n2', root), host, rule: mostly(rule) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('peer' as const),
      place: fc.constantFrom(root, 'n1', 'n1 v1', 'n1 v1', 'n1 v2', 'n2'),
      peer: mostly(peer),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('sidecar' as const), owner: fc.constantFrom('n1', 'n2', root), egress: maybe(egress) }) },
  fc.record({ type: fc.constant('networks' as const), networks: fc.constantFrom<keyof typeof networksOf>('none', 'gateways', 'registry') }),
  fc.record({ type: fc.constant('mesh' as const), autoMtls: fc.boolean() }),
)
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

/** A change, and what else happens with it. */
const step = fc.record({
  change,
  pushed: fc.boolean(),
  swept: fc.boolean(),
  delivered: fc.boolean(),
  answered: fc.boolean(),
  /** Proxies that neither read nor answer, by their place modulo the number of these. */
  lagging: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()),
  /** The proxy that connects again, with what it has or with nothing. */
  returns: rarely(fc.record({ at: fc.nat(20), withNothing: fc.boolean() })),
})

const sidecars: Record<string, Caller & { readonly address: string; readonly metadata: Record<string, unknown> }> = {
  near: { ...caller('sidecar', 'n1', 'near'), address: '10.1.0.1', metadata: {} },
  far: { ...caller('sidecar', 'n2', 'far'), address: '10.2.0.1', metadata: {} },
  plain: { ...caller('sidecar', 'n1', ''), isAble: false, networkView: ['far'], address: '10.9.0.1', metadata: { REQUESTED_NETWORK_VIEW: 'far' } },
  gateway: { ...caller('router', 'n2', 'near'), address: '10.9.0.2', metadata: {} },
  forwarding: { ...caller('router', 'n1', 'far'), forwards: true, address: '10.9.0.3', metadata: { ROUTER_MODE: 'sni-dnat' } },
}

function caller(type: Caller['type'], namespace: string, network: string): Caller {
  return { type, namespace, network, networkView: undefined, isAble: true, forwards: false }
}

/** The proxies: each caller over each variant of the protocol that it can have. */
const kinds = Object.entries(sidecars).flatMap(([name, { type }]) =>
  (type === 'router' ? (['sotw', 'delta'] as const) : (['sotw', 'delta', 'hosts'] as const)).map((kind) => ({ name, kind })),
)

/** A mesh with networks, in which each service has an endpoint in two of them. */
function initialModel(): MeshModel {
  const own = (address: string, network: string): Endpoint => ({
    ...{ address, network, ports: {}, labels: { version: 'v1' }, locality: 'r1/z1/s1', weight: 1, serviceAccount: 'a', workload: 'w', namespace: '' },
  })
  const all = Object.keys(hosts) as Host[]
  return {
    services: new Map(all.map((each) => [each, { exportTo: [], kind: 'virtual', ports: ['http', 'tcp'] }])),
    slices: new Map(
      all.map((each, index) => [
        `${each} east`,
        new Map([['1', [ofService(each, own(`10.1.0.${index + 1}`, 'near')), ofService(each, own('10.2.0.1', 'far'))]]]),
      ]),
    ),
    rules: new Map(),
    peers: new Map(),
    sidecars: new Map(),
    networks: 'gateways',
    autoMtls: true,
  }
}

const ofService = (of: Host, each: Endpoint): Endpoint => ({ ...each, namespace: hosts[of] })

/** A control plane with the mesh, and its proxies. */
class World {
  readonly planner = new Planner(testSettings())
  readonly proxies: readonly { readonly name: string; readonly proxy: SimulatedProxy }[]
  readonly #catalog = new Catalog(new KeyedSums('of a test'))
  readonly #pushes = new CompletePushes(this.planner)
  readonly #onTheWay: PushContent[] = []
  #nonce = 0
  #version = 0
  #now = 1000

  constructor(model: MeshModel) {
    for (const each of Object.keys(hosts) as Host[]) this.service(model, each)
    for (const place of model.peers.keys()) this.peer(model, place)
    for (const place of model.rules.keys()) this.rule(model, place)
    for (const owner of model.sidecars.keys()) this.sidecar(model, owner)
    this.networks(model)
    this.mesh(model)
    this.planner.advance()
    this.proxies = kinds.map(({ name, kind }) => ({
      name,
      proxy: new SimulatedProxy(kind, this.#catalog, () => `n${++this.#nonce}`, 'of listeners'),
    }))
    for (const { name, proxy } of this.proxies) this.#connect(name, proxy)
  }

  service(model: MeshModel, of: Host): void {
    for (const each of registries) {
      const known = model.services.get(of)
      const version = () => `${++this.#version}`
      const value = known && { service: serviceOf(of, known, each), slices: structuredClone(slicesOf(model, of, each, version)) }
      this.planner.state.services.set(`Orchestrator/${each}`, `${hosts[of]}/${of}`, value)
    }
  }

  slice(model: MeshModel, of: Host, each: Registry, key: string): void {
    if (!model.services.has(of)) return
    const endpoints = model.slices.get(`${of} ${each}`)?.get(key)
    const slice = endpoints && { key, version: `${++this.#version}`, endpoints: structuredClone(endpoints) as Endpoint[] }
    this.planner.state.services.setSlice(`Orchestrator/${each}`, `${hosts[of]}/${of}`, key, slice)
  }

  rule({ rules }: MeshModel, place: `${string} ${Host}`): void {
    const [owner = '', of = ''] = place.split(' ')
    const known = rules.get(place)
    if (known) this.#document(ruleDocument(owner, of as Host, known))
    else this.#remove('DestinationRule', owner, of.slice(0, 1))
  }

  peer({ peers }: MeshModel, place: string): void {
    const [owner = '', version] = place.split(' ')
    const known = peers.get(place)
    if (known) this.#document(peerDocument(place, known))
    else this.#remove('PeerAuthentication', owner, version ?? 'all')
  }

  sidecar({ sidecars: known }: MeshModel, owner: string): void {
    const hostsSelected = known.get(owner)
    if (hostsSelected) this.#document(sidecarDocument(owner, hostsSelected))
    else this.#remove('Sidecar', owner, 'default')
  }

  networks({ networks }: MeshModel): void {
    const read = readMeshNetworks(JSON.stringify({ networks: networksOf[networks] }))
    if ('error' in read) throw new Error(read.error)
    this.planner.state.setNetworks(read.value)
  }

  mesh({ autoMtls }: MeshModel): void {
    const read = readMeshConfig(JSON.stringify({ enableAutoMtls: autoMtls }))
    if ('error' in read) throw new Error(read.error)
    this.planner.state.setMesh(read.value)
  }

  #document(text: string): void {
    const { objects, faults } = parseConfigFile('f', text, names)
    if (!objects[0]) throw new Error(`${text}: ${JSON.stringify(faults)}`)
    this.planner.state.setConfig(configKey(objects[0]), objects[0])
  }

  #remove(kind: Parameters<typeof keyAt>[0], namespace: string, name: string): void {
    this.planner.state.setConfig(keyAt(kind, `${namespace}/${name}`), undefined)
  }

  #connect(name: string, proxy: SimulatedProxy): void {
    const { type, namespace, network, isAble, address, metadata } = sidecars[name] as (typeof sidecars)[string]
    proxy.connect()
    const node = readNode(
      {
        id: `${type}~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
        metadata: { NAMESPACE: namespace, NETWORK: network, ...(isAble ? { PROXY_CONFIG: '{}' } : {}), ...metadata },
        locality: { region: 'r1', zone: 'z1', subZone: 's1' } as never,
      },
      names,
      false,
    )
    this.planner.connect(this.#idOf(name, proxy), { ...node, takesVirtualHosts: proxy.kind === 'hosts' })
    proxy.start()
    this.#onTheWay.push(this.#pushes.take())
  }

  #idOf = (name: string, proxy: SimulatedProxy): string => `${name} ${proxy.connection}`

  returns(at: number, withNothing: boolean): void {
    const { name, proxy } = this.proxies[at % this.proxies.length] as (typeof this.proxies)[number]
    this.planner.disconnect(this.#idOf(name, proxy))
    if (withNothing) proxy.lose()
    this.#connect(name, proxy)
  }

  push(isSwept: boolean): void {
    this.planner.advance()
    this.#onTheWay.push(this.#pushes.take())
    if (!isSwept) return
    this.planner.sweep()
    this.#onTheWay.push(this.#pushes.take())
  }

  deliver(): void {
    for (const push of this.#onTheWay.splice(0)) {
      this.#catalog.apply(push)
      for (const { connection, classId } of push.assignments)
        for (const { name, proxy } of this.proxies) if (this.#idOf(name, proxy) === connection) proxy.session.classId = classId
    }
  }

  send(lagging: readonly boolean[] = []): void {
    for (const [index, { proxy }] of this.proxies.entries()) while (!lagging[index % lagging.length] && proxy.receive(this.#now)) this.#now++
  }

  answer(lagging: readonly boolean[] = []): void {
    for (const [index, { proxy }] of this.proxies.entries()) if (!lagging[index % lagging.length]) proxy.answer(this.#now)
    this.#now += 50
  }

  settle(): this {
    this.push(true)
    for (let round = 0; round < 6; round++) {
      this.deliver()
      this.send()
      this.answer()
      this.#now += 10_000
    }
    return this
  }

  /** The load assignments of a caller made at once, as bytes by name. */
  plain(name: string, proxy: SimulatedProxy, wanted: Iterable<string>): Map<string, string> {
    const { snapshot } = this.planner
    const served = this.planner.servedClass(this.#idOf(name, proxy))?.proxyClass
    if (!served) throw new Error(`${name} has no class`)
    return new Map(
      Array.from(wanted, (cluster) => {
        const [, number, subsetName, of] = cluster.split(cluster.includes('|') ? '|' : '_.') as [string, string, string, string]
        const state = snapshot.services.get(of)?.[0]
        if (!state) throw new Error(`${of} is not there`)
        const found = visibleRule(snapshot, state.service, served.namespace)
        const port = state.service.ports.find((each) => each.number === Number(number))
        const subset = found?.subsets.find((each) => each.name === subsetName)
        if (!port || (subsetName !== '' && !subset)) throw new Error(`${cluster} has no port or subset`)
        const policy = policyFor(found, subset, port.number)
        const message = plainAssignment(cluster, state, port, subset, policy, snapshot, served.traits)
        return [cluster, Buffer.from(toBinary(ClusterLoadAssignmentSchema, message)).toString('base64')]
      }),
    )
  }
}

/** Changes the model, and tells the control plane. */
function apply(given: Change, model: MeshModel, world: World): void {
  const set = <K, V>(map: Map<K, V>, key: K, value: V | undefined) => void (value === undefined ? map.delete(key) : map.set(key, value))
  switch (given.type) {
    case 'slice': {
      const place = `${given.host} ${given.registry}` as const
      const slices = model.slices.get(place) ?? new Map<string, readonly Endpoint[]>()
      model.slices.set(place, slices)
      set(
        slices,
        given.part,
        given.endpoints?.map((each) => ofService(given.host, each)),
      )
      return world.slice(model, given.host, given.registry, given.part)
    }
    case 'restart': {
      const slices = model.slices.get(`${given.host} ${given.registry}`)
      const [key, endpoints] = [...(slices ?? [])].find(([, list]) => list.length > 0) ?? []
      if (!slices || key === undefined || !endpoints) return
      slices.set(key, endpoints.with(given.at % endpoints.length, ofService(given.host, given.endpoint)))
      return world.slice(model, given.host, given.registry, key)
    }
    case 'service': {
      set(model.services, given.host, given.service)
      return world.service(model, given.host)
    }
    case 'rule': {
      const place = `${given.owner} ${given.host}` as const
      set(model.rules, place, given.rule)
      return world.rule(model, place)
    }
    case 'peer': {
      set(model.peers, given.place, given.peer)
      return world.peer(model, given.place)
    }
    case 'sidecar': {
      set(model.sidecars, given.owner, given.egress)
      return world.sidecar(model, given.owner)
    }
    case 'networks': {
      model.networks = given.networks
      return world.networks(model)
    }
    case 'mesh': {
      model.autoMtls = given.autoMtls
      return world.mesh(model)
    }
  }
}

function encryptionOf({ transportSocket, transportSocketMatches }: Cluster): WantedCluster['tls'] {
  if (transportSocketMatches.length > 0) return 'by endpoint'
  if (!transportSocket) return 'none'
  // Mutual TLS of the mesh presents a certificate; TLS of mode SIMPLE presents none.
  const { commonTlsContext } = anyUnpack(transportSocket.configType.value as Any, UpstreamTlsContextSchema) ?? {}
  return commonTlsContext?.tlsCertificateSdsSecretConfigs.length || commonTlsContext?.tlsCertificates.length ? 'mutual' : 'simple'
}

function targetsOf({ endpoints }: ClusterLoadAssignment): Set<string> {
  const found = endpoints.flatMap(({ lbEndpoints }) =>
    lbEndpoints.map(({ hostIdentifier, metadata }) => {
      if (hostIdentifier.case !== 'endpoint' || hostIdentifier.value.address?.address.case !== 'socketAddress') throw new Error('no address')
      const { address, portSpecifier } = hostIdentifier.value.address.address.value
      return `${address}:${portSpecifier.value} ${metadata?.filterMetadata['envoy.transport_socket_match'] ? 'tls' : 'plain'}`
    }),
  )
  return new Set(found)
}

/** Holds what a proxy has against the oracle, and its load assignments against those that are made at once. */
function check(model: MeshModel, world: World): void {
  for (const { name, proxy } of world.proxies) {
    const who = `${name} ${proxy.kind}`
    const wanted = wantedClusters(model, sidecars[name] as Caller)
    const clusters = new Map([...(proxy.held.get(clusterType) ?? [])].filter(([cluster]) => cluster.startsWith('outbound')))
    expect([...clusters.keys()].sort(), who).to.deep.equal([...wanted.keys()].sort())
    const assignments = new Map<string, string>()
    for (const [cluster, { tls: encryption, targets }] of wanted) {
      const message = fromBinary(ClusterSchema, Buffer.from(clusters.get(cluster) ?? '', 'base64'))
      expect(encryptionOf(message), `${who} ${cluster}`).to.equal(encryption)
      const { value: kind } = message.clusterDiscoveryType
      expect(kind === Cluster_DiscoveryType.ORIGINAL_DST, `${who} ${cluster}`).to.equal(targets === undefined)
      if (!targets) continue
      const held = proxy.held.get(endpointType)?.get(cluster) ?? ''
      const assignment = message.loadAssignment ?? fromBinary(ClusterLoadAssignmentSchema, Buffer.from(held, 'base64'))
      expect([...targetsOf(assignment)].sort(), `${who} ${cluster}`).to.deep.equal([...targets].sort())
      assignments.set(cluster, Buffer.from(toBinary(ClusterLoadAssignmentSchema, assignment)).toString('base64'))
    }
    const plain = world.plain(name, proxy, assignments.keys())
    // The texts are too long for messages.
    expect(
      [...plain].flatMap(([cluster, bytes]) => (assignments.get(cluster) === bytes ? [] : cluster)),
      `${who}: not as made at once`,
    ).to.deep.equal([])
  }
}

describe('features in combination', () => {
  it('give each proxy what the rules say, whatever its protocol and the history', () => {
    fc.assert(
      fc.property(fc.array(fc.array(step, { minLength: 3, maxLength: 12 }), { minLength: 1, maxLength: 3 }), (history) => {
        const model = initialModel()
        const world = new World(model)
        for (const steps of history) {
          for (const each of steps) {
            if (each.returns) world.returns(each.returns.at, each.returns.withNothing)
            apply(each.change, model, world)
            if (each.pushed) world.push(each.swept)
            if (each.delivered) world.deliver()
            if (each.delivered) world.send(each.lagging)
            if (each.answered) world.answer(each.lagging)
          }
          world.settle()
          check(model, world)
        }
        const fresh = new World(model).settle()
        for (const [index, { name, proxy }] of world.proxies.entries()) {
          const other = fresh.proxies[index]?.proxy as SimulatedProxy
          expect(stateOf(proxy), `${name} ${proxy.kind}`).to.deep.equal(stateOf(other))
        }
      }),
      { numRuns: runs(120) },
    )
  })
})
