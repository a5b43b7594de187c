/**
 * What the mesh needs of the objects of a cluster: each is cut to that as soon as it is read. Fields that the mesh does not need are not read,
 * since the orchestrator and its operators set many of them.
 */
import type { ConfigObject, Readiness } from '../../protocols/data.ts'
import { canonicalAddress, isIp } from '../config/addresses.ts'
import { readClusterSpec, readLabels } from '../config/cluster-documents.ts'
import { type Fault, isMapping, type Report } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'

/** A Service, as far as the mesh needs it. */
export interface ServiceObject {
  readonly namespace: string
  readonly name: string
  readonly createdAt: number
  /** Its cluster addresses, the main one first; none for a headless service. */
  readonly addresses: readonly string[]
  readonly isHeadless: boolean
  /** The host name that it stands for; empty unless it is of type ExternalName. */
  readonly externalName: string
  readonly ports: readonly ServiceObjectPort[]
  /** The annotation `networking.mesh.io/exportTo`; undefined without one. */
  readonly exportTo: readonly string[] | undefined
}

/** A port of a Service. */
export interface ServiceObjectPort {
  readonly name: string
  readonly number: number
  /** `appProtocol`, otherwise `udp` for a port of UDP; empty: the name and the number decide. */
  readonly protocol: string
  /** The port of the pods where it is a number; 0 where it is named or not set. */
  readonly targetPort: number
}

/** An EndpointSlice, as far as the mesh needs it. */
export interface SliceObject {
  readonly namespace: string
  readonly name: string
  /** The name of its Service; empty without one. */
  readonly service: string
  readonly ports: readonly { readonly name: string; readonly number: number }[]
  readonly endpoints: readonly SliceEndpoint[]
}

/** An endpoint of a slice. */
export interface SliceEndpoint {
  readonly addresses: readonly string[]
  readonly readiness: Readiness
  /** The pod that it is, as `<namespace>/<name>`; empty if it is none. */
  readonly pod: string
  readonly node: string
}

/** A Pod, Node or Namespace, and for a Pod the name of the workload that made it. */
export interface ClusterObject {
  readonly object: ConfigObject
  readonly workload: string
}

/** What the objects of each kind are cut to. */
export interface CutObjects {
  Service: ServiceObject
  EndpointSlice: SliceObject
  Pod: ClusterObject
  Node: ClusterObject
  Namespace: ClusterObject
}

/** A kind of objects that is followed. */
export type FollowedKind = keyof CutObjects

/** The result of cutting an object: undefined if it cannot be used, for the reasons in `faults`. Faults of parts of it cost these parts. */
export interface Cut<Object> {
  readonly object: Object | undefined
  readonly faults: readonly Fault[]
}

/** Where objects come from. */
export interface ObjectOrigin {
  readonly names: MeshNames
  readonly source: string
  readonly cluster: string
}

type Mapping = Readonly<Record<string, unknown>>

/** Cuts an object of a kind. Never throws for any value. */
export function cut<Kind extends FollowedKind>(kind: Kind, value: Mapping, origin: ObjectOrigin): Cut<CutObjects[Kind]> {
  const report: Report = { faults: [], warnings: [], idle: [], names: origin.names }
  const metadata = mapping(value.metadata)
  const object = cutAs(kind, value, metadata, origin, report) as CutObjects[Kind] | undefined
  return { object, faults: report.faults }
}

function cutAs(kind: FollowedKind, value: Mapping, metadata: Mapping, origin: ObjectOrigin, report: Report): CutObjects[FollowedKind] | undefined {
  if (kind === 'Service') return cutService(value, metadata, origin, report)
  if (kind === 'EndpointSlice') return cutSlice(value, metadata, report)
  return cutClusterObject(kind, value, metadata, origin, report)
}

function cutService(value: Mapping, metadata: Mapping, { names }: ObjectOrigin, report: Report): ServiceObject | undefined {
  const spec = mapping(value.spec)
  const ports = list(spec.ports).flatMap((item, index): ServiceObjectPort[] => {
    const [port, path] = [mapping(item), `spec.ports[${index}]`]
    if (!isPort(port.port)) {
      report.faults.push({ path: `${path}.port`, reason: `expected a port number from 1 to 65535, got ${shown(port.port)}` })
      return []
    }
    const targetPort = isPort(port.targetPort) ? port.targetPort : 0
    const protocol = port.protocol === 'UDP' ? 'udp' : protocolOf(text(port.appProtocol))
    return [{ name: text(port.name), number: port.port, protocol, targetPort: targetPort === port.port ? 0 : targetPort }]
  })
  const listed = list(spec.clusterIPs)
  const given = (listed.length > 0 ? listed : [spec.clusterIP]).filter((address) => address !== undefined && address !== '' && address !== 'None')
  const addresses = given.flatMap((address) => ipAddress(address, 'spec.clusterIPs', report))
  const annotations = names.canonicalKeys(textValues(metadata.annotations))
  const exported = annotations[`networking.${names.domain}/exportTo`]
  const isExternal = spec.type === 'ExternalName'
  if (isExternal && text(spec.externalName) === '') {
    report.faults.push({ path: 'spec.externalName', reason: 'required for the type ExternalName, but missing' })
    return undefined
  }
  return {
    ...nameIn(metadata),
    createdAt: createdAt(metadata),
    addresses: isExternal ? [] : addresses,
    isHeadless: !isExternal && spec.clusterIP === 'None',
    externalName: isExternal ? text(spec.externalName).toLowerCase() : '',
    ports,
    exportTo: exported?.split(',').flatMap((item) => item.trim() || []),
  }
}

/** The application protocols of the orchestrator that have other names in the mesh; `appProtocol` may also name a protocol of the mesh. */
const appProtocols: ReadonlyMap<string, string> = new Map([
  ['kubernetes.io/h2c', 'http2'],
  ['kubernetes.io/ws', 'http'],
  ['kubernetes.io/wss', 'https'],
])

const protocolOf = (appProtocol: string): string => appProtocols.get(appProtocol.toLowerCase()) ?? appProtocol

function cutSlice(value: Mapping, metadata: Mapping, report: Report): SliceObject {
  const labels = mapping(metadata.labels)
  const ports = list(value.ports).flatMap((item) => {
    const port = mapping(item)
    // A port without a number is every port, which no service of the mesh has.
    return isPort(port.port) ? [{ name: text(port.name), number: port.port }] : []
  })
  const isAddressed = value.addressType === 'IPv4' || value.addressType === 'IPv6'
  if (!isAddressed) report.faults.push({ path: 'addressType', reason: `expected IPv4 or IPv6, got ${shown(value.addressType)}` })
  const { namespace, name } = nameIn(metadata)
  const endpoints = (isAddressed ? list(value.endpoints) : []).flatMap((item, index): SliceEndpoint[] => {
    const endpoint = mapping(item)
    const addresses = list(endpoint.addresses).flatMap((address) => ipAddress(address, `endpoints[${index}].addresses`, report))
    if (addresses.length === 0) return []
    const target = mapping(endpoint.targetRef)
    const pod = target.kind === 'Pod' ? `${text(target.namespace) || namespace}/${text(target.name)}` : ''
    return [{ addresses, readiness: readinessOf(mapping(endpoint.conditions)), pod, node: text(endpoint.nodeName) }]
  })
  return { namespace, name, service: text(labels['kubernetes.io/service-name']), ports, endpoints }
}

/** Conditions that are not set count as true for `ready`, which `serving` then follows. */
function readinessOf({ ready, serving, terminating }: Mapping): Readiness {
  if (terminating === true) return (serving ?? ready ?? true) === false ? 'unready' : 'terminating'
  return ready === false ? 'unready' : 'ready'
}

function cutClusterObject(
  kind: 'Pod' | 'Node' | 'Namespace',
  value: Mapping,
  metadata: Mapping,
  { source, cluster }: ObjectOrigin,
  report: Report,
): ClusterObject | undefined {
  const labels = readLabels(metadata, report)
  // Without its labels it would be another one to everything that selects it.
  if (!labels || report.faults.length > 0) return undefined
  const resourceVersion = text(metadata.resourceVersion)
  const object: ConfigObject = {
    ...{ kind, group: '', version: 'v1' },
    ...nameIn(metadata),
    labels,
    annotations: {},
    createdAt: createdAt(metadata),
    generation: 1,
    spec: readClusterSpec(kind, value, metadata, report),
    ...{ source, cluster, uid: text(metadata.uid), resourceVersion },
    place: `cluster ${cluster}`,
  }
  return { object, workload: kind === 'Pod' ? workloadOf(metadata, object.name) : '' }
}

/** The name of the workload of a pod: of what owns it, without the hash of its template for a Deployment; its own without an owner. */
function workloadOf(metadata: Mapping, name: string): string {
  const owner = list(metadata.ownerReferences)
    .map(mapping)
    .find(({ controller }) => controller === true)
  if (!owner) return name
  const hash = text(mapping(metadata.labels)['pod-template-hash'])
  const owning = text(owner.name)
  return owner.kind === 'ReplicaSet' && hash !== '' && owning.endsWith(`-${hash}`) ? owning.slice(0, -hash.length - 1) : owning
}

const nameIn = (metadata: Mapping) => ({ namespace: text(metadata.namespace), name: text(metadata.name) })

function createdAt({ creationTimestamp }: Mapping): number {
  const created = Date.parse(text(creationTimestamp))
  return Number.isNaN(created) ? 0 : created
}

function ipAddress(address: unknown, path: string, report: Report): string[] {
  if (typeof address === 'string' && isIp(address)) return [canonicalAddress(address)]
  report.faults.push({ path, reason: `${shown(address)} is not an IP address` })
  return []
}

const isPort = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535
const mapping = (value: unknown): Mapping => (isMapping(value) ? value : {})
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const textValues = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(mapping(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : typeof value === 'number' ? String(value) : typeof value
