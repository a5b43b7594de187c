/**
 * Load assignments: `envoy.config.endpoint.v3.ClusterLoadAssignment` from endpoints, networks and locality settings (docs/resources.md, E1
 * to E9).
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { Endpoint, ServicePort } from '../../../protocols/data.ts'
import { type LbEndpointSchema, LocalityLbEndpointsSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import type { Subset } from '../../snapshot/destination-rules.ts'
import type { MeshSnapshot, NetworkGateways } from '../../snapshot/snapshot.ts'
import type { PolicyInForce } from '../clusters/traffic-policy.ts'
import { endpointAddress } from '../message.ts'
import { isSniName } from '../names.ts'
import { checkMessage } from '../resource-check.ts'
import { Block, encodeResource, lost, type Resource, type Slice } from '../slab/resource.ts'
import { contentVersion } from '../slab/sums.ts'
import { elementHead, fieldHead, textField } from '../slab/wire.ts'
import type { Traits } from '../traits.ts'
import { type EncodedRun, type PlacedTargets, placedTargets, type Run, type SliceTargets, type Target, type Use } from './targets.ts'

type LbEndpoint = MessageInitShape<typeof LbEndpointSchema>
type LocalityLbEndpoints = MessageInitShape<typeof LocalityLbEndpointsSchema>

/**
 * Returns the use of a service port and subset by a cluster of a name. `registry`: the cluster of the registry that has the endpoints.
 * `gateways`: those of networks that pass its calls on.
 */
export function useOf(
  name: string,
  port: ServicePort,
  subset: Subset | undefined,
  policy: PolicyInForce,
  registry: string,
  gateways: NetworkGateways,
): Use {
  const forwards = isSniName(name)
  return {
    port,
    subset,
    isPlain: !forwards && policy.tls?.mode === 'DISABLE',
    forwards,
    registry,
    gateways,
    nodeFirst: policy.distribution === 'PreferSameNode',
  }
}

/** Returns the load assignment of a cluster for a caller from what the slices of the service contribute, grouped by locality. */
export function loadAssignment(
  name: string,
  slices: readonly SliceTargets[],
  policy: PolicyInForce,
  snapshot: MeshSnapshot,
  traits: Traits,
): ClusterLoadAssignment {
  return assignmentOf(name, placedTargets(slices, isSniName(name), policy, snapshot, traits), snapshot, traits)
}

/** The number of endpoints from which a load assignment is encoded slice by slice. */
const many = 128

/**
 * Returns the same, encoded. The endpoints of a large service are encoded slice by slice: the resource consists of the blocks of its slices,
 * and a slice that did not change keeps its blocks. The version is then a digest of the digests of the blocks.
 */
export function encodedAssignment(
  name: string,
  slices: readonly SliceTargets[],
  policy: PolicyInForce,
  snapshot: MeshSnapshot,
  traits: Traits,
): Resource {
  const placed = placedTargets(slices, isSniName(name), policy, snapshot, traits)
  const count = placed.reduce((sum, { runs }) => runs.reduce((of, { targets }) => of + targets.length, sum), 0)
  if (count < many) return encodeResource(ClusterLoadAssignmentSchema, assignmentOf(name, placed, snapshot, traits), name)
  checkMessage(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name }))
  const groups = placed.map((group) => encodedGroup(group, snapshot, traits))
  const cluster = textField(clusterNameField, name)
  const length = groups.reduce((sum, group) => sum + group.head.length + group.length, cluster.length)
  const pieces = [elementHead(typeUrl, length), cluster, ...groups.flatMap(({ head, parts }) => [head, ...parts])]
  return ropeOf(name, pieces)
}

const typeUrl = `type.googleapis.com/${ClusterLoadAssignmentSchema.typeName}`
/** Fields of `ClusterLoadAssignment`. */
const clusterNameField = 1
const endpointsField = 2

/** The pieces of an encoded `LocalityLbEndpoints`: bytes of their own, and runs. */
interface EncodedGroup {
  readonly head: Uint8Array
  readonly parts: readonly (Uint8Array | EncodedRun)[]
  readonly length: number
}

function encodedGroup(group: PlacedTargets, snapshot: MeshSnapshot, traits: Traits): EncodedGroup {
  const { locality, ...settings } = localitySettings(group, traits)
  const gateways = group.gateways.map(([target, weight]) => lbEndpoint(target, weight, snapshot))
  // Fields are in the order of their numbers: locality, endpoints, weight and priority.
  const parts = [
    encoded(locality ? { locality } : {}),
    ...group.runs.map((run) => encodedRun(run, group, snapshot)),
    encoded({ lbEndpoints: gateways }),
    encoded(settings),
  ]
  const length = parts.reduce((sum, part) => sum + ('block' in part ? part.block.length : part.length), 0)
  return { head: fieldHead(endpointsField, length), parts, length }
}

/** Encodes the targets of a run as a part of a `LocalityLbEndpoints`, once for each scale of their weights in turn. */
function encodedRun(run: Run, { scale }: PlacedTargets, snapshot: MeshSnapshot): EncodedRun {
  const known = run.encoded
  if (known?.scale === scale.name && known.block.slab !== lost) return known
  const bytes = Buffer.concat(run.targets.map((target) => encodedTarget(target, scale.of(target.weight), snapshot)))
  return (run.encoded = { scale: scale.name, block: new Block(bytes), digest: contentVersion(bytes) })
}

/** An encoded target with what it was encoded of, beside its endpoint. */
interface EncodedTarget {
  readonly port: number
  readonly weight: number
  readonly isMutualTls: boolean
  readonly bytes: Uint8Array
}

/** Encoded targets by their endpoint. Endpoints that do not change are the same objects. */
const encodedTargets = new WeakMap<Endpoint, readonly EncodedTarget[]>()
/** The maximum number of encoded targets of an endpoint. */
const mostEncoded = 16

/** Encodes a target that is addressed itself, once for each port, weight and use of mutual TLS. */
function encodedTarget(target: Target, weight: number, snapshot: MeshSnapshot): Uint8Array {
  const { endpoint, port, isMutualTls } = target
  const known = encodedTargets.get(endpoint) ?? []
  const found = known.find((each) => each.port === port && each.weight === weight && each.isMutualTls === isMutualTls)
  if (found) return found.bytes
  const bytes = Buffer.from(encoded({ lbEndpoints: [lbEndpoint(target, weight, snapshot)] }))
  encodedTargets.set(endpoint, [...known.slice(1 - mostEncoded), { port, weight, isMutualTls, bytes }])
  return bytes
}

function encoded(init: LocalityLbEndpoints): Uint8Array {
  const message = create(LocalityLbEndpointsSchema, init)
  checkMessage(LocalityLbEndpointsSchema, message)
  return toBinary(LocalityLbEndpointsSchema, message)
}

/** Joins pieces: consecutive bytes in one block, runs in their own. */
function ropeOf(name: string, pieces: readonly (Uint8Array | EncodedRun)[]): Resource {
  const slices: Slice[] = []
  const digests: string[] = []
  let waiting: Uint8Array[] = []
  const add = (block: Block, digest: string) => {
    slices.push({ block, offset: 0, length: block.length })
    digests.push(digest)
  }
  const flush = () => {
    const bytes = Buffer.concat(waiting)
    waiting = []
    if (bytes.length > 0) add(new Block(bytes), contentVersion(bytes))
  }
  for (const piece of pieces) {
    if (!('block' in piece)) waiting.push(piece)
    else {
      flush()
      add(piece.block, piece.digest)
    }
  }
  flush()
  return { name, version: contentVersion(Buffer.from(digests.join())), slices }
}

function assignmentOf(name: string, placed: readonly PlacedTargets[], snapshot: MeshSnapshot, traits: Traits): ClusterLoadAssignment {
  const endpoints = placed.map((group): LocalityLbEndpoints => {
    const direct = group.runs.flatMap(({ targets }) => targets.map((target) => lbEndpoint(target, group.scale.of(target.weight), snapshot)))
    const gateways = group.gateways.map(([target, weight]) => lbEndpoint(target, weight, snapshot))
    return { ...localitySettings(group, traits), lbEndpoints: [...direct, ...gateways] }
  })
  return create(ClusterLoadAssignmentSchema, { clusterName: name, endpoints })
}

/** The fields of a group beside its endpoints. */
interface LocalitySettings {
  readonly loadBalancingWeight: number
  readonly priority: number
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string }
}

function localitySettings({ locality, weight, priority }: PlacedTargets, { isProxyless }: Traits): LocalitySettings {
  const [region = '', zone = '', subZone = ''] = locality.split('/')
  return {
    loadBalancingWeight: weight,
    priority,
    // gRPC libraries refuse endpoints without a locality, even an empty one.
    ...(locality === '' && !isProxyless ? {} : { locality: { region, zone, subZone } }),
  }
}

function lbEndpoint(target: Target, weight: number, snapshot: MeshSnapshot): LbEndpoint {
  return {
    hostIdentifier: { case: 'endpoint', value: { address: endpointAddress(target.address, target.port) } },
    loadBalancingWeight: weight,
    ...metadataOf(target, snapshot),
  }
}

function metadataOf({ endpoint, isGateway, isMutualTls }: Target, snapshot: MeshSnapshot): Pick<LbEndpoint, 'metadata'> {
  const telemetry = snapshot.settings.features.PILOT_ENDPOINT_TELEMETRY_LABEL && endpoint.workload !== '' && !isGateway
  const istio: Record<string, string> = {}
  const owned = `service.${snapshot.settings.names.domain}`
  if (endpoint.network !== '') istio.network = endpoint.network
  if (telemetry) {
    const name = endpoint.labels[`${owned}/canonical-name`] ?? endpoint.labels.app ?? endpoint.workload
    const revision = endpoint.labels[`${owned}/canonical-revision`] ?? endpoint.labels.version ?? 'latest'
    istio.workload = [endpoint.workload, endpoint.namespace, name, revision].join(';')
  }
  const filterMetadata = {
    ...(Object.keys(istio).length > 0 ? { istio } : {}),
    ...(isMutualTls ? { 'envoy.transport_socket_match': { tlsMode: 'istio' } } : {}),
  }
  return Object.keys(filterMetadata).length > 0 ? { metadata: { filterMetadata } } : {}
}
