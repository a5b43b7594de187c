/** Load assignments that are assembled from kept parts, held against those made at once, over random histories of slices. */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, EndpointSlice, Service } from '../../../protocols/data.ts'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import type { ServiceState } from '../../../src/registry/merged-services.ts'
import { policyFor } from '../../../src/xds/clusters/traffic-policy.ts'
import { outboundCluster, sniCluster } from '../../../src/xds/names.ts'
import { endpointType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { plainAssignment } from '../../harness/plain-assignment.ts'
import { runs, seed } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const host = 'a.ns.svc.cluster.local'
const registries = ['east', 'west'] as const
const ports = [
  { number: 80, name: 'http', protocol: 'http' as const, targetPort: 8080 },
  { number: 81, name: 'tcp', protocol: 'tcp' as const, targetPort: 0 },
]
const serviceOf = (cluster: string): Service => ({
  hostname: host,
  namespace: 'ns',
  name: 'a',
  provider: 'Orchestrator',
  cluster,
  addresses: ['240.0.0.1'],
  ports: cluster === 'east' ? ports : ports.slice(0, 1),
  resolution: 'static',
  external: false,
  exportTo: [],
  serviceAccounts: [],
  selector: undefined,
  createdAt: 0,
})

/** Endpoints that differ in their addresses only. */
const some = fc.record({
  count: fc.integer({ min: 1, max: 90 }),
  base: fc.nat(4),
  network: fc.constantFrom('', '', 'near', 'far', 'further', 'lonely'),
  version: fc.constantFrom('v1', 'v2'),
  account: fc.constantFrom('', 'a', 'a'),
  locality: fc.constantFrom('', 'r1/z1', 'r1/z2', 'r2/z1'),
  weight: fc.constantFrom(0, 1, 1, 1, 7, 4_000_000_000),
  readiness: fc.constantFrom(undefined, undefined, 'ready' as const, 'terminating' as const, 'unready' as const),
  isLocal: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
  ports: fc.constantFrom<Record<string, number>>({}, {}, { http: 9090 }),
})
const endpointsOf = (given: typeof some extends fc.Arbitrary<infer T> ? T : never): Endpoint[] =>
  Array.from({ length: given.count }, (_, number): Endpoint => {
    const { base, network, version, account, locality, weight, readiness, isLocal } = given
    return {
      address: isLocal ? `127.0.${base}.${number}` : `10.${base}.0.${number}`,
      ports: given.ports,
      labels: { version, app: 'a' },
      locality,
      network,
      weight,
      serviceAccount: account,
      namespace: 'ns',
      workload: `w-${number}`,
      ...(readiness ? { readiness } : {}),
    }
  })

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('slice' as const),
      cluster: fc.constantFrom(...registries),
      part: fc.constantFrom('1', '2', '3', '4'),
      slice: fc.option(fc.array(some, { maxLength: 3 }), { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('pod' as const), cluster: fc.constantFrom(...registries), at: fc.nat(400), one: some }) },
  fc.record({
    type: fc.constant('rule' as const),
    tls: fc.constantFrom('', 'DISABLE', 'MESH_MUTUAL'),
    spread: fc.constantFrom('', 'distribute', 'failover'),
  }),
  fc.record({ type: fc.constant('peers' as const), mode: fc.constantFrom('', 'DISABLE', 'STRICT') }),
  fc.record({ type: fc.constant('networks' as const), are: fc.constantFrom('none', 'some', 'registry') }),
)
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never

const shares = { 'r1/z1': 70, 'r1/*': 20, '*': 10 }
const gateways = { near: { gateways: [{ address: '192.0.2.1' }] }, far: { gateways: [{ address: '192.0.2.2' }, { address: '192.0.2.3' }] } }
const networks = {
  none: {},
  some: { ...gateways, further: { gateways: [{ address: '192.0.2.3' }], endpoints: [{ fromCidr: '10.2.0.0/16' }] } },
  registry: { ...gateways, further: { gateways: [{ address: '192.0.2.3' }], endpoints: [{ fromRegistry: 'west' }] } },
}
const proxies = [
  ['near', 'sidecar', 'other', { NETWORK: 'near' }],
  ['far', 'sidecar', 'ns', { NETWORK: 'far', INTERCEPTION_MODE: 'NONE' }],
  ['view', 'sidecar', 'other', { NETWORK: 'near', REQUESTED_NETWORK_VIEW: 'far,lonely' }],
  ['forwarding', 'router', 'other', { NETWORK: 'near', ROUTER_MODE: 'sni-dnat' }],
  ['library', 'sidecar', 'other', { GENERATOR: 'grpc' }],
] as const

/** What the sources hold: the slices of each registry, and the documents by name. */
interface Held {
  readonly slices: Map<string, Map<string, EndpointSlice>>
  readonly documents: Map<string, string>
  networks: keyof typeof networks
}

class Mesh {
  readonly planner = new Planner(testSettings({ PILOT_ENDPOINT_TELEMETRY_LABEL: 'true' }))

  constructor(held: Held) {
    for (const cluster of registries) this.whole(held, cluster)
    for (const document of held.documents.values()) this.document(document)
    this.networks(held.networks)
    this.planner.advance()
    const locality = { region: 'r1', zone: 'z1', subZone: '' } as never
    for (const [name, type, namespace, metadata] of proxies)
      this.planner.connect(name, readNode({ id: `${type}~10.9.0.1~p.${namespace}~${namespace}.svc.cluster.local`, metadata, locality }, names, false))
    this.planner.takePush()
  }

  whole(held: Held, cluster: string): void {
    this.planner.state.services.set(`Orchestrator/${cluster}`, `ns/${host}`, {
      service: serviceOf(cluster),
      slices: structuredClone([...(held.slices.get(cluster)?.values() ?? [])]),
    })
  }

  slice(cluster: string, part: string, slice: EndpointSlice | undefined): void {
    this.planner.state.services.setSlice(`Orchestrator/${cluster}`, `ns/${host}`, part, structuredClone(slice))
  }

  document(document: string): void {
    for (const object of parseConfigFile('f', document, names).objects) this.planner.state.setConfig(configKey(object), object)
  }

  networks(are: keyof typeof networks): void {
    const read = readMeshNetworks(JSON.stringify({ networks: networks[are] }))
    if ('error' in read) throw new Error(read.error)
    this.planner.state.setNetworks(read.value)
  }

  /** The addresses in the load assignment of the first port for a connection. */
  addressesFor(connection: string): string[] {
    const resource = resourcesOf(this.planner, connection)
      .get(endpointType)
      ?.find(({ name }) => name === outboundCluster(80, '', host))
    if (!resource) throw new Error('not there')
    const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, this.planner.groups.valueOf(resource))
    const all = endpoints.flatMap(({ lbEndpoints }) => lbEndpoints.map(({ hostIdentifier }) => hostIdentifier))
    return all.map(({ case: type, value }) => {
      const socket = type === 'endpoint' ? value.address?.address : undefined
      return socket?.case === 'socketAddress' ? socket.value.address : ''
    })
  }

  advance(): void {
    this.planner.advance()
    this.planner.takePush()
  }

  /** By connection and cluster the version and the bytes. */
  seen(): Map<string, string> {
    const found = new Map<string, string>()
    for (const [connection] of proxies)
      for (const resource of resourcesOf(this.planner, connection).get(endpointType) ?? [])
        found.set(`${connection} ${resource.name}`, `${resource.version} ${this.planner.groups.valueOf(resource).toString('hex')}`)
    return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
  }

  /** The same by cluster, without versions, as one function makes them of all endpoints. */
  plain(): Map<string, string> {
    const { snapshot } = this.planner
    const found = new Map<string, string>()
    for (const { connection, node, proxyClass } of this.planner.proxies()) {
      const state = snapshot.services.get(host)?.[0]
      if (!proxyClass || !state) throw new Error('not there')
      const { traits } = proxyClass
      const rule = snapshot.destinationRules.of('ns', host)
      for (const port of state.service.ports)
        for (const subset of [undefined, ...(rule?.subsets ?? [])])
          for (const nameOf of traits.sniDnat ? [outboundCluster, sniCluster] : [outboundCluster]) {
            const name = nameOf(port.number, subset?.name ?? '', host)
            const policy = policyFor(rule, subset, port.number)
            const message = plainAssignment(name, visible(state, node.namespace), port, subset, policy, snapshot, traits)
            found.set(`${connection} ${name}`, Buffer.from(toBinary(ClusterLoadAssignmentSchema, message)).toString('hex'))
          }
    }
    return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)))
  }
}

/** A service without the endpoints at the caller's machine, unless the caller is of its namespace (docs/resources.md, E7). */
function visible(state: ServiceState, viewer: string): ServiceState {
  if (viewer === 'ns') return state
  const shards = state.shards.map((shard) => ({ ...shard, endpoints: shard.endpoints.filter(({ address }) => !address.startsWith('127.')) }))
  return { ...state, shards, endpoints: shards.flatMap(({ endpoints }) => endpoints) }
}

const object = (group: string, kind: string, name: string, spec: object) =>
  JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace: 'ns' }, spec })

function ruleOf(tls: string, spread: string): string {
  const localityLbSetting = spread === 'distribute' ? { distribute: [{ from: 'r1/*', to: shares }] } : { enabled: true }
  const loadBalancer = spread === '' ? {} : { loadBalancer: { localityLbSetting }, outlierDetection: { consecutive5xxErrors: 5 } }
  const trafficPolicy = { ...(tls === '' ? {} : { tls: { mode: tls } }), ...loadBalancer }
  return object('networking', 'DestinationRule', 'a', {
    host,
    ...(Object.keys(trafficPolicy).length > 0 ? { trafficPolicy } : {}),
    subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })),
  })
}

function take(given: Event, held: Held, mesh: Mesh, version: number): void {
  if (given.type === 'slice') {
    const slices = held.slices.get(given.cluster) as Map<string, EndpointSlice>
    const slice = given.slice && { key: given.part, version: `${version}`, endpoints: given.slice.flatMap(endpointsOf) }
    if (slice) slices.set(given.part, slice)
    else slices.delete(given.part)
    mesh.slice(given.cluster, given.part, slice)
  } else if (given.type === 'pod') {
    const slices = held.slices.get(given.cluster) as Map<string, EndpointSlice>
    const of = [...slices.values()].find(({ endpoints }) => endpoints.length > 0)
    if (!of) return
    const endpoints = of.endpoints.with(given.at % of.endpoints.length, endpointsOf({ ...given.one, count: 1 })[0] as Endpoint)
    const slice = { key: of.key, version: `${version}`, endpoints }
    slices.set(of.key, slice)
    mesh.slice(given.cluster, of.key, slice)
  } else if (given.type === 'networks') mesh.networks((held.networks = given.are))
  else {
    const document =
      given.type === 'rule'
        ? ruleOf(given.tls, given.spread)
        : object('security', 'PeerAuthentication', 'v1', {
            selector: { matchLabels: { version: 'v1' } },
            ...(given.mode === '' ? {} : { portLevelMtls: { 8080: { mode: given.mode } } }),
          })
    held.documents.set(given.type, document)
    mesh.document(document)
  }
}

/** The names whose texts differ. The texts are too long for messages. */
const differing = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): string[] =>
  [...new Set([...one.keys(), ...other.keys()])].filter((name) => one.get(name) !== other.get(name))

describe('load assignments', () => {
  it('are after any history what one function makes of all endpoints, byte by byte, with the versions of a fresh start', () => {
    const [sizes, slicesUsed] = [new Set<boolean>(), new Set<boolean>()]
    fc.assert(
      fc.property(fc.array(fc.array(event, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }), (history) => {
        const held: Held = { slices: new Map(registries.map((cluster) => [cluster, new Map()])), documents: new Map(), networks: 'none' }
        const mesh = new Mesh(held)
        let version = 0
        for (const events of history) {
          for (const each of events) take(each, held, mesh, ++version)
          mesh.advance()
          const seen = mesh.seen()
          const bytes = new Map([...seen].map(([name, text]) => [name, text.split(' ')[1] ?? '']))
          expect(differing(bytes, mesh.plain())).to.deep.equal([])
          for (const [, text] of seen) sizes.add(text.length > 30_000)
          for (const resource of resourcesOf(mesh.planner, 'near').get(endpointType) ?? []) slicesUsed.add(resource.slices.length > 1)
        }
        expect(differing(mesh.seen(), new Mesh(held).seen())).to.deep.equal([])
      }),
      { seed, numRuns: runs(200) },
    )
    expect([sizes.size, slicesUsed.size], 'small and large ones').to.deep.equal([2, 2])
  })

  it('have an endpoint once that is in two slices, as the more ready of them says', () => {
    const part = (key: string, readiness: Endpoint['readiness']) => {
      const given = { count: 1, base: 0, network: 'near', version: 'v1', account: 'a', locality: '', weight: 1, isLocal: false, ports: {} } as const
      return { key, version: '', endpoints: endpointsOf({ ...given, readiness }) }
    }
    for (const [one, other, expected] of [
      ['ready', 'unready', 1],
      ['unready', 'ready', 1],
      ['ready', 'terminating', 1],
      ['terminating', 'unready', 1],
      ['unready', 'unready', 0],
    ] as const) {
      const slices = new Map(['1', '2'].map((key, index) => [key, part(key, index === 0 ? one : other)]))
      const mesh = new Mesh({ slices: new Map([['east', slices]]), documents: new Map(), networks: 'none' })
      mesh.advance()
      expect(mesh.addressesFor('near'), `${one} and ${other}`).to.deep.equal(Array(expected).fill('10.0.0.0'))
      mesh.slice('east', '2', part('2', one))
      mesh.slice('east', '1', part('1', other))
      mesh.advance()
      expect(mesh.addressesFor('near'), `${one} and ${other}, exchanged`).to.deep.equal(Array(expected).fill('10.0.0.0'))
    }
  })
})
