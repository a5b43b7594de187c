/**
 * The traits of a proxy that shape what it is sent, apart from its view and its own workload. Proxies with equal traits
 * share resources; anything a generator needs to know of a proxy must be here (or it could not be shared safely).
 */
import type { ProxyNode } from '../../protocols/data.ts'
import { longestDurationMs, parseDuration } from '../config/duration.ts'
import { type ProxyConfig, readProxyConfig } from '../config/mesh-config.ts'
import { agentProgramSize, stockProgramSize } from '../config/program-bounds.ts'
import type { ServiceInstance } from '../model/workload.ts'
import type { AddressFamily } from '../snapshot/allocated-addresses.ts'
import type { EnvoyFilter } from '../snapshot/objects.ts'
import type { ViewKey } from '../snapshot/view.ts'
import { filterId } from './envoy-filter/selection.ts'
import { type Certificates, certificatesOf } from './security/mutual-tls.ts'

/** Traits of a group of proxies. */
export interface Traits {
  /** Equal for equal traits. */
  readonly key: string
  /** Equal where clusters are alike, but for endpoints that DNS clusters carry. */
  readonly clusterKey: string
  /** Equal where endpoints on the own machine are alike: whether anything is redirected, and ports of the proxy and its agent. */
  readonly machineKey: string
  /** Equal where endpoints are alike: networks, locality and the own machine. */
  readonly placeKey: string
  /** Equal where outbound listeners are alike before EnvoyFilters change them. */
  readonly listenerShape: string
  /** Equal where outbound listeners are alike. */
  readonly listenerKey: string
  /** Equal where routes are alike. */
  readonly routeKey: string
  /** Equal where the same EnvoyFilters do the same. */
  readonly filterKey: string
  readonly type: 'sidecar' | 'router'
  /** `NONE`: listeners bind their ports themselves, nothing is redirected. */
  readonly interception: 'REDIRECT' | 'TPROXY' | 'NONE'
  readonly network: string
  readonly clusterId: string
  readonly certificates: Certificates
  /** Route configurations come without their virtual hosts, which are resources of their own (VHDS). */
  readonly takesVirtualHosts: boolean
  readonly locality: string
  /** Networks whose endpoints are wanted; undefined = all. */
  readonly networkView: ReadonlySet<string> | undefined
  readonly http10: boolean
  /** Milliseconds; undefined when not set. */
  readonly idleTimeout: number | undefined
  /** Ports below 1024 cannot be opened. */
  readonly unprivileged: boolean
  /** Ports of listeners of the bootstrap on all addresses (`PROXY_STATUS_PORT`, `PROXY_PROMETHEUS_PORT`). */
  readonly bootstrapPorts: readonly number[]
  readonly sniDnat: boolean
  readonly proxyConfig: ProxyConfig
  readonly meshId: string
  readonly ipv6: boolean
  /** Its agent answers DNS queries and is sent a name table (`DNS_CAPTURE`); sidecars only. */
  readonly capturesDns: boolean
  /** Family of the addresses with which it sees services that have none (`DNS_AUTO_ALLOCATE` beside `DNS_CAPTURE`, where connections are redirected); it is part of the view. */
  readonly allocates: AddressFamily | undefined
  /** EnvoyFilters that apply, in order. */
  readonly filters: readonly EnvoyFilter[]
  /** Those among them that change something of a type, and a key that is equal where the same do the same. */
  readonly filtersOf: Readonly<Record<FilterTarget, { readonly key: string; readonly filters: readonly EnvoyFilter[] }>>
  /** The largest program of a regular expression that the proxy takes (`MESH_RE2_MAX_PROGRAM_SIZE` of its metadata, which the agent sets). */
  readonly largestProgram: number
  readonly version: ProxyNode['version']
  /** The whole metadata, for EnvoyFilter matches; not part of the key: the filters that matched are. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A class of proxies. */
export interface ProxyClass {
  readonly id: string
  readonly namespace: string
  readonly traits: Traits
  readonly viewKey: ViewKey
  /** Those of its labels that some policy looks at: what policies select is the same for all of the class. */
  readonly labels: Readonly<Record<string, string>>
  /** The labels among them that some route or listener match looks at. */
  readonly sourceLabels: Readonly<Record<string, string>>
  readonly instances: readonly ServiceInstance[]
  /** Headless services that the workload is a pod of, and its addresses; both empty where it is a pod of none. It needs no listener to reach itself. */
  readonly headless: { readonly hosts: readonly string[]; readonly addresses: readonly string[] }
  /** Address of the workload, where listeners of its own bind. */
  readonly address: string
  /** Gateways that select the proxy, `<namespace>/<name>`; routers only. */
  readonly gateways: readonly string[]
  /** Versions of listeners, by name, that its proxies refused although they change its policies: in their place is one that lets nothing through. */
  readonly denied: ReadonlyMap<string, ReadonlySet<string>>
}

/** What EnvoyFilters change: what is said of one does not touch the others. */
export type FilterTarget = 'clusters' | 'routes' | 'listeners'

const targets: Readonly<Record<string, FilterTarget>> = {
  CLUSTER: 'clusters',
  ROUTE_CONFIGURATION: 'routes',
  VIRTUAL_HOST: 'routes',
  HTTP_ROUTE: 'routes',
}

/** What counts as true in metadata, which agents write as text. */
const trueWords: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])

/** Reads the traits of a proxy; `locality` is that of its first service instance, if it has one. One that `forwards` has a server of mode AUTO_PASSTHROUGH. */
export function traitsOf(node: ProxyNode, locality: string, filters: readonly EnvoyFilter[], forwards: boolean): Traits {
  const { metadata } = node
  const text = (name: string) => (typeof metadata[name] === 'string' ? (metadata[name] as string) : '')
  const mode = text('INTERCEPTION_MODE')
  const requested = text('REQUESTED_NETWORK_VIEW')
  const idle = parseDuration(text('IDLE_TIMEOUT'))
  const isSet = (name: string) => trueWords.has(String(metadata[name]))
  const capturesDns = node.type === 'sidecar' && isSet('DNS_CAPTURE')
  const place = { network: node.network, locality: locality || node.locality }
  // Two bounds and no others, so that clients cannot choose between more classes.
  const largestProgram = Number(metadata.MESH_RE2_MAX_PROGRAM_SIZE) >= agentProgramSize ? agentProgramSize : stockProgramSize
  const shape = {
    type: node.type,
    interception: mode === 'TPROXY' || mode === 'NONE' ? mode : ('REDIRECT' as const),
    http10: text('HTTP10') === '1',
    idleTimeout: idle !== undefined && idle > 0 ? Math.min(idle, longestDurationMs) : undefined,
    unprivileged: text('UNPRIVILEGED_POD') !== '',
    bootstrapPorts: [metadata.PROXY_STATUS_PORT, metadata.PROXY_PROMETHEUS_PORT].map(Number).filter((port) => port > 0 && port < 65_536),
    sniDnat: text('ROUTER_MODE') === 'sni-dnat' || forwards,
    proxyConfig: proxyConfigOf(metadata.PROXY_CONFIG),
    meshId: text('MESH_ID'),
    certificates: certificatesOf(metadata),
    ipv6: node.addresses.every((address) => address.includes(':')),
  } satisfies Partial<Traits>
  // Only filters can see version and metadata; what they matched on is in the key through the filters themselves.
  const keyOf = (some: readonly EnvoyFilter[]) =>
    JSON.stringify([some.map(filterId), some.length > 0 ? [node.version, proxyFacts(some, metadata)] : []])
  const filterKey = keyOf(filters)
  const filtersFor = (target: FilterTarget) => {
    const some = filters.filter(({ spec }) => (spec.configPatches ?? []).some(({ applyTo }) => (targets[applyTo] ?? 'listeners') === target))
    return { key: keyOf(some), filters: some }
  }
  const filtersOf = { clusters: filtersFor('clusters'), routes: filtersFor('routes'), listeners: filtersFor('listeners') }
  const takesVirtualHosts = node.type === 'sidecar' && node.takesVirtualHosts
  const { proxyAdminPort, statusPort } = shape.proxyConfig
  const machineKey = JSON.stringify([shape.interception === 'NONE', proxyAdminPort, statusPort])
  const placeKey = JSON.stringify([place, requested, machineKey])
  const listenerShape = JSON.stringify(shape)
  const listenerKey = JSON.stringify([listenerShape, filtersOf.listeners.key])
  return {
    ...shape,
    ...place,
    clusterId: node.clusterId,
    largestProgram,
    takesVirtualHosts,
    capturesDns,
    allocates: capturesDns && isSet('DNS_AUTO_ALLOCATE') && shape.interception !== 'NONE' ? (shape.ipv6 ? 'ipv6' : 'ipv4') : undefined,
    key: JSON.stringify([listenerKey, filterKey, placeKey, node.clusterId, takesVirtualHosts, capturesDns, largestProgram]),
    clusterKey: JSON.stringify([shape.type, shape.sniDnat, shape.certificates, filtersOf.clusters.key]),
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

function proxyConfigOf(value: unknown): ProxyConfig {
  if (typeof value !== 'string') return readProxyConfig(value)
  try {
    return readProxyConfig(JSON.parse(value))
  } catch {
    return {}
  }
}

/** The metadata entries that any of the filters compares with. */
function proxyFacts(filters: readonly EnvoyFilter[], metadata: Readonly<Record<string, unknown>>): unknown[] {
  const names = new Set(
    filters.flatMap((filter) => (filter.spec.configPatches ?? []).flatMap((patch) => Object.keys(patch.match?.proxy?.metadata ?? {}))),
  )
  return [...names].sort().map((name) => [name, metadata[name]])
}
