/**
 * A small mesh as plain data, the documents and records that describe it to a control plane, and an oracle: what a caller's clusters and
 * endpoints have to be, by the rules of docs/resources.md alone. It uses no index, snapshot, view or class of the control plane.
 */
import type { Endpoint, EndpointSlice, Service } from '../../protocols/data.ts'

/** The root namespace. */
export const root = 'mesh-system'
/** The hosts, with the namespaces of their services. */
export const hosts = { 'a.n1.svc.cluster.local': 'n1', 'c.n2.svc.cluster.local': 'n2' }
export type Host = keyof typeof hosts
/** The clusters with a registry each. */
export const registries = ['east', 'west'] as const
export type Registry = (typeof registries)[number]

export type TlsMode = 'DISABLE' | 'MESH_MUTUAL' | 'SIMPLE'
export type PeerMode = 'STRICT' | 'PERMISSIVE' | 'DISABLE' | 'UNSET'

/** A service: with a virtual address, headless with the endpoints' own addresses, or with endpoints that DNS resolves. */
export interface ServiceModel {
  readonly exportTo: readonly string[]
  readonly kind: 'virtual' | 'headless' | 'dns'
  readonly ports: readonly ('http' | 'tcp')[]
}

/** A DestinationRule of a namespace for a host. */
export interface RuleModel {
  readonly exportTo: readonly string[]
  readonly tls: TlsMode | undefined
  readonly portTls: TlsMode | undefined
  /** The subsets by version, with a TLS mode of their own if there is one. */
  readonly subsets: Readonly<Record<string, TlsMode | undefined>>
  readonly spread: 'none' | 'failover' | 'distribute'
}

/** A PeerAuthentication: of the mesh, of a namespace, or of the workloads of a version in a namespace. */
export interface PeerModel {
  readonly mode: PeerMode
  /** For the port 8080. */
  readonly port: PeerMode | undefined
}

/** The mesh. */
export interface MeshModel {
  readonly services: Map<Host, ServiceModel>
  /** By host and registry, then by slice. */
  readonly slices: Map<`${Host} ${Registry}`, Map<string, readonly Endpoint[]>>
  /** By `<namespace> <host>`. */
  readonly rules: Map<`${string} ${Host}`, RuleModel>
  /** By `<namespace> <version>`, without a version for all workloads of the namespace. */
  readonly peers: Map<string, PeerModel>
  /** The egress hosts of the Sidecar of a namespace. */
  readonly sidecars: Map<string, readonly string[]>
  networks: keyof typeof networksOf
  autoMtls: boolean
}

/** A proxy as far as its clusters depend on it. */
export interface Caller {
  readonly type: 'sidecar' | 'router'
  readonly namespace: string
  readonly network: string
  readonly networkView: readonly string[] | undefined
  /** Whether it has a certificate. */
  readonly isAble: boolean
  /** Whether it forwards mutual TLS of others by SNI. */
  readonly forwards: boolean
}

const gateways = {
  near: [['192.0.2.1', 15_443]],
  far: [
    ['192.0.2.2', 15_443],
    ['192.0.2.3', 15_443],
  ],
} as const
const network = (addresses: readonly (readonly [string, number])[], more = {}) => ({
  gateways: addresses.map(([address, port]) => ({ address, port })),
  ...more,
})
/** Mesh networks by the name of the variant. */
export const networksOf = {
  none: {},
  gateways: { near: network(gateways.near), far: network(gateways.far) },
  registry: { near: network(gateways.near), far: network(gateways.far, { endpoints: [{ fromRegistry: 'west' }] }) },
}

const ports = {
  http: { number: 80, name: 'http', protocol: 'http', targetPort: 8080 },
  tcp: { number: 90, name: 'tcp', protocol: 'tcp', targetPort: 0 },
} as const

/** The service as a registry has it. */
export function serviceOf(host: Host, { exportTo, kind, ports: named }: ServiceModel, cluster: Registry): Service {
  const index = Object.keys(hosts).indexOf(host) + 1
  return {
    hostname: host,
    namespace: hosts[host],
    name: host.slice(0, 1),
    provider: 'Orchestrator',
    cluster,
    addresses: kind !== 'headless' ? [`240.${cluster === 'east' ? 0 : 1}.0.${index}`] : [],
    ports: named.map((name) => ports[name]),
    resolution: ({ virtual: 'static', headless: 'passthrough', dns: 'dns' } as const)[kind],
    external: false,
    exportTo,
    serviceAccounts: [],
    selector: undefined,
    createdAt: 0,
  }
}

/** The slices of a service in a registry, with versions. */
export function slicesOf(model: MeshModel, host: Host, registry: Registry, version: () => string): EndpointSlice[] {
  return Array.from(model.slices.get(`${host} ${registry}`) ?? [], ([key, endpoints]) => ({ key, version: version(), endpoints }))
}

const document = (group: string, kind: string, namespace: string, name: string, spec: object) =>
  JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace }, spec })

const tlsOf = (mode: TlsMode | undefined) => (mode === undefined ? {} : { tls: { mode } })
const shares = { 'r1/z1/*': 70, 'r1/z2/*': 20, 'r2/*': 10 }

/** The document of a rule. */
export function ruleDocument(namespace: string, host: Host, { exportTo, tls, portTls, subsets, spread }: RuleModel): string {
  const localityLbSetting =
    spread === 'distribute'
      ? {
          distribute: [
            { from: 'r1/*', to: shares },
            { from: 'r2/*', to: { 'r1/*': 50, 'r2/*': 50 } },
          ],
        }
      : { enabled: true }
  const load = spread === 'none' ? {} : { loadBalancer: { localityLbSetting }, outlierDetection: { consecutive5xxErrors: 5 } }
  const trafficPolicy = { ...tlsOf(tls), ...load, ...(portTls ? { portLevelSettings: [{ port: { number: 90 }, ...tlsOf(portTls) }] } : {}) }
  return document('networking', 'DestinationRule', namespace, host.slice(0, 1), {
    host,
    ...(exportTo.length > 0 ? { exportTo } : {}),
    ...(Object.keys(trafficPolicy).length > 0 ? { trafficPolicy } : {}),
    subsets: Object.entries(subsets).map(([version, own]) => ({
      name: version,
      labels: { version },
      ...(own ? { trafficPolicy: tlsOf(own) } : {}),
    })),
  })
}

/** The document of a PeerAuthentication. */
export function peerDocument(place: string, { mode, port }: PeerModel): string {
  const [namespace = '', version] = place.split(' ')
  return document('security', 'PeerAuthentication', namespace, version ?? 'all', {
    ...(version ? { selector: { matchLabels: { version } } } : {}),
    mtls: { mode },
    ...(version && port ? { portLevelMtls: { 8080: { mode: port } } } : {}),
  })
}

/** The document of a Sidecar. */
export function sidecarDocument(namespace: string, egress: readonly string[]): string {
  return document('networking', 'Sidecar', namespace, 'default', { egress: [{ hosts: egress }] })
}

/** A cluster as a caller has to have it: how it is encrypted, and its targets as `<address>:<port> <tls or plain>`. */
export interface WantedCluster {
  /** `by endpoint`: mutual TLS for the endpoints that accept it. */
  readonly tls: 'none' | 'mutual' | 'simple' | 'by endpoint'
  /** Undefined: connections go to their original destination. */
  readonly targets: ReadonlySet<string> | undefined
}

/** Returns the clusters of the services that a caller has to have, by name. */
export function wantedClusters(model: MeshModel, caller: Caller): Map<string, WantedCluster> {
  const found = new Map<string, WantedCluster>()
  for (const [host, service] of model.services) {
    if (!isSeen(model, caller, host, service)) continue
    const rule = ruleFor(model, caller, host)
    for (const port of service.ports)
      for (const version of [undefined, ...Object.keys(rule?.subsets ?? {})])
        for (const isSni of caller.forwards ? [false, true] : [false]) {
          const [number, subset] = [ports[port].number, version ?? '']
          const cluster = clusterOf(model, caller, host, service, { port, version, rule, isSni })
          // A cluster that has its endpoints in itself is not made without any.
          if (service.kind === 'dns' && cluster.targets?.size === 0) continue
          found.set(isSni ? `outbound_.${number}_.${subset}_.${host}` : `outbound|${number}|${subset}|${host}`, cluster)
        }
  }
  return found
}

/** V1, V6, V7: exported to the caller's namespace, and selected by the Sidecar that applies. */
function isSeen({ sidecars }: MeshModel, { type, namespace }: Caller, host: Host, { exportTo }: ServiceModel): boolean {
  const owner = hosts[host]
  if (!isExported(exportTo, owner, namespace)) return false
  const egress = type === 'sidecar' ? (sidecars.get(namespace) ?? sidecars.get(root)) : undefined
  if (!egress) return true
  const covers = (selected: string, name: string) =>
    selected === '*' || selected === name || (selected.startsWith('*.') && name.endsWith(selected.slice(1)))
  return egress.some((entry) => {
    const [of, name] = entry.split('/') as [string, string]
    return (of === '*' || of === owner || (of === '.' && owner === namespace)) && covers(name, host)
  })
}

const isExported = (exportTo: readonly string[], owner: string, viewer: string) =>
  exportTo.length === 0 || exportTo.includes('*') || exportTo.includes(viewer) || (exportTo.includes('.') && owner === viewer)

/** V3: the caller's own rule, then that of the service's namespace, then that of the root namespace. */
function ruleFor({ rules }: MeshModel, { namespace }: Caller, host: Host): RuleModel | undefined {
  const own = rules.get(`${namespace} ${host}`)
  if (own) return own
  for (const owner of [hosts[host], root]) {
    const rule = rules.get(`${owner} ${host}`)
    if (rule && isExported(rule.exportTo, owner, namespace)) return rule
  }
  return undefined
}

/** The part of a service that a cluster is for, by port and version, and whether the cluster has an SNI name. */
interface Part {
  readonly port: 'http' | 'tcp'
  readonly version: string | undefined
  readonly rule: RuleModel | undefined
  readonly isSni: boolean
}

function clusterOf(model: MeshModel, caller: Caller, host: Host, service: ServiceModel, { port, version, rule, isSni }: Part): WantedCluster {
  // C5: settings of a port replace all others of the rule.
  const ofRule = port === 'tcp' && rule?.portTls ? rule.portTls : rule?.tls
  const mode = (version === undefined ? undefined : rule?.subsets[version]) ?? ofRule
  const isOriginal = service.kind === 'headless' && caller.type === 'sidecar'
  const of = registries.flatMap((registry) =>
    told(model, host, registry, service).map((endpoint) => ({ endpoint, network: networkOf(model, endpoint, registry) })),
  )
  const accepting = of.map(({ endpoint }) => accepts(model, endpoint, port))
  // G6: what is forwarded is mutual TLS of callers, whatever the rule says, and reaches only endpoints that accept it.
  // E6: a distribution gives nothing to endpoints whose locality it does not name, here to those without one.
  const isShared = rule?.spread === 'distribute' && !(port === 'tcp' && rule.portTls)
  const placed = isShared ? of.filter(({ endpoint: { locality } }) => locality !== '') : of
  const serving = new Set(
    takingTraffic(
      of.filter(({ endpoint: { serves } }) => serves?.includes(port)),
      version,
    ),
  )
  const targets = (some: readonly Networked[]) =>
    targetsOf(
      model,
      caller,
      port,
      isSni ? undefined : mode,
      some.filter((each) => serving.has(each)),
    )
  return {
    tls: isSni ? 'none' : encryption(model, caller, mode, isOriginal, accepting),
    targets: isOriginal ? undefined : isSni ? forwarded(targets(placed), targets(of)) : targets(placed),
  }
}

/** G6: to what accepts mutual TLS; in the network of the gateway while it has such endpoints there, whatever a distribution gives these. */
function forwarded(placed: ReadonlySet<string>, all: ReadonlySet<string>): ReadonlySet<string> {
  const mutual = (some: ReadonlySet<string>) => [...some].filter((target) => target.endsWith(' tls'))
  const direct = (some: ReadonlySet<string>) => mutual(some).filter((target) => !target.startsWith('192.0.2.'))
  if (direct(all).length === 0) return new Set(mutual(placed))
  return new Set(direct(placed).length > 0 ? direct(placed) : direct(all))
}

/** O7: the endpoints of a registry, each port of an address once, of the first slice that has it as ready. */
function told(model: MeshModel, host: Host, registry: Registry, service: ServiceModel): Endpoint[] {
  const seen = new Set<string>()
  const slices = [...(model.slices.get(`${host} ${registry}`) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1))
  return slices
    .flatMap(([, endpoints]) => endpoints)
    .flatMap((endpoint) => {
      const at = (port: 'http' | 'tcp') => `${endpoint.readiness ?? 'ready'} ${endpoint.address}:${targetPort(endpoint, port)} ${port}`
      const serves = service.ports.filter((port) => !seen.has(at(port)))
      for (const port of serves) seen.add(at(port))
      return serves.length > 0 ? [{ ...endpoint, serves }] : []
    })
}

function encryption(
  model: MeshModel,
  caller: Caller,
  mode: TlsMode | undefined,
  isOriginal: boolean,
  accepting: readonly boolean[],
): WantedCluster['tls'] {
  if (mode === 'DISABLE') return 'none'
  if (mode === 'SIMPLE') return 'simple'
  if (mode === 'MESH_MUTUAL') return 'mutual'
  if (!caller.isAble || !model.autoMtls) return 'none'
  if (!isOriginal) return 'by endpoint'
  return accepting.length > 0 && accepting.every(Boolean) ? 'mutual' : 'none'
}

/** S7: the network that the endpoint names, else that of its registry. */
function networkOf({ networks }: MeshModel, { network: named }: Endpoint, registry: Registry): string {
  return named === '' && networks === 'registry' && registry === 'west' ? 'far' : named
}

/** An endpoint with its network. */
interface Networked {
  readonly endpoint: Endpoint
  readonly network: string
}

/** E9: of the endpoints of a subset those that are ready; without any, those that terminate. */
function takingTraffic(of: readonly Networked[], version: string | undefined): readonly Networked[] {
  const selected = of.filter(({ endpoint: { labels } }) => version === undefined || labels.version === version)
  const ready = selected.filter(({ endpoint: { readiness } }) => readiness === undefined || readiness === 'ready')
  return ready.length > 0 ? ready : selected.filter(({ endpoint: { readiness } }) => readiness === 'terminating')
}

/** E3 to E5. */
function targetsOf(
  model: MeshModel,
  { network: own, networkView }: Caller,
  port: 'http' | 'tcp',
  mode: TlsMode | undefined,
  serving: readonly Networked[],
): ReadonlySet<string> {
  const targets = new Set<string>()
  for (const { endpoint, network: at } of serving) {
    if (networkView && at !== '' && !networkView.includes(at)) continue
    const isMutual = accepts(model, endpoint, port)
    const behind = model.networks === 'none' || at === own ? undefined : gateways[at as keyof typeof gateways]
    if (!behind) targets.add(`${endpoint.address}:${targetPort(endpoint, port)} ${isMutual ? 'tls' : 'plain'}`)
    else if (mode !== 'DISABLE' && isMutual) for (const [address, number] of behind) targets.add(`${address}:${number} tls`)
  }
  return targets
}

const targetPort = (endpoint: Endpoint, port: 'http' | 'tcp'): number => endpoint.ports[port] ?? (ports[port].targetPort || ports[port].number)

/** E3, A2: a proxy of the mesh whose policies do not disable mutual TLS on the port. */
function accepts({ peers }: MeshModel, endpoint: Endpoint, port: 'http' | 'tcp'): boolean {
  const label = endpoint.labels['security.mesh.io/tlsMode']
  if (label === undefined ? endpoint.serviceAccount === '' : label !== 'istio') return false
  const { version = '' } = endpoint.labels
  const ofWorkload = peers.get(`${endpoint.namespace} ${version}`)
  const ofPort = targetPort(endpoint, port) === 8080 ? ofWorkload?.port : undefined
  const modes = [ofPort, ofWorkload?.mode, peers.get(endpoint.namespace)?.mode, peers.get(root)?.mode]
  return modes.find((mode) => mode !== undefined && mode !== 'UNSET') !== 'DISABLE'
}
