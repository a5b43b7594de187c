/**
 * What the mesh needs of the objects of a cluster: each is cut to that as soon as it is read. Fields that the mesh does not need are not read,
 * since the orchestrator and its operators set many of them.
 */
import type { ConfigObject, OutsideAccess, Readiness, TrafficDistribution } from '../../protocols/data.ts'
import { canonicalAddress, isIp } from '../config/addresses.ts'
import { readClusterSpec, readLabels } from '../config/cluster-documents.ts'
import { type Fault, isMapping, mapping, type Report, textOf } from '../config/shape.ts'
import { exportFault } from '../config/shapes/export-list.ts'
import { isMutualTlsLabel, type MeshNames } from '../names/mesh-names.ts'
import { isObjectName } from '../names/object-names.ts'

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
  /** The labels of its pods and WorkloadEntries; undefined without a selector. */
  readonly selector: Readonly<Record<string, string>> | undefined
  /** Names in certificates, and service accounts of its namespace, that annotations give its endpoints. */
  readonly identities: readonly string[]
  readonly accounts: readonly string[]
  readonly distribution: TrafficDistribution | undefined
  readonly outside: ServiceOutside
}

/** How a Service is reached from outside of the cluster. */
export interface ServiceOutside {
  /** The addresses of load balancers, and external addresses; IP addresses and host names. */
  readonly addresses: readonly string[]
  /** The labels of the nodes at which it is reached; undefined: it is not reached by its ports at nodes. */
  readonly nodes: Readonly<Record<string, string>> | undefined
  /** The network that it is the gateway of, and the port; undefined: of none. */
  readonly gateway: OutsideAccess['gateway']
}

/** A port of a Service. */
export interface ServiceObjectPort {
  readonly name: string
  readonly number: number
  /** `appProtocol`, otherwise `udp` for a port of UDP; empty: the name and the number decide. */
  readonly protocol: string
  /** The port of the pods where it is a number; 0 where it is named or not set. */
  readonly targetPort: number
  /** The name of the port of the pods; empty where it is a number. */
  readonly targetName: string
  /** The port at nodes; 0: it has none. */
  readonly nodePort: number
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

/** An Endpoints object: as many slices as it has subsets. */
export interface EndpointsObject {
  readonly slices: readonly SliceObject[]
}

/** A Pod, Node or Namespace. */
export interface ClusterObject {
  readonly object: ConfigObject
  /** For a Pod the name of the workload that made it. */
  readonly workload: string
  /** For a Node its addresses outside of the cluster. */
  readonly outside: readonly string[]
  /** For a Namespace the preference of its Services that have none. */
  readonly distribution: TrafficDistribution | undefined
}

/** What the objects of each kind are cut to. */
export interface CutObjects {
  Service: ServiceObject
  EndpointSlice: SliceObject
  Endpoints: EndpointsObject
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
  if (kind === 'Endpoints') return cutEndpoints(value, metadata, report)
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
    const protocol = port.protocol === 'UDP' ? 'udp' : protocolOf(textOf(port.appProtocol))
    const nodePort = isPort(port.nodePort) ? port.nodePort : 0
    const target = { targetPort: targetPort === port.port ? 0 : targetPort, targetName: textOf(port.targetPort) }
    return [{ name: textOf(port.name), number: port.port, protocol, ...target, nodePort }]
  })
  const all = list(spec.clusterIPs)
  const given = (all.length > 0 ? all : [spec.clusterIP]).filter((address) => address !== undefined && address !== '' && address !== 'None')
  const addresses = given.flatMap((address) => ipAddress(address, 'spec.clusterIPs', report))
  const annotations = names.canonicalKeys(textValues(metadata.annotations))
  const accounts = (name: string, fault: (value: string) => string | undefined) => {
    const key = `alpha.${names.domain}/${name}`
    return checked(listed(annotations[key]), key, fault, report)
  }
  const isExternal = spec.type === 'ExternalName'
  if (isExternal && textOf(spec.externalName) === '') {
    report.faults.push({ path: 'spec.externalName', reason: 'required for the type ExternalName, but missing' })
    return undefined
  }
  return {
    ...nameIn(metadata),
    createdAt: createdAt(metadata),
    addresses: isExternal ? [] : addresses,
    isHeadless: !isExternal && spec.clusterIP === 'None',
    externalName: isExternal ? textOf(spec.externalName).toLowerCase() : '',
    ports,
    exportTo: exportedTo(annotations, names, report),
    selector: isExternal ? undefined : selectorOf(spec, names),
    identities: accounts('canonical-serviceaccounts', identityFault),
    accounts: accounts('kubernetes-serviceaccounts', accountFault),
    distribution: distributions.get(textOf(spec.trafficDistribution)) ?? annotatedDistribution(annotations, names, report),
    outside: outsideOf(value, metadata, annotations, names, report),
  }
}

const listed = (value = ''): string[] => value.split(',').flatMap((item) => item.trim() || [])

/** The values of an annotation without those that are wrong, which are told. */
function checked(values: readonly string[], key: string, fault: (value: string) => string | undefined, report: Report): string[] {
  return values.filter((value) => {
    const reason = fault(value)
    if (reason !== undefined) report.faults.push({ path: `metadata.annotations[${key}]`, reason })
    return reason === undefined
  })
}

const accountFault = (value: string): string | undefined =>
  isObjectName(value) ? undefined : `${shown(value)} is not the name of a service account: it is no account of the endpoints`

const identityFault = (value: string): string | undefined =>
  /^\S{1,2048}$/.test(value) ? undefined : `${shown(value)} is not a name of a certificate: it is no account of the endpoints`

/**
 * The namespaces that see a Service by its annotation; undefined without one. Without any value that is right it is seen in its own namespace
 * only: whoever wrote the annotation meant to limit it.
 */
function exportedTo(annotations: Readonly<Record<string, string>>, { domain }: MeshNames, report: Report): readonly string[] | undefined {
  const key = `networking.${domain}/exportTo`
  const annotation = annotations[key]
  if (annotation === undefined) return undefined
  const values = listed(annotation)
  const consequence = 'without another value the Service is seen in its own namespace only'
  const right = checked(values, key, (value) => exportFault(value) && `${exportFault(value)}; ${consequence}`, report)
  return values.length > 0 && right.length === 0 ? ['.'] : right
}

function selectorOf({ selector }: Mapping, names: MeshNames): Readonly<Record<string, string>> | undefined {
  const labels = names.canonicalKeys(textValues(selector))
  return Object.keys(labels).length > 0 ? labels : undefined
}

const distributions: ReadonlyMap<string, TrafficDistribution> = new Map([
  ['PreferClose', 'PreferSameZone'],
  ['PreferSameZone', 'PreferSameZone'],
  ['PreferSameNode', 'PreferSameNode'],
])

/** The preference of an annotation. Another value than those that are known is told, and is none. */
function annotatedDistribution(
  annotations: Readonly<Record<string, string>>,
  { domain }: MeshNames,
  report: Report,
): TrafficDistribution | undefined {
  const key = `networking.${domain}/traffic-distribution`
  const annotation = annotations[key]
  const known = distributions.get(annotation ?? '')
  if (annotation !== undefined && annotation !== '' && !known)
    report.faults.push({
      path: `metadata.annotations[${key}]`,
      reason: `expected one of ${[...distributions.keys()].join(', ')}, got ${shown(annotation)}`,
    })
  return known
}

/** The port of the gateway of a network where no label names another. */
const gatewayPort = 15_443

function outsideOf(value: Mapping, metadata: Mapping, annotations: Record<string, string>, names: MeshNames, report: Report): ServiceOutside {
  const spec = mapping(value.spec)
  const labels = names.canonicalKeys(textValues(metadata.labels))
  const ingress = list(mapping(mapping(value.status).loadBalancer).ingress).map(mapping)
  const balanced = spec.type === 'LoadBalancer' ? ingress.flatMap(({ ip, hostname }) => textOf(ip) || textOf(hostname) || []) : []
  const addresses = [...list(spec.externalIPs).map(textOf), ...balanced].filter((address) => address !== '')
  const network = labels[`topology.${names.domain}/network`]
  const named = labels[`networking.${names.domain}/gatewayPort`]
  const port = named === undefined ? gatewayPort : Number(named)
  if (!isPort(port))
    report.faults.push({ path: `metadata.labels[networking.${names.domain}/gatewayPort]`, reason: `${shown(named)} is not a port number` })
  return {
    addresses: [...new Set(addresses.map((address) => (isIp(address) ? canonicalAddress(address) : address.toLowerCase())))],
    nodes: spec.type === 'NodePort' ? nodesOf(annotations[`traffic.${names.domain}/nodeSelector`], names, report) : undefined,
    gateway: network && isPort(port) ? { network, port } : undefined,
  }
}

/** The labels in the annotation `traffic.mesh.io/nodeSelector`, a mapping in JSON; undefined without it, and where it cannot be read. */
function nodesOf(annotation: string | undefined, names: MeshNames, report: Report): Readonly<Record<string, string>> | undefined {
  if (annotation === undefined) return undefined
  try {
    const value: unknown = JSON.parse(annotation.trim() === '' ? '{}' : annotation)
    if (isMapping(value) && Object.values(value).every((each) => typeof each === 'string'))
      return names.canonicalKeys(value as Record<string, string>)
  } catch {
    // Told below.
  }
  report.faults.push({
    path: `metadata.annotations[traffic.${names.domain}/nodeSelector]`,
    reason: `expected labels in JSON, such as {"kubernetes.io/os":"linux"}, got ${shown(annotation)}`,
  })
  return undefined
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
  const isAddressed = value.addressType === 'IPv4' || value.addressType === 'IPv6'
  if (!isAddressed) report.faults.push({ path: 'addressType', reason: `expected IPv4 or IPv6, got ${shown(value.addressType)}` })
  const { namespace, name } = nameIn(metadata)
  const endpoints = (isAddressed ? list(value.endpoints) : []).flatMap((item, index): SliceEndpoint[] => {
    const endpoint = mapping(item)
    const addresses = list(endpoint.addresses).flatMap((address) => ipAddress(address, `endpoints[${index}].addresses`, report))
    if (addresses.length === 0) return []
    const pod = podIn(mapping(endpoint.targetRef), namespace)
    return [{ addresses, readiness: readinessOf(mapping(endpoint.conditions)), pod, node: textOf(endpoint.nodeName) }]
  })
  return { namespace, name, service: textOf(labels['kubernetes.io/service-name']), ports: portsIn(value), endpoints }
}

/** Each subset of an Endpoints object becomes a slice: its ready addresses, and those that are not ready. */
function cutEndpoints(value: Mapping, metadata: Mapping, report: Report): EndpointsObject {
  const capacity = textValues(metadata.annotations)['endpoints.kubernetes.io/over-capacity']
  if (capacity !== undefined)
    report.faults.push({
      path: 'metadata.annotations[endpoints.kubernetes.io/over-capacity]',
      reason: 'the Service has more than 1,000 endpoints, of which the Endpoints object has only 1,000: PILOT_USE_ENDPOINT_SLICE=true reads all',
    })
  const { namespace, name } = nameIn(metadata)
  const slices = list(value.subsets).map((item, index): SliceObject => {
    const subset = mapping(item)
    const endpointsIn = (field: 'addresses' | 'notReadyAddresses', readiness: Readiness) =>
      list(subset[field]).flatMap((each): SliceEndpoint[] => {
        const { ip, targetRef, nodeName } = mapping(each)
        const addresses = ipAddress(ip, `subsets[${index}].${field}`, report)
        return addresses.length > 0 ? [{ addresses, readiness, pod: podIn(mapping(targetRef), namespace), node: textOf(nodeName) }] : []
      })
    const endpoints = [...endpointsIn('addresses', 'ready'), ...endpointsIn('notReadyAddresses', 'unready')]
    return { namespace, name, service: name, ports: portsIn(subset), endpoints }
  })
  return { slices }
}

const podIn = (target: Mapping, namespace: string): string =>
  target.kind === 'Pod' ? `${textOf(target.namespace) || namespace}/${textOf(target.name)}` : ''

/** A port without a number is every port, which no service of the mesh has. */
const portsIn = ({ ports }: Mapping): SliceObject['ports'] =>
  list(ports).flatMap((item) => {
    const port = mapping(item)
    return isPort(port.port) ? [{ name: textOf(port.name), number: port.port }] : []
  })

/** Conditions that are not set count as true for `ready`, which `serving` then follows. */
function readinessOf({ ready, serving, terminating }: Mapping): Readiness {
  if (terminating === true) return (serving ?? ready ?? true) === false ? 'unready' : 'terminating'
  return ready === false ? 'unready' : 'ready'
}

function cutClusterObject(
  kind: 'Pod' | 'Node' | 'Namespace',
  value: Mapping,
  metadata: Mapping,
  { names, source, cluster }: ObjectOrigin,
  report: Report,
): ClusterObject | undefined {
  const labels = readLabels(metadata, report)
  // Without its labels it would be another one to everything that selects it.
  if (!labels || report.faults.length > 0) return undefined
  const spec = readClusterSpec(kind, value, metadata, report)
  if (kind === 'Pod') checkTlsMode(labels, names, report)
  const annotations = kind === 'Namespace' ? names.canonicalKeys(textValues(metadata.annotations)) : {}
  const resourceVersion = textOf(metadata.resourceVersion)
  const object: ConfigObject = {
    ...{ kind, group: '', version: 'v1' },
    ...nameIn(metadata),
    labels,
    annotations: {},
    createdAt: createdAt(metadata),
    generation: 1,
    spec,
    ...{ source, cluster, uid: textOf(metadata.uid), resourceVersion },
    place: `cluster ${cluster}`,
  }
  return {
    object,
    workload: kind === 'Pod' ? workloadOf(metadata, object.name) : '',
    outside: kind === 'Node' ? externalAddresses(value) : [],
    distribution: annotatedDistribution(annotations, names, report),
  }
}

/** The label says how callers reach the pod. Another value than these counts as `disabled`, which is told. */
function checkTlsMode(labels: Readonly<Record<string, string>>, { domain }: MeshNames, report: Report): void {
  const key = `security.${domain}/tlsMode`
  const mode = labels[key]
  if (mode === undefined || mode === 'disabled' || isMutualTlsLabel(mode)) return
  const reason = `expected mesh, istio or disabled, got ${shown(mode)}: it counts as disabled, and callers send plain text to the pod`
  report.faults.push({ path: `metadata.labels[${key}]`, reason })
}

function externalAddresses({ status }: Mapping): string[] {
  const given = list(mapping(status).addresses).map(mapping)
  return given.flatMap(({ type, address }) => (type === 'ExternalIP' && isIp(textOf(address)) ? [canonicalAddress(textOf(address))] : []))
}

/** The name of the workload of a pod: of what owns it, without the hash of its template for a Deployment; its own without an owner. */
function workloadOf(metadata: Mapping, name: string): string {
  const owner = list(metadata.ownerReferences)
    .map(mapping)
    .find(({ controller }) => controller === true)
  if (!owner) return name
  const hash = textOf(mapping(metadata.labels)['pod-template-hash'])
  const owning = textOf(owner.name)
  return owner.kind === 'ReplicaSet' && hash !== '' && owning.endsWith(`-${hash}`) ? owning.slice(0, -hash.length - 1) : owning
}

const nameIn = (metadata: Mapping) => ({ namespace: textOf(metadata.namespace), name: textOf(metadata.name) })

function createdAt({ creationTimestamp }: Mapping): number {
  const created = Date.parse(textOf(creationTimestamp))
  return Number.isNaN(created) ? 0 : created
}

function ipAddress(address: unknown, path: string, report: Report): string[] {
  if (typeof address === 'string' && isIp(address)) return [canonicalAddress(address)]
  report.faults.push({ path, reason: `${shown(address)} is not an IP address` })
  return []
}

const isPort = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const textValues = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(mapping(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : typeof value === 'number' ? String(value) : typeof value
