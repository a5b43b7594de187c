/**
 * The endpoints of a service that a caller may use and reaches, together with what is told of all others. Clusters and load assignments take
 * endpoints from here only, so that none is left out without a word (docs/resources.md, E4, E7, E8).
 */
import type { Endpoint, RegistryId, Service } from '../../../protocols/data.ts'
import { isIp } from '../../config/addresses.ts'
import { configKey } from '../../config/kinds.ts'
import { count } from '../../model/counts.ts'
import { consequences } from '../../model/faults.ts'
import { append } from '../../model/lists.ts'
import { type ServiceState, serviceState, shardOf } from '../../registry/merged-services.ts'
import { type Slice, sliceOf } from '../../registry/slices.ts'
import { isClusterLocal } from '../../snapshot/cluster-local.ts'
import type { Subset } from '../../snapshot/destination-rules.ts'
import { withNetworks } from '../../snapshot/networks.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { Outcome } from '../../xds/draft.ts'
import { allowedEndpoints, type RefusedEndpoint } from '../../xds/endpoints/own-machine.ts'
import { type Unpassed, unreachableEndpoints } from '../../xds/endpoints/targets.ts'
import type { Traits } from '../../xds/traits.ts'

/** The maximum number of endpoints, and of their objects, that one message names. */
const mostNamed = 3

/** The kind of resource that endpoints are for: clusters may contain host names, load assignments with a host name are refused by Envoy. */
type Use = 'cds' | 'eds'

/** The endpoints of a slice that a caller may use and reaches, with their networks, and all others. */
export interface UsableSlice {
  readonly endpoints: readonly Endpoint[]
  readonly refused: readonly RefusedEndpoint[]
  /** Those that are no IP address. */
  readonly odd: readonly Endpoint[]
  readonly hidden: readonly Endpoint[]
  /** By network those that accept no mutual TLS, behind gateways. */
  readonly unreachable: ReadonlyMap<string, readonly Endpoint[]>
  readonly unpassed: readonly Unpassed[]
}

/** Returns the usable endpoints of a slice of a registry's service for callers of the namespace `viewer` (undefined: of several). */
export function usableSlice(
  type: Use,
  viewer: string | undefined,
  service: Service,
  subsets: readonly Subset[],
  slice: Slice,
  registry: RegistryId,
  traits: Traits,
  snapshot: MeshSnapshot,
): UsableSlice {
  if (isElsewhere(service, registry, traits, snapshot))
    return { endpoints: [], refused: [], odd: [], hidden: [], unreachable: new Map(), unpassed: [] }
  const { endpoints: allowed, refused, hidden } = allowedEndpoints(viewer, service, slice, traits, snapshot)
  const odd = type === 'eds' ? allowed.filter((endpoint) => !hasAddress(endpoint)) : []
  const endpoints = withNetworks(odd.length > 0 ? allowed.filter(hasAddress) : allowed, registry, snapshot.networks)
  return { endpoints, refused, odd, hidden, ...unreachableEndpoints(endpoints, service, subsets, registry.cluster, snapshot, traits) }
}

/** Whether a registry is that of another cluster than the caller's, whose endpoints a host that is local to clusters does not have. */
const isElsewhere = ({ hostname }: Service, { cluster }: RegistryId, { clusterId }: Traits, snapshot: MeshSnapshot): boolean =>
  cluster !== '' && clusterId !== '' && cluster !== clusterId && isClusterLocal(hostname, snapshot)

const hasAddress = ({ address }: Endpoint): boolean => address === '' || isIp(address) || address.startsWith('unix://')

/** A service with the endpoints that a caller may use, and what is told of the others. */
interface UsableEndpoints {
  readonly state: ServiceState
  readonly told: readonly Outcome[]
}

/** Returns a service with the usable endpoints of all its slices. */
export function usableEndpoints(
  type: Use,
  viewer: string | undefined,
  { service, shards }: ServiceState,
  subsets: readonly Subset[],
  traits: Traits,
  snapshot: MeshSnapshot,
): UsableEndpoints {
  const used: UsableSlice[] = []
  const usable = shards.map((shard) => {
    const slices = shard.slices.map((slice) => {
      const found = usableSlice(type, viewer, service, subsets, slice, shard, traits, snapshot)
      used.push(found)
      return found.endpoints === slice.endpoints ? slice : sliceOf({ ...slice, endpoints: found.endpoints })
    })
    return shardOf(shard, slices)
  })
  return { state: serviceState(service, usable), told: toldOf(type, service, used) }
}

/** What is told of the endpoints that a caller may not use or does not reach. */
export function toldOf(type: Use, service: Service, slices: readonly UsableSlice[]): Outcome[] {
  const hidden = slices.flatMap((slice) => slice.hidden)
  const unreachable = new Map<string, Endpoint[]>()
  for (const slice of slices)
    for (const [network, endpoints] of slice.unreachable) for (const endpoint of endpoints) append(unreachable, network, endpoint)
  const unpassed = Map.groupBy(
    slices.flatMap((slice) => slice.unpassed),
    ({ endpoint, subset, reason }) => JSON.stringify([endpoint.network, subset, reason]),
  )
  return [
    ...slices.flatMap(({ refused }) => refused.map(({ endpoint, reason }) => leftOut(type, endpoint, service, reason))),
    ...slices.flatMap(({ odd }) => odd.map((endpoint) => leftOut(type, endpoint, service, `endpoint ${endpoint.address} is not an IP address`))),
    ...(hidden.length > 0 ? [ofOwnMachine(type, hidden, service)] : []),
    // The gateway of a network is what others come through: nobody misses its own pods behind it.
    ...(service.outside?.gateway ? [] : [...unreachable].map(([network, endpoints]) => behindGateways(type, network, endpoints, service))),
    ...(service.outside?.gateway ? [] : [...unpassed.values()].map((those) => notPassedOn(type, those, service))),
  ]
}

/** A fault for an endpoint that nobody gets, wholly or for some ports, with the reason. */
function leftOut(type: 'cds' | 'eds', endpoint: Endpoint, service: Service, reason: string): Outcome {
  return { problem: { type, resource: service.hostname, objects: objectsOf([endpoint], service), reason, consequence: consequences.leftOut } }
}

/** What callers lose that E7 keeps from them. */
function ofOwnMachine(type: 'cds' | 'eds', endpoints: readonly Endpoint[], service: Service): Outcome {
  const reason = `${named(endpoints)} would lead every caller to its own machine (E7 in docs/resources.md)`
  const consequence = `only callers of the namespace ${service.namespace} get it, and those with INTERCEPTION_MODE NONE unless it is a unix socket; MESH_POLICY_OPT_OUTS=endpoint-addresses gives it to all`
  return { problem: { type, resource: service.hostname, objects: objectsOf(endpoints, service), reason, consequence, isLoss: true } }
}

/** What callers of other networks lose because gateways forward mutual TLS only (E4). */
function behindGateways(type: 'cds' | 'eds', network: string, endpoints: readonly Endpoint[], service: Service): Outcome {
  const reason = `${named(endpoints)} of network ${network} accepts no mutual TLS, which its gateways require (E4 in docs/resources.md)`
  const consequence = 'callers of other networks do not get it'
  return { problem: { type, resource: service.hostname, objects: objectsOf(endpoints, service), reason, consequence, isLoss: true } }
}

/** What callers of other networks lose because no gateway passes their calls on (E4). */
function notPassedOn(type: 'cds' | 'eds', unpassed: readonly Unpassed[], service: Service): Outcome {
  const [{ endpoint, subset, reason: why }] = unpassed as [Unpassed]
  const what = subset === '' ? service.hostname : `the subset ${subset} of ${service.hostname}`
  const reason = `the gateways of network ${endpoint.network} do not pass ${what} on: ${why} (E4 in docs/resources.md)`
  const endpoints = unpassed.map((each) => each.endpoint)
  const consequence = `callers of other networks do not get ${named(endpoints)}${subset === '' ? '' : ' of the subset'}`
  return { problem: { type, resource: service.hostname, objects: objectsOf(endpoints, service), reason, consequence, isLoss: true } }
}

/** What callers lose of a service with UDP ports: proxies carry no UDP (docs/resources.md, S6). */
export function withoutClusters(service: Service): readonly Outcome[] {
  const ports = service.ports.filter(({ protocol }) => protocol === 'udp').map(({ number }) => number)
  if (ports.length === 0) return []
  const reason = `port ${ports.join(', ')} is UDP, which proxies do not carry (S6 in docs/resources.md)`
  const consequence = 'it has no cluster, listener and route, and its traffic passes proxies by'
  return [{ problem: { type: 'cds', resource: service.hostname, objects: [serviceKey(service)], reason, consequence, isLoss: true } }]
}

function named(endpoints: readonly Endpoint[]): string {
  const addresses = [...new Set(endpoints.map(({ address, workload }) => address || workload))].sort()
  const more = addresses.length - mostNamed
  const first = addresses.slice(0, mostNamed).join(', ')
  return `${addresses.length === 1 ? 'endpoint' : 'each of the endpoints'} ${first}${more > 0 ? ` and ${count(more, 'other', 'others')}` : ''}`
}

/** The objects that endpoints are from: WorkloadEntries, which run on no node, and the service. What made a pod is no object of the mesh. */
function objectsOf(endpoints: readonly Endpoint[], service: Service): string[] {
  const entries = endpoints.filter(({ workload, node }) => workload !== '' && node === undefined && service.provider !== 'Mock')
  const workloads = entries.map(({ namespace, workload: name }) => configKey({ kind: 'WorkloadEntry', namespace, name }))
  return [...[...new Set(workloads)].sort().slice(0, mostNamed), serviceKey(service)]
}
