/** From a service and a place to its load assignments. */
import type { RegistryId, Service, ServicePort } from '../../../protocols/data.ts'
import type { ServiceState, Shard } from '../../registry/merged-services.ts'
import { familyOf, type Slice } from '../../registry/slices.ts'
import { isClusterLocal } from '../../snapshot/cluster-local.ts'
import type { MergedRule, Subset } from '../../snapshot/destination-rules.ts'
import { gatewaysTo } from '../../snapshot/passed-on.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { objectsOf } from '../../xds/clusters/outbound.ts'
import { type PolicyInForce, servicePolicy } from '../../xds/clusters/traffic-policy.ts'
import { makeEncoded, type Outcome } from '../../xds/draft.ts'
import { encodedAssignment, useOf } from '../../xds/endpoints/load-assignment.ts'
import { dependsOnLocality } from '../../xds/endpoints/locality.ts'
import { allowedEndpointsKey } from '../../xds/endpoints/own-machine.ts'
import { type SliceTargets, sliceTargets } from '../../xds/endpoints/targets.ts'
import { outboundCluster, sniCluster } from '../../xds/names.ts'
import type { Traits } from '../../xds/traits.ts'
import type { Making } from './making.ts'
import { toldOf, type UsableSlice, usableSlice } from './usable-endpoints.ts'

/** Where load assignments are for: the namespace of the callers (undefined: several), and their traits. */
export interface Place {
  readonly viewer: string | undefined
  readonly traits: Traits
}

/** A cluster of a service whose endpoints EDS delivers. */
interface EdsCluster {
  readonly name: string
  readonly port: ServicePort
  readonly subset: Subset | undefined
  readonly policy: PolicyInForce
}

/** What a slice contributes to the load assignments of its service: by cluster the targets, and what is told of other endpoints. */
interface SlicePart {
  readonly usable: UsableSlice
  readonly targets: ReadonlyMap<string, SliceTargets>
}

/** Returns a key that is equal for places at which the load assignments of a service are equal. */
export function placeKeyOf(state: ServiceState, rule: MergedRule | undefined, { viewer, traits }: Place, snapshot: MeshSnapshot): string {
  const policies = edsClusters(state, rule, traits).map(({ policy }) => policy)
  return JSON.stringify([
    traits.type,
    traits.network,
    traits.networkView && [...traits.networkView],
    policies.some((policy) => dependsOnLocality(policy, snapshot)) ? traits.locality : '',
    policies.some(({ distribution }) => distribution === 'PreferSameNode') ? [traits.clusterNode, traits.clusterId] : '',
    state.shards.some(hasBothFamilies) ? traits.family : '',
    isClusterLocal(state.service.hostname, snapshot) ? traits.clusterId : '',
    traits.sniDnat,
    traits.isProxyless,
    allowedEndpointsKey(viewer, state, traits),
  ])
}

/**
 * Returns the load assignments of a service at a place, one for each of its clusters, and what is told of endpoints that are in none. What
 * a slice contributes is kept with the slice, so that a change of an endpoint costs its slice.
 */
export function loadAssignments(
  state: ServiceState,
  rule: MergedRule | undefined,
  place: Place,
  { snapshot, memo }: Pick<Making, 'snapshot' | 'memo'>,
): Outcome[] {
  const { service, shards } = state
  const clusters = edsClusters(state, rule, place.traits)
  const isSliced = shards.reduce((sum, { slices }) => sum + slices.length, 0) > 1
  const key = isSliced ? `slices|${placeKeyOf(state, rule, place, snapshot)}` : ''
  const parts = shards.flatMap((shard) =>
    slicesOfFamily(service, shard, place.traits).map((slice): SlicePart => {
      const make = () => slicePart(state, slice, shard, clusters, place, snapshot)
      return isSliced ? memo.get(key, [slice, rule], '', [service, rule], make) : make()
    }),
  )
  const drafts = clusters.map(({ name, policy }) => ({
    name,
    objects: () => objectsOf(state, rule),
    make: () => {
      const slices = parts.map(({ targets }) => targets.get(name) as SliceTargets)
      return encodedAssignment(name, slices, policy, snapshot, place.traits)
    },
  }))
  const told = toldOf(
    'eds',
    service,
    parts.map(({ usable }) => usable),
  )
  return [...makeEncoded('eds', drafts), ...told]
}

/** Whether a Service of the orchestrator has slices of both address families. */
const hasBothFamilies = ({ provider, slices }: Shard): boolean =>
  provider === 'Orchestrator' && slices.some(({ family }) => family === 'ipv4') && slices.some(({ family }) => family === 'ipv6')

/**
 * The slices that a proxy uses of a Service whose endpoints have addresses of both families (docs/resources.md, E12): those of its only
 * family, else those of the first address of the service, as long as one of them has a ready endpoint.
 */
function slicesOfFamily({ addresses }: Service, shard: Shard, { family }: Traits): readonly Slice[] {
  if (!hasBothFamilies(shard)) return shard.slices
  const wanted = family ?? familyOf(addresses[0] ?? '')
  const left = shard.slices.filter((slice) => slice.family === undefined || slice.family === wanted)
  return left.some(({ endpoints, unready }) => endpoints.length > unready) ? left : shard.slices
}

/** The clusters of a service, for each port and subset; for a router that forwards by SNI also those with SNI names. */
function edsClusters({ service }: ServiceState, rule: MergedRule | undefined, { sniDnat }: Traits): EdsCluster[] {
  const names = sniDnat ? [outboundCluster, sniCluster] : [outboundCluster]
  const subsets = [undefined, ...(rule?.subsets ?? [])]
  return service.ports
    .filter(({ protocol }) => protocol !== 'udp')
    .flatMap((port) =>
      subsets.flatMap((subset) =>
        names.map((nameOf): EdsCluster => {
          const name = nameOf(port.number, subset?.name ?? '', service.hostname)
          return { name, port, subset, policy: servicePolicy(service, rule, subset, port.number) }
        }),
      ),
    )
}

function slicePart(
  { service }: ServiceState,
  slice: Slice,
  registry: RegistryId,
  clusters: readonly EdsCluster[],
  { viewer, traits }: Place,
  snapshot: MeshSnapshot,
): SlicePart {
  const subsets = new Set(clusters.flatMap(({ subset }) => subset ?? []))
  const usable = usableSlice('eds', viewer, service, [...subsets], slice, registry, traits, snapshot)
  const targets = clusters.map(({ name, port, subset, policy }) => {
    const gateways = gatewaysTo(service, subset?.name ?? '', snapshot)
    return [name, sliceTargets(usable.endpoints, useOf(name, port, subset, policy, registry.cluster, gateways), snapshot, traits)] as const
  })
  return { usable, targets: new Map(targets) }
}
