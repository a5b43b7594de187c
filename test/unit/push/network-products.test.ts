/**
 * Two and three clusters in networks with gateways, in products with subsets, several ports, locality, outlier detection, `distribute`, `exportTo`,
 * rules for their own namespace alone, cluster-local hosts, machines that a Service or a ServiceEntry selects, the hosts of AUTO_PASSTHROUGH servers who says what the gateways are, and how what they pass on is known. A call is followed from the load assignment of its caller through
 * the listeners and load assignments of the gateways to pods, and these are held against the rules (docs/resources.md, S3, S7, E3 to E11, G6, O10, O12).
 */
import { fromBinary } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, Readiness, Service, ServicePort } from '../../../protocols/data.ts'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { TcpProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig, readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { slicesOf } from '../../../src/registry/slices.ts'
import { endpointType, listenerType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

/** The clusters, of which the first is the own one. */
const clusters = ['c1', 'c2', 'c3'] as const
type ClusterName = (typeof clusters)[number]
/** The hosts: Services of all clusters, and what a ServiceEntry makes of machines. */
const hosts = { a: 'a.shop.svc.cluster.local', b: 'b.bank.svc.cluster.local', c: 'c.corp.example' } as const
type Name = keyof typeof hosts
type Served = Exclude<Name, 'c'>
const served: readonly Served[] = ['a', 'b']
const namespaceOf: Readonly<Record<Name, string>> = { a: 'shop', b: 'bank', c: 'shop' }
const ports: readonly ServicePort[] = [
  { number: 80, name: 'http', protocol: 'http', targetPort: 8080 },
  { number: 90, name: 'tcp', protocol: 'tcp', targetPort: 9090 },
]

interface Pod {
  readonly version: 'v1' | 'v2'
  readonly locality: string
  readonly readiness: Readiness
  /** Whether it has a proxy, which accepts mutual TLS. */
  readonly proxied: boolean
}
/** A WorkloadEntry of the namespace `shop`. */
interface Machine extends Omit<Pod, 'readiness'> {
  /** Whose label it has. */
  readonly app: 'a' | 'c'
  /** The network that it names; empty: none. */
  readonly network: '' | 'n1' | 'n2' | 'n3'
}
interface ClusterModel {
  readonly network: 'n1' | 'n2' | 'n3'
  /** The number of addresses of its gateway; it has none without any. */
  readonly gateways: number
  /** How what its gateway passes on is known: by the labels of its pods, by its selector alone, or not. */
  readonly knownBy: 'pods' | 'selector' | 'nothing'
  readonly pods: Readonly<Record<Served, readonly Pod[]>>
}
interface World {
  readonly clusters: readonly ClusterModel[]
  readonly machines: readonly Machine[]
  /** What the mesh networks say beside the labels of the clusters: nothing, of what network each cluster is, or also the gateway of n2. */
  readonly said: 'nothing' | 'registries' | 'gateways'
  readonly exportTo: Readonly<Record<Name, readonly string[]>>
  readonly local: readonly Name[]
  /** The hosts of the AUTO_PASSTHROUGH servers, which are those of all clusters. */
  readonly served: string
  readonly spread: 'none' | 'failover' | 'distribute'
  readonly hasSubsets: boolean
  /** Whose rules, with subsets and the spread, are for callers of their own namespace alone. */
  readonly ownRules: readonly Name[]
}

const pod = fc.record<Pod>({
  version: fc.constantFrom('v1', 'v2'),
  locality: fc.constantFrom('r1/z1', 'r1/z2', 'r2/z1', ''),
  readiness: fc.constantFrom<Readiness>('ready', 'ready', 'ready', 'terminating', 'unready'),
  proxied: fc.constantFrom(true, true, true, false),
})
const mostMachines = 4
const machine = fc.record<Machine>({
  version: fc.constantFrom('v1', 'v2'),
  locality: fc.constantFrom('r1/z1', 'r2/z1', ''),
  proxied: fc.constantFrom(true, true, false),
  app: fc.constantFrom('a', 'c', 'c'),
  network: fc.constantFrom('', 'n1', 'n2', 'n3'),
})
const pods = fc.array(pod, { maxLength: 3 })
const cluster = fc.record<ClusterModel>({
  network: fc.constantFrom('n1', 'n2', 'n3'),
  gateways: fc.constantFrom(0, 1, 1, 1, 2),
  knownBy: fc.constantFrom('pods', 'pods', 'selector', 'nothing'),
  pods: fc.record({ a: pods, b: pods }),
})
const exported = fc.constantFrom<readonly string[]>([], [], ['*'], ['.'], ['mesh-system', '.'])
const worlds = fc.record<World>({
  clusters: fc.array(cluster, { minLength: 2, maxLength: 3 }),
  machines: fc.array(machine, { maxLength: mostMachines }),
  said: fc.constantFrom('nothing', 'nothing', 'registries', 'gateways'),
  exportTo: fc.record({ a: exported, b: exported, c: exported }),
  local: fc.subarray<Name>(['a', 'b', 'c'], { minLength: 0, maxLength: 2 }),
  served: fc.constantFrom('*.local', '*', 'shop/*', './*', hosts.a, hosts.c),
  spread: fc.constantFrom('none', 'failover', 'distribute'),
  hasSubsets: fc.boolean(),
  ownRules: fc.subarray<Name>(['a', 'b', 'c'], { minLength: 0, maxLength: 1 }),
})

type Region = 'r1' | 'r2'
/** By region of the caller, the shares of localities with `distribute`: a pod that no pattern covers gets nothing. */
const shares: Readonly<Record<Region, Readonly<Record<string, number>>>> = { r1: { 'r1/z1': 70, 'r1/*': 30 }, r2: { 'r2/z1': 40, '*': 60 } }
const distribute = Object.entries(shares).map(([region, to]) => ({ from: `${region}/*`, to }))
/** The region of the proxies of a cluster. */
const regionOf = (index: number): Region => (index === 0 ? 'r1' : 'r2')

const gatewayAddress = (index: number, at: number) => `192.0.${index + 1}.${at + 1}`
/** The address that the mesh networks name: the first one of the third cluster's gateway. */
const named = gatewayAddress(2, 0)
const machineAddress = (at: number) => `172.31.0.${at + 1}`
const podAddress = (index: number, name: Name, at: number) => `10.${index + 1}.${name === 'a' ? 0 : 1}.${at + 1}`

/** A control plane that is told of worlds one after another, with a sidecar in each namespace and the gateway of each cluster. */
class Mesh {
  readonly #planner = new Planner(testSettings({ CLUSTER_ID: 'c1' }))
  readonly #assignments = new Map<string, ReadonlyMap<string, Targets>>()
  /** By gateway the cluster of each SNI name. */
  readonly #chains = new Map<string, ReadonlyMap<string, string>>()

  constructor() {
    for (const [index, cluster] of clusters.entries()) {
      const connect = (type: string, namespace: string, metadata: object) =>
        this.#planner.connect(
          `${type} ${cluster} ${namespace}`,
          readNode(
            {
              id: `${type}~10.9.${index}.1~p.${namespace}~${namespace}.svc.cluster.local`,
              metadata: { CLUSTER_ID: cluster, NAMESPACE: namespace, ...metadata },
              locality: { region: regionOf(index), zone: 'z1', subZone: '' } as never,
            },
            names,
            false,
          ),
        )
      for (const namespace of ['shop', 'bank']) connect('sidecar', namespace, {})
      connect('router', 'mesh-system', { LABELS: { mesh: 'eastwest' } })
    }
  }

  set(world: World): void {
    const { state } = this.#planner
    const networks: Record<string, { endpoints: object[]; gateways?: object[] }> = {}
    if (world.said !== 'nothing')
      for (const [index, { network }] of world.clusters.entries())
        (networks[network] ??= { endpoints: [] }).endpoints.push({ fromRegistry: clusters[index] })
    if (world.said === 'gateways') (networks.n2 ??= { endpoints: [] }).gateways = [{ address: named, port: 15_443 }]
    state.setNetworks(checked(readMeshNetworks(JSON.stringify({ networks }))))
    const serviceSettings = [{ settings: { clusterLocal: true }, hosts: world.local.map((name) => hosts[name]) }]
    state.setMesh(checked(readMeshConfig(JSON.stringify({ serviceSettings }))))
    for (const [index, name] of clusters.entries()) this.#setCluster(name, index, world)
    const object = (kind: string, name: string, namespace: string, spec: object) =>
      this.#document({ apiVersion: 'networking.mesh.io/v1', kind, metadata: { name, namespace }, spec })
    object('Gateway', 'eastwest', 'mesh-system', {
      selector: { mesh: 'eastwest' },
      servers: [{ port: { number: 15_443, name: 'tls', protocol: 'TLS' }, hosts: [world.served], tls: { mode: 'AUTO_PASSTHROUGH' } }],
    })
    for (const [name, host] of Object.entries(hosts))
      object('DestinationRule', name, namespaceOf[name as Name], {
        host,
        exportTo: world.ownRules.includes(name as Name) ? ['.'] : ['*'],
        subsets: world.hasSubsets ? ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })) : [],
        ...trafficPolicyOf(world),
      })
    object('ServiceEntry', 'c', namespaceOf.c, {
      ...{ hosts: [hosts.c], location: 'MESH_INTERNAL', resolution: 'STATIC', workloadSelector: { labels: { app: 'c' } } },
      ...{ exportTo: world.exportTo.c, ports: ports.map(({ number, name, protocol, targetPort }) => ({ number, name, protocol, targetPort })) },
    })
    this.#setMachines(world.machines)
    this.#planner.advance()
    this.#planner.takePush()
    this.#planner.sweep()
    for (const { connection } of this.#planner.proxies()) this.#read(connection)
  }

  #setMachines(machines: readonly Machine[]): void {
    for (let at = 0; at < mostMachines; at++) {
      const machine = machines[at]
      const metadata = { name: `m${at}`, namespace: 'shop' }
      if (machine) {
        const { app, version, network, locality, proxied } = machine
        const labels = { app, version, ...(proxied ? { 'security.mesh.io/tlsMode': 'mesh' } : {}) }
        this.#document({
          ...{ apiVersion: 'networking.mesh.io/v1', kind: 'WorkloadEntry', metadata },
          spec: { address: machineAddress(at), labels, ...(network && { network }), ...(locality && { locality }) },
        })
      } else this.#planner.state.setConfig(configKey({ kind: 'WorkloadEntry', ...metadata, cluster: '' } as never), undefined)
    }
  }

  #setCluster(name: ClusterName, index: number, { clusters: all, exportTo }: World): void {
    const model = all[index]
    const networkLabel = model ? { 'topology.mesh.io/network': model.network } : {}
    this.#document({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mesh-system', labels: networkLabel } }, name)
    const source = `Orchestrator/${name}`
    const { services } = this.#planner.state
    for (const each of served) {
      const service = serviceOf(name, each, namespaceOf[each], { exportTo: exportTo[each], selector: { app: each }, addresses: [`240.0.${index}.1`] })
      const endpoints = model?.pods[each].map((one, at) => endpointOf(each, one, podAddress(index, each, at)))
      services.set(source, `${namespaceOf[each]}/${hosts[each]}`, endpoints && { service, slices: slicesOf(endpoints) })
    }
    const addresses = Array.from({ length: model?.gateways ?? 0 }, (_, at) => gatewayAddress(index, at))
    const outside = { addresses, ports: {}, gateway: { network: model?.network ?? '', port: 15_443 } }
    const tls: ServicePort = { number: 15_443, name: 'tls', protocol: 'tls', targetPort: 15_443 }
    const labels = { mesh: 'eastwest', cluster: name }
    const selector = { [model?.knownBy === 'selector' ? 'mesh' : 'cluster']: model?.knownBy === 'selector' ? 'eastwest' : name }
    const service = { ...serviceOf(name, `edge-${name}`, 'mesh-system', { ports: [tls], selector }), outside }
    const proxy: Pod = { version: 'v1', locality: '', readiness: 'ready', proxied: true }
    const endpoint = { ...endpointOf('a', proxy, `10.8.${index}.1`), namespace: 'mesh-system', labels }
    const slices = slicesOf(model?.knownBy === 'pods' ? [endpoint] : [])
    services.set(source, `mesh-system/${service.hostname}`, addresses.length > 0 ? { service, slices } : undefined)
  }

  #document(document: object, cluster = ''): void {
    const { objects, faults } = parseConfigFile('f', JSON.stringify(document), names)
    expect(faults).to.deep.equal([])
    for (const object of objects) this.#planner.state.setConfig(configKey({ ...object, cluster }), { ...object, cluster })
  }

  #read(connection: string): void {
    const held = resourcesOf(this.#planner, connection)
    const bytesOf = (type: string) => Array.from(held.get(type) ?? [], (resource) => [resource.name, this.#planner.groups.valueOf(resource)] as const)
    this.#assignments.set(connection, new Map(bytesOf(endpointType).map(([name, bytes]) => [name, targetsOf(bytes)])))
    if (!connection.startsWith('router')) return
    const chains = bytesOf(listenerType).flatMap(([, bytes]) => fromBinary(ListenerSchema, bytes).filterChains)
    this.#chains.set(
      connection,
      new Map(
        chains.flatMap(({ filterChainMatch, filters }) => {
          const last = filters.at(-1)?.configType
          const { clusterSpecifier } = (last?.case === 'typedConfig' && anyUnpack(last.value, TcpProxySchema)) || {}
          return (filterChainMatch?.serverNames ?? []).map((sni) => [sni, `${clusterSpecifier?.value}`] as const)
        }),
      ),
    )
  }

  /** The targets of a proxy's cluster. */
  targets(connection: string, cluster: string): Targets {
    const found = this.#assignments.get(connection)?.get(cluster)
    if (!found) throw new Error(`${connection} has no assignment ${cluster}`)
    return found
  }

  has = (connection: string, cluster: string): boolean => this.#assignments.get(connection)?.has(cluster) ?? false

  passesOn = (gateway: string, sni: string): string | undefined => this.#chains.get(gateway)?.get(sni)
}

function checked<T>(read: { readonly value: T } | { readonly error: string }): T {
  if ('error' in read) throw new Error(read.error)
  return read.value
}

function serviceOf(cluster: string, name: string, namespace: string, more: Partial<Service>): Service {
  return {
    ...{ hostname: `${name}.${namespace}.svc.cluster.local`, namespace, name, provider: 'Orchestrator', cluster, addresses: [], ports },
    ...{ resolution: 'static', external: false, exportTo: [], serviceAccounts: [], selector: {}, createdAt: 0, ...more },
  } as Service
}

function endpointOf(name: Name, { version, locality, readiness, proxied }: Pod, address: string): Endpoint {
  const labels = { version, ...(proxied ? { 'security.mesh.io/tlsMode': 'mesh' } : {}) }
  const place = { address, locality, network: '', ports: {}, weight: 1 }
  return { ...place, labels, readiness, serviceAccount: proxied ? 'x' : '', namespace: namespaceOf[name], workload: address }
}

function trafficPolicyOf({ spread }: World): object {
  if (spread === 'none') return {}
  const localityLbSetting = spread === 'failover' ? { enabled: true } : { distribute }
  return { trafficPolicy: { outlierDetection: {}, loadBalancer: { localityLbSetting } } }
}

/** By `<address>:<port>` the priority of a target and its share of the traffic of this priority. */
type Targets = ReadonlyMap<string, { readonly priority: number; readonly share: number }>

function targetsOf(bytes: Uint8Array): Targets {
  const found = new Map<string, { readonly priority: number; readonly share: number }>()
  const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, bytes)
  for (const { priority, lbEndpoints, loadBalancingWeight: ofLocality = 0 } of endpoints) {
    const total = endpoints.reduce((sum, each) => sum + (each.priority === priority ? (each.loadBalancingWeight ?? 0) : 0), 0)
    const inLocality = lbEndpoints.reduce((sum, { loadBalancingWeight: weight = 0 }) => sum + weight, 0)
    for (const { hostIdentifier, loadBalancingWeight: weight = 0 } of lbEndpoints) {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
      if (address?.case !== 'socketAddress') throw new Error('no address')
      const target = `${address.value.address}:${address.value.portSpecifier.value}`
      if (found.has(target)) throw new Error(`${target} is there twice`)
      found.set(target, { priority, share: (ofLocality / total) * (weight / inLocality) })
    }
  }
  return found
}

/** A pod or a machine that the rules give to a cluster of a service, with what reaches it. */
interface Candidate extends Pod {
  readonly address: string
  /** The cluster; undefined: it is in none, as what a ServiceEntry selects. */
  readonly index: number | undefined
  readonly network: string
}

/** The machines that a service selects. Of the Services of all clusters that of the own one does, and its machines are in its cluster (O10). */
function machinesOf({ machines, clusters: all }: World, name: Name): Candidate[] {
  return machines.flatMap(({ app, network, ...one }, at) =>
    app === name
      ? [
          {
            ...one,
            readiness: 'ready',
            address: machineAddress(at),
            index: name === 'c' ? undefined : 0,
            network: network || (all[0]?.network ?? ''),
          },
        ]
      : [],
  )
}

/** The pods and machines of a service that a port's cluster may have for a caller of a cluster, by the rules alone. */
function candidates(world: World, name: Name, version: string, caller: number): readonly Candidate[] {
  const pods = world.clusters.flatMap(({ network, pods: of }, index) =>
    (name === 'c' ? [] : of[name]).map((one, at): Candidate => ({ ...one, address: podAddress(index, name, at), index, network })),
  )
  const all = [...pods, ...machinesOf(world, name)]
  const isNear = ({ index }: Candidate) => !world.local.includes(name) || index === undefined || index === caller
  const selected = all.filter((each) => (version === '' || each.version === version) && isNear(each))
  const ready = selected.filter(({ readiness }) => readiness === 'ready')
  return ready.length > 0 ? ready : selected.filter(({ readiness }) => readiness === 'terminating')
}

/** The gateways that stand for a pod or a machine (O12). */
function gatewaysOf({ clusters: all, said }: World, { index, network }: Candidate): readonly string[] {
  const of = (at: number) => Array.from({ length: all[at]?.gateways ?? 0 }, (_, each) => gatewayAddress(at, each))
  const inNetwork = all.flatMap((each, at) => (each.network === network ? [at] : []))
  const meant = said === 'gateways' && network === 'n2' ? [named] : []
  // The own cluster is the first one; of others the mesh networks decide, and where they say nothing, each stands for its own pods.
  const shared = [...new Set([...meant, ...inNetwork.filter((at) => at === 0 || (said !== 'nothing' && meant.length === 0)).flatMap(of)])]
  return said === 'nothing' && index && of(index).length > 0 ? of(index) : shared
}

const isServed = ({ served, exportTo, local }: World, name: Name): boolean =>
  (exportTo[name].length === 0 || exportTo[name].includes('*') || exportTo[name].includes('mesh-system')) &&
  !local.includes(name) &&
  (served === '*' || (served === '*.local' && name !== 'c') || served === hosts[name] || (served === 'shop/*' && namespaceOf[name] === 'shop'))

/** Whether the rule of a service counts for a viewer (V3). */
const isRuled = ({ ownRules }: World, name: Name, viewer: string): boolean => !ownRules.includes(name) || namespaceOf[name] === viewer

/** How the calls of a viewer to a service are spread. */
const spreadFor = (world: World, name: Name, viewer: string): World['spread'] => (isRuled(world, name, viewer) ? world.spread : 'none')

/** Whether a gateway passes a service and subset on that is known by its address for an endpoint of a network; so do gateways of which nothing is known. */
function passes(world: World, network: string, address: string, name: Name, version: string): boolean {
  const isGiven = world.said === 'gateways' && network === 'n2' && address === named
  const at = world.clusters.findIndex((_, index) => address.startsWith(`192.0.${index + 1}.`))
  return isGiven || world.clusters[at]?.knownBy === 'nothing' || isPassedOn(world, name, version)
}

/** Whether the servers of gateways pass a service and subset on, which their namespace sees (G6). */
const isPassedOn = (world: World, name: Name, version: string): boolean =>
  isServed(world, name) && (version === '' || isRuled(world, name, 'mesh-system'))

const isSeen = ({ exportTo }: World, name: Name, viewer: string): boolean =>
  exportTo[name].length === 0 || exportTo[name].includes('*') || namespaceOf[name] === viewer

/** The priority of a pod for a caller of the zone z1 of a region (E6). */
const rank = (locality: string, region: string): number => (locality === `${region}/z1` ? 0 : locality.startsWith(`${region}/`) ? 2 : 3)

/** The pattern whose share a locality has a part of, for callers of a region. */
const patternOf = (locality: string, region: Region): string | undefined =>
  Object.keys(shares[region]).find((pattern) => pattern === '*' || pattern === locality || pattern === `${locality.split('/')[0]}/*`)

/** The traffic of a pod that leads to a target. */
interface Part {
  readonly target: string
  readonly locality: string
  readonly weight: number
}
/** The weight of a pod: the numbers of gateways that may share it divide it. */
const pieces = 60
const sumOf = (parts: readonly Part[]) => parts.reduce((sum, { weight }) => sum + weight, 0)

/** What the rules make of the parts for callers of a region (E4, E6). */
function expectedTargets(spread: World['spread'], parts: readonly Part[], region: Region): Targets {
  const patterned = (part: Part) => patternOf(part.locality, region)
  const used = spread === 'distribute' ? parts.filter((part) => patterned(part) !== undefined) : parts
  const rankOf = ({ locality }: Part) => (spread === 'failover' ? rank(locality, region) : 0)
  const traffic = (part: Part) => {
    const pattern = patterned(part)
    if (spread !== 'distribute' || pattern === undefined) return part.weight
    const inLocality = sumOf(used.filter(({ locality }) => locality === part.locality))
    const covered = sumOf(used.filter((each) => patterned(each) === pattern))
    // The weights of localities are whole numbers.
    return (Math.ceil((inLocality / covered) * (shares[region][pattern] ?? 0)) * part.weight) / inLocality
  }
  const best = new Map<string, number>()
  for (const part of used) best.set(part.target, Math.min(best.get(part.target) ?? 9, rankOf(part)))
  const ranks = [...new Set(best.values())].sort()
  const found = new Map<string, { readonly priority: number; readonly share: number }>()
  for (const [priority, each] of ranks.entries()) {
    const counted = used.filter((part) => rankOf(part) === each && best.get(part.target) === each)
    const total = counted.reduce((sum, part) => sum + traffic(part), 0)
    for (const part of counted) found.set(part.target, { priority, share: (found.get(part.target)?.share ?? 0) + traffic(part) / total })
  }
  return found
}

function check(mesh: Mesh, world: World): void {
  for (const [caller, { network }] of world.clusters.entries())
    for (const viewer of ['shop', 'bank'])
      for (const name of Object.keys(hosts) as Name[]) {
        const connection = `sidecar ${clusters[caller]} ${viewer}`
        if (!isSeen(world, name, viewer)) {
          expect(mesh.has(connection, `outbound|80||${hosts[name]}`), `${connection} ${name}`).to.equal(false)
          continue
        }
        for (const version of world.hasSubsets && isRuled(world, name, viewer) ? ['', 'v1', 'v2'] : [''])
          for (const port of ports) checkCall(mesh, world, { connection, caller, viewer, network, name, version, port })
      }
}

interface Call {
  readonly connection: string
  readonly caller: number
  readonly viewer: string
  readonly network: string
  readonly name: Name
  readonly version: string
  readonly port: ServicePort
}

function checkCall(mesh: Mesh, world: World, { connection, caller, viewer, network, name, version, port }: Call): void {
  const what = `${connection} ${name} ${version} ${port.number}`
  const all = candidates(world, name, version, caller)
  const parts = all.flatMap((each): Part[] => {
    const { locality } = each
    const standing = each.network === network ? [] : gatewaysOf(world, each)
    if (standing.length === 0) return [{ target: `${each.address}:${port.targetPort}`, locality, weight: pieces }]
    const through = standing.filter((at) => passes(world, each.network, at, name, version))
    return each.proxied ? through.map((at) => ({ target: `${at}:15443`, locality, weight: pieces / through.length })) : []
  })
  const wanted = expectedTargets(spreadFor(world, name, viewer), parts, regionOf(caller))
  const seen = mesh.targets(connection, `outbound|${port.number}|${version}|${hosts[name]}`)
  expect([...seen.keys()].sort(), what).to.deep.equal([...wanted.keys()].sort())
  for (const [target, { priority, share }] of wanted) {
    expect(seen.get(target)?.priority, `${what}: ${target}`).to.equal(priority)
    expect(seen.get(target)?.share, `${what}: ${target}`).to.be.closeTo(share, 0.003)
  }
  // What the gateways make of the call.
  const sni = `outbound_.${port.number}_.${version}_.${hosts[name]}`
  for (const target of wanted.keys()) {
    const at = world.clusters.findIndex((_, index) => target.startsWith(`192.0.${index + 1}.`))
    if (at < 0) continue
    const gateway = `router ${clusters[at]} mesh-system`
    expect(mesh.passesOn(gateway, sni), `${what}: ${gateway}`).to.equal(isPassedOn(world, name, version) ? sni : undefined)
    if (!isPassedOn(world, name, version)) continue
    const own = all.filter((each) => each.proxied && (each.network === world.clusters[at]?.network || gatewaysOf(world, each).length === 0))
    const passed = [...mesh.targets(gateway, sni).keys()].sort()
    // What gives them nothing is not applied (G6).
    const given =
      spreadFor(world, name, 'mesh-system') === 'distribute' ? own.filter(({ locality }) => patternOf(locality, regionOf(at)) !== undefined) : own
    const pods = (given.length > 0 ? given : own).map(({ address }) => `${address}:${port.targetPort}`)
    if (own.length > 0) expect(passed, `${what}: ${gateway}`).to.deep.equal(pods.sort())
  }
}

describe('networks of several clusters', () => {
  it('lead each call to the pods that it may have, through gateways that pass on to pods of their network, whatever changed before', () => {
    fc.assert(
      fc.property(fc.array(worlds, { minLength: 1, maxLength: 3 }), (history) => {
        const mesh = new Mesh()
        for (const world of history) {
          mesh.set(world)
          check(mesh, world)
        }
      }),
      { numRuns: runs(60) },
    )
  })
})
