/**
 * The traits of a proxy that affect its resources, other than its view and its workload. Proxies with equal traits share resources, so
 * whatever a generator reads of a proxy must be a trait.
 */
import type { ProxyNode } from '../../protocols/data.ts'
import { longestDurationMs, parseDuration } from '../config/duration.ts'
import { type ProxyConfig, readProxyConfig } from '../config/mesh-config.ts'
import { agentProgramSize, stockProgramSize } from '../config/program-bounds.ts'
import type { ServiceInstance } from '../model/workload.ts'
import { type AddressFamily, familyOf } from '../registry/slices.ts'
import type { EnvoyFilter } from '../snapshot/objects.ts'
import type { ViewKey } from '../snapshot/view.ts'
import { filterId } from './envoy-filter/selection.ts'
import { type Certificates, certificatesOf } from './security/mutual-tls.ts'

/** The traits of a group of proxies. Each key covers the traits that affect some resources: proxies with equal keys share these. */
export interface Traits {
  /** Covers all traits. */
  readonly key: string
  /** Covers clusters, without the endpoints that DNS clusters contain. */
  readonly clusterKey: string
  /** Covers endpoints on the proxy's own machine: whether traffic is redirected, and the ports of the proxy and its agent. */
  readonly machineKey: string
  /** Covers endpoints: network, network view, locality, the own machine, the cluster and the address family. */
  readonly placeKey: string
  /** Covers outbound listeners before EnvoyFilters change them. */
  readonly listenerShape: string
  /** Covers outbound listeners. */
  readonly listenerKey: string
  /** Covers routes. */
  readonly routeKey: string
  /** Covers the effect of all EnvoyFilters. */
  readonly filterKey: string
  readonly type: 'sidecar' | 'router'
  /** `NONE`: traffic is not redirected, and listeners bind their ports themselves. */
  readonly interception: 'REDIRECT' | 'TPROXY' | 'NONE'
  readonly network: string
  readonly clusterId: string
  readonly certificates: Certificates
  /** Whether virtual hosts are delivered as resources of their own (VHDS), and route configurations without them. */
  readonly takesVirtualHosts: boolean
  readonly locality: string
  /**
   * The node of the proxy's pod, empty if it is not known; undefined where no service has callers that prefer their own node. It is no part of
   * `placeKey`, since the load assignments of these services are in a group of their own.
   */
  readonly clusterNode: string | undefined
  /** The networks whose endpoints the proxy requested; undefined: all networks. */
  readonly networkView: ReadonlySet<string> | undefined
  readonly http10: boolean
  /** In milliseconds; undefined if not set. */
  readonly idleTimeout: number | undefined
  /** Whether the proxy cannot bind ports below 1024. */
  readonly unprivileged: boolean
  /** Ports that listeners of the bootstrap bind on all addresses (`PROXY_STATUS_PORT`, `PROXY_PROMETHEUS_PORT`). */
  readonly bootstrapPorts: readonly number[]
  /** The port of the agent's token service (`STS_PORT`); undefined: none. */
  readonly tokenPort: number | undefined
  readonly sniDnat: boolean
  /** Whether the proxy has the network filter for MySQL. */
  readonly readsMysql: boolean
  /** Whether the client is a gRPC library without a proxy (`GENERATOR` is `grpc`). */
  readonly isProxyless: boolean
  readonly proxyConfig: ProxyConfig
  readonly meshId: string
  /** The only family of the proxy's addresses; undefined: it has both. */
  readonly family: AddressFamily | undefined
  /** Whether all addresses of the proxy are IPv6. */
  readonly ipv6: boolean
  /**
   * Whether listeners for redirected connections serve IPv4 and IPv6, whatever the addresses of the proxy: its agent says that its kernel
   * has both (`MESH_DUAL_STACK`). Never set where nothing is redirected.
   */
  readonly bothFamilies: boolean
  /** Whether the proxy's agent answers DNS queries and needs a name table (`DNS_CAPTURE`); sidecars only. */
  readonly capturesDns: boolean
  /**
   * The family of the addresses that are allocated to services without addresses (`DNS_AUTO_ALLOCATE` together with `DNS_CAPTURE`, if
   * traffic is redirected); part of the view. Undefined: none are allocated.
   */
  readonly allocates: AddressFamily | undefined
  /** The EnvoyFilters that apply, in order. */
  readonly filters: readonly EnvoyFilter[]
  /** For each target, the EnvoyFilters that change it, and a key that covers their effect. */
  readonly filtersOf: Readonly<Record<FilterTarget, { readonly key: string; readonly filters: readonly EnvoyFilter[] }>>
  /**
   * The maximum program size of a regular expression that the proxy accepts (`MESH_RE2_MAX_PROGRAM_SIZE` in its metadata, set by the
   * agent).
   */
  readonly largestProgram: number
  readonly version: ProxyNode['version']
  /** The whole metadata, for EnvoyFilter matches. Not part of the keys, which contain the filters that matched. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A class of proxies: proxies that get the same configuration. */
export interface ProxyClass {
  readonly id: string
  readonly namespace: string
  readonly traits: Traits
  readonly viewKey: ViewKey
  /** The labels that the policies of the class select it by. A policy that selects one proxy of a class selects all of them. */
  readonly labels: Readonly<Record<string, string>>
  /** The labels among them that some match of a route or listener selects by. */
  readonly sourceLabels: Readonly<Record<string, string>>
  readonly instances: readonly ServiceInstance[]
  /**
   * Headless services that the workload is a pod of, and its addresses, for which it needs no outbound listener; both empty if it is a pod
   * of none.
   */
  readonly headless: { readonly hosts: readonly string[]; readonly addresses: readonly string[] }
  /** The address of the workload, which its own listeners bind. */
  readonly address: string
  /** Gateways that select the proxy, as `<namespace>/<name>`; routers only. */
  readonly gateways: readonly string[]
  /**
   * Listener versions, by name, that proxies of the class refused although they carry changed policies. A listener that denies everything
   * takes their place.
   */
  readonly denied: ReadonlyMap<string, ReadonlySet<string>>
}

/** The kinds of resources that EnvoyFilters change. A patch of one kind leaves the others unchanged. */
export type FilterTarget = 'clusters' | 'routes' | 'listeners'

const targets: Readonly<Record<string, FilterTarget>> = {
  CLUSTER: 'clusters',
  ROUTE_CONFIGURATION: 'routes',
  VIRTUAL_HOST: 'routes',
  HTTP_ROUTE: 'routes',
}

/** Values that count as true in metadata, which agents write as text. */
const trueWords: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])

/**
 * Returns the traits of a proxy. `locality` is that of its first service instance, empty if it has none. `forwards`: a server of mode
 * AUTO_PASSTHROUGH applies to it.
 */
export function traitsOf(
  node: ProxyNode,
  { locality, clusterNode }: Pick<Traits, 'locality' | 'clusterNode'>,
  filters: readonly EnvoyFilter[],
  forwards: boolean,
): Traits {
  const { metadata } = node
  const text = (name: string) => (typeof metadata[name] === 'string' ? (metadata[name] as string) : '')
  const mode = text('INTERCEPTION_MODE')
  const requested = text('REQUESTED_NETWORK_VIEW')
  const idle = parseDuration(text('IDLE_TIMEOUT'))
  const isSet = (name: string) => trueWords.has(String(metadata[name]))
  const capturesDns = node.type === 'sidecar' && isSet('DNS_CAPTURE')
  const interception = mode === 'TPROXY' || mode === 'NONE' ? mode : 'REDIRECT'
  const place = { network: node.network, locality: locality || node.locality }
  // Two limits only, so that clients cannot create more classes by their choice of a number.
  const largestProgram = Number(metadata.MESH_RE2_MAX_PROGRAM_SIZE) >= agentProgramSize ? agentProgramSize : stockProgramSize
  const shape = {
    type: node.type,
    interception,
    http10: text('HTTP10') === '1',
    idleTimeout: idle !== undefined && idle > 0 ? Math.min(idle, longestDurationMs) : undefined,
    unprivileged: text('UNPRIVILEGED_POD') !== '',
    bootstrapPorts: [metadata.PROXY_STATUS_PORT, metadata.PROXY_PROMETHEUS_PORT].map(Number).filter(isPort),
    tokenPort: isPort(Number(metadata.STS_PORT)) ? Number(metadata.STS_PORT) : undefined,
    sniDnat: text('ROUTER_MODE') === 'sni-dnat' || forwards,
    proxyConfig: proxyConfigOf(metadata.PROXY_CONFIG),
    readsMysql: node.readsMysql ?? false,
    isProxyless: node.type === 'sidecar' && text('GENERATOR') === 'grpc',
    meshId: text('MESH_ID'),
    certificates: certificatesOf(metadata),
    ipv6: node.addresses.every((address) => address.includes(':')),
    bothFamilies: node.type === 'sidecar' && interception !== 'NONE' && isSet('MESH_DUAL_STACK'),
  } satisfies Partial<Traits>
  // Only filters read version and metadata. The filters that matched are part of the key, and so are the values that they compare.
  const keyOf = (some: readonly EnvoyFilter[]) =>
    some.length > 0 ? JSON.stringify([some.map(filterId), [node.version, proxyFacts(some, metadata)]]) : noFilters.key
  const filterKey = keyOf(filters)
  const filtersFor = (target: FilterTarget) => {
    const some = filters.filter(({ spec }) => (spec.configPatches ?? []).some(({ applyTo }) => (targets[applyTo] ?? 'listeners') === target))
    return { key: keyOf(some), filters: some }
  }
  const filtersOf = { clusters: filtersFor('clusters'), routes: filtersFor('routes'), listeners: filtersFor('listeners') }
  const takesVirtualHosts = node.type === 'sidecar' && node.takesVirtualHosts
  const { proxyAdminPort, statusPort } = shape.proxyConfig
  const machineKey = JSON.stringify([shape.interception === 'NONE', proxyAdminPort, statusPort, shape.tokenPort, shape.bootstrapPorts])
  const families = new Set(node.addresses.map(familyOf))
  const family = families.size === 1 ? [...families][0] : undefined
  const placeKey = JSON.stringify([place, requested, machineKey, node.clusterId, family])
  const listenerShape = JSON.stringify(shape)
  const listenerKey = JSON.stringify([listenerShape, filtersOf.listeners.key])
  return {
    ...shape,
    ...place,
    clusterId: node.clusterId,
    clusterNode,
    family,
    largestProgram,
    takesVirtualHosts,
    capturesDns,
    allocates: capturesDns && isSet('DNS_AUTO_ALLOCATE') && shape.interception !== 'NONE' ? (shape.ipv6 ? 'ipv6' : 'ipv4') : undefined,
    key: JSON.stringify([listenerKey, filterKey, placeKey, takesVirtualHosts, capturesDns, largestProgram, clusterNode]),
    clusterKey: clusterKeyOf(shape, filtersOf.clusters.key),
    machineKey,
    placeKey,
    listenerShape,
    listenerKey,
    routeKey: JSON.stringify([shape.type, shape.interception, takesVirtualHosts, largestProgram, filtersOf.routes.key]),
    filterKey,
    filtersOf,
    networkView: requested === '' ? undefined : new Set(['', ...requested.split(',').map((entry) => entry.trim())]),
    filters,
    version: node.version,
    metadata,
  }
}

type ClusterShape = Pick<Traits, 'type' | 'sniDnat' | 'certificates'>

const clusterKeyOf = ({ type, sniDnat, certificates }: ClusterShape, filters: string): string =>
  JSON.stringify([type, sniDnat, certificates, filters])

const noFilters = { key: JSON.stringify([[], []]), filters: [] } as const

/** Returns the traits with which clusters are made that no EnvoyFilter changes: those of a proxy that no EnvoyFilter selects. */
export function withoutFilters(traits: Traits): Traits {
  const filtersOf = { clusters: noFilters, routes: noFilters, listeners: noFilters }
  return { ...traits, filters: [], filtersOf, clusterKey: clusterKeyOf(traits, noFilters.key) }
}

const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65_536

function proxyConfigOf(value: unknown): ProxyConfig {
  if (typeof value !== 'string') return readProxyConfig(value)
  try {
    return readProxyConfig(JSON.parse(value))
  } catch {
    return {}
  }
}

/** Returns the metadata entries that any of the filters compares with a value. */
function proxyFacts(filters: readonly EnvoyFilter[], metadata: Readonly<Record<string, unknown>>): unknown[] {
  const names = new Set(
    filters.flatMap((filter) => (filter.spec.configPatches ?? []).flatMap((patch) => Object.keys(patch.match?.proxy?.metadata ?? {}))),
  )
  return [...names].sort().map((name) => [name, metadata[name]])
}
