/** The services and endpoints of a cluster, from its Services, EndpointSlices, Pods and Nodes (docs/resources.md, O6 to O9). */
import type { Endpoint, EndpointSlice, OutsideAccess, PodSpec, RegistryId, Service, TrafficDistribution } from '../../protocols/data.ts'
import { labelsMatch } from '../model/match.ts'
import { selectProtocol } from '../model/protocol.ts'
import { localityLabel, type MeshNames } from '../names/mesh-names.ts'
import { nodeLocality } from '../registry/node-localities.ts'
import type { ClusterObject, CutObjects, EndpointsObject, FollowedKind, ServiceObject, SliceEndpoint, SliceObject } from './objects.ts'

/** What has changed of a service. */
export type RegistryChange =
  | { readonly type: 'service'; readonly key: string; readonly service: Service | undefined; readonly slices: readonly EndpointSlice[] }
  | { readonly type: 'slice'; readonly key: string; readonly part: string; readonly slice: EndpointSlice | undefined }

/** Settings of a registry. */
export interface RegistrySettings {
  readonly names: MeshNames
  /** The domain of the cluster: `cluster.local`. */
  readonly domain: string
  /** The id of the cluster. */
  readonly cluster: string
}

/** The number of localities whose labels are kept: the labels of pods may name any. */
const mostTopologies = 1000

/** Collects the objects of a cluster, and tells what follows from them. Keys of objects are `<namespace>/<name>`. */
export class ClusterRegistry {
  readonly id: RegistryId
  readonly #settings: RegistrySettings
  readonly #services = new Map<string, ServiceObject>()
  readonly #slices = new Map<string, SliceObject>()
  readonly #pods = new Map<string, ClusterObject>()
  readonly #nodes = new Map<string, ClusterObject>()
  /** The keys of the slices of a service. */
  readonly #slicesOf = new Map<string, Set<string>>()
  /** The keys of the slices with an endpoint that is a pod, or on a node. */
  readonly #slicesWith = { pod: new Map<string, Set<string>>(), node: new Map<string, Set<string>>() }
  /** The pods on a node. */
  readonly #podsOn = new Map<string, Set<string>>()
  /** The number of slices of each Endpoints object. */
  readonly #subsets = new Map<string, number>()
  /** The preferences of namespaces for the endpoints of their Services. */
  readonly #distributions = new Map<string, TrafficDistribution>()
  /** The Services that are reached by the addresses of nodes. */
  readonly #atNodes = new Set<string>()
  /** The pods that endpoints wait for, by slice. */
  readonly #awaited = new Map<string, ReadonlySet<string>>()
  #awaitedEver = 0
  #serviceChanges = 0
  /** The labels of localities that endpoints have. */
  readonly #topologies = new Map<string, Readonly<Record<string, string>>>()
  readonly #changedServices = new Set<string>()
  readonly #changedSlices = new Map<string, string>()

  constructor(settings: RegistrySettings) {
    this.#settings = settings
    this.id = { provider: 'Orchestrator', cluster: settings.cluster }
  }

  /** The number of endpoints whose pods are not known; these get no traffic. */
  get awaitedPods(): number {
    let sum = 0
    for (const pods of this.#awaited.values()) sum += pods.size
    return sum
  }

  /** The number of times that an endpoint came whose pod was not known. */
  get awaitedEver(): number {
    return this.#awaitedEver
  }

  /** The number of changes of Services so far. */
  get serviceChanges(): number {
    return this.#serviceChanges
  }

  /** The Service of a key. */
  service(key: string): ServiceObject | undefined {
    return this.#services.get(key)
  }

  /** The addresses outside of the cluster of the nodes of running pods of a namespace whose labels are accepted. */
  nodeAddresses(namespace: string, accepts: (labels: Readonly<Record<string, string>>) => boolean): string[] {
    return [...this.#pods.values()].flatMap(({ object }) => {
      const { node, addresses } = object.spec as PodSpec
      if (object.namespace !== namespace || addresses.length === 0 || !accepts(object.labels)) return []
      return this.#nodes.get(node)?.outside.slice(0, 1) ?? []
    })
  }

  /** Adds, replaces or removes an object. What follows from it is told by {@link take}. */
  set<Kind extends FollowedKind>(kind: Kind, key: string, object: CutObjects[Kind] | undefined): void {
    if (kind === 'Service') this.#setService(key, object as ServiceObject | undefined)
    else if (kind === 'EndpointSlice') this.#setSlice(key, object as SliceObject | undefined)
    else if (kind === 'Endpoints') this.#setEndpoints(key, object as EndpointsObject | undefined)
    else if (kind === 'Pod') this.#setPod(key, object as ClusterObject | undefined)
    else if (kind === 'Namespace') this.#setNamespace(key.slice(key.indexOf('/') + 1), object as ClusterObject | undefined)
    else if (kind === 'Node') this.#setNode(key, object as ClusterObject | undefined)
  }

  /** Returns the changes since the last call. */
  take(): RegistryChange[] {
    const changes: RegistryChange[] = []
    for (const key of this.#changedServices) changes.push(this.#serviceChange(key))
    for (const [key, service] of this.#changedSlices) {
      const of = this.#services.get(service)
      // The endpoint of an ExternalName is the host that it names.
      if (of?.externalName !== '' || this.#changedServices.has(service)) continue
      const slice = this.#slices.get(key)
      const counts = slice && slicesService(slice) === service
      changes.push({ type: 'slice', key: this.#serviceKey(service), part: key, slice: counts ? this.#sliceOf(key, slice, of) : undefined })
    }
    this.#changedServices.clear()
    this.#changedSlices.clear()
    return changes
  }

  /** Returns all services with all slices, as {@link take} would if all had changed. */
  all(): RegistryChange[] {
    return [...this.#services.keys()].map((key) => this.#serviceChange(key))
  }

  #serviceChange(key: string): RegistryChange {
    const of = this.#services.get(key)
    const keys = [...(this.#slicesOf.get(key) ?? [])]
    // Endpoints that nobody is told of wait for no pod.
    if (of?.externalName !== '') for (const slice of keys) this.#awaited.delete(slice)
    if (!of) return { type: 'service', key: this.#serviceKey(key), service: undefined, slices: [] }
    const slices =
      of.externalName === '' ? keys.map((slice) => this.#sliceOf(slice, this.#slices.get(slice) as SliceObject, of)) : [externalSlice(of)]
    return { type: 'service', key: this.#serviceKey(key), service: this.#serviceOf(of), slices }
  }

  #serviceKey(key: string): string {
    const slash = key.indexOf('/')
    return `${key.slice(0, slash)}/${this.#hostname(key.slice(0, slash), key.slice(slash + 1))}`
  }

  #hostname = (namespace: string, name: string): string => `${name}.${namespace}.svc.${this.#settings.domain}`

  #setService(key: string, service: ServiceObject | undefined): void {
    this.#serviceChanges++
    if (service) this.#services.set(key, service)
    else if (!this.#services.delete(key)) return
    if (service?.outside.nodes) this.#atNodes.add(key)
    else this.#atNodes.delete(key)
    this.#changedServices.add(key)
  }

  /** An Endpoints object is as many slices as it has subsets. */
  #setEndpoints(key: string, endpoints: EndpointsObject | undefined): void {
    const slices = endpoints?.slices ?? []
    for (let at = slices.length; at < (this.#subsets.get(key) ?? 0); at++) this.#setSlice(`${key} ${at}`, undefined)
    for (const [at, slice] of slices.entries()) this.#setSlice(`${key} ${at}`, slice)
    if (slices.length > 0) this.#subsets.set(key, slices.length)
    else this.#subsets.delete(key)
  }

  #setSlice(key: string, slice: SliceObject | undefined): void {
    const before = this.#slices.get(key)
    if (before) {
      drop(this.#slicesOf, slicesService(before), key)
      for (const { pod, node } of before.endpoints) {
        drop(this.#slicesWith.pod, pod, key)
        drop(this.#slicesWith.node, node, key)
      }
      this.#sliceChanged(key, before)
    }
    this.#awaited.delete(key)
    if (!slice) return void this.#slices.delete(key)
    this.#slices.set(key, slice)
    put(this.#slicesOf, slicesService(slice), key)
    for (const { pod, node } of slice.endpoints) {
      if (pod !== '') put(this.#slicesWith.pod, pod, key)
      if (node !== '') put(this.#slicesWith.node, node, key)
    }
    this.#sliceChanged(key, slice)
  }

  #sliceChanged(key: string, slice: SliceObject): void {
    const service = slicesService(slice)
    const other = this.#changedSlices.get(key)
    // A slice that went from one service to another changes both.
    if (other !== undefined && other !== service) for (const each of [other, service]) if (this.#services.has(each)) this.#changedServices.add(each)
    this.#changedSlices.set(key, service)
  }

  #setPod(key: string, pod: ClusterObject | undefined): void {
    const before = this.#pods.get(key)
    if (before) drop(this.#podsOn, nodeOf(before), key)
    if (pod) {
      this.#pods.set(key, pod)
      put(this.#podsOn, nodeOf(pod), key)
    } else this.#pods.delete(key)
    if (before && pod && isAlike(before, pod)) return
    this.#remake(this.#slicesWith.pod.get(key))
  }

  #setNamespace(name: string, namespace: ClusterObject | undefined): void {
    const before = this.#distributions.get(name)
    if (namespace?.distribution) this.#distributions.set(name, namespace.distribution)
    else this.#distributions.delete(name)
    if (before === namespace?.distribution) return
    for (const key of this.#services.keys()) if (key.startsWith(`${name}/`)) this.#changedServices.add(key)
  }

  #setNode(key: string, node: ClusterObject | undefined): void {
    const name = key.slice(key.indexOf('/') + 1)
    const before = this.#nodes.get(name)
    if (node) this.#nodes.set(name, node)
    else this.#nodes.delete(name)
    for (const service of this.#atNodes) {
      const { nodes } = (this.#services.get(service) as ServiceObject).outside
      const [had, has] = [before, node].map((each) => (each ? outsideAddresses(each, nodes) : []).join())
      if (had !== has) this.#changedServices.add(service)
    }
    if (localityOf(before, this.#settings.names) === localityOf(node, this.#settings.names)) return
    this.#remake(this.#slicesWith.node.get(name))
    for (const pod of this.#podsOn.get(name) ?? []) this.#remake(this.#slicesWith.pod.get(pod))
  }

  #remake(slices: Iterable<string> = []): void {
    for (const key of slices) this.#sliceChanged(key, this.#slices.get(key) as SliceObject)
  }

  #serviceOf(of: ServiceObject): Service {
    const { namespace, name, addresses, isHeadless, externalName, ports, exportTo = [], createdAt, selector, identities, accounts } = of
    const distribution = of.distribution ?? this.#distributions.get(namespace)
    const outside = this.#outsideOf(of)
    return {
      hostname: this.#hostname(namespace, name),
      ...{ namespace, name, ...this.id, addresses },
      ports: ports.map(({ name: port, number, protocol, targetPort, targetName }) => ({
        number,
        name: port,
        protocol: selectProtocol(protocol, port, number),
        targetPort,
        ...(targetName === '' ? {} : { targetName }),
      })),
      resolution: externalName !== '' ? 'dns' : isHeadless ? 'passthrough' : 'static',
      external: externalName !== '',
      exportTo,
      serviceAccounts: identities,
      ...(accounts.length > 0 ? { ownAccounts: accounts } : {}),
      selector,
      ...(outside ? { outside } : {}),
      ...(distribution ? { distribution } : {}),
      createdAt,
    }
  }

  #outsideOf({ outside: { addresses, nodes, gateway }, ports }: ServiceObject): OutsideAccess | undefined {
    const ofNodes = nodes ? [...this.#nodes.values()].flatMap((node) => outsideAddresses(node, nodes)) : []
    const isOfNodes = ofNodes.length > 0
    if (addresses.length === 0 && !isOfNodes) return undefined
    return {
      addresses: isOfNodes ? [...new Set(ofNodes)].sort() : addresses,
      ports: isOfNodes ? Object.fromEntries(ports.flatMap(({ number, nodePort }) => (nodePort > 0 ? [[number, nodePort]] : []))) : {},
      ...(gateway ? { gateway } : {}),
    }
  }

  #sliceOf(key: string, slice: SliceObject, { ports }: ServiceObject): EndpointSlice {
    const byName = Object.fromEntries(slice.ports.map(({ name, number }) => [name, number]))
    const isWhole = ports.every(({ name }) => Object.hasOwn(byName, name))
    const serves = isWhole ? undefined : ports.flatMap(({ name }) => (Object.hasOwn(byName, name) ? name : []))
    const awaited = new Set<string>()
    const endpoints = slice.endpoints.flatMap((endpoint) => {
      const pod = this.#pods.get(endpoint.pod)
      if (endpoint.pod !== '' && !pod) {
        awaited.add(endpoint.pod)
        return []
      }
      const common = this.#endpointParts(slice, endpoint, pod)
      return endpoint.addresses.map((address): Endpoint => ({ address, ports: byName, ...(serves ? { serves } : {}), ...common }))
    })
    const before = this.#awaited.get(key)
    for (const pod of awaited) if (!before?.has(pod)) this.#awaitedEver++
    if (awaited.size > 0) this.#awaited.set(key, awaited)
    else this.#awaited.delete(key)
    return { key, version: '', endpoints }
  }

  /** The labels of a locality, of which there are few. */
  #topology(locality: string): Readonly<Record<string, string>> {
    const known = this.#topologies.get(locality)
    if (known) return known
    if (this.#topologies.size >= mostTopologies) this.#topologies.clear()
    const labels = topologyLabels(locality, this.#settings.names)
    this.#topologies.set(locality, labels)
    return labels
  }

  /** What the pod and the node of an endpoint say of it. */
  #endpointParts(
    { namespace }: SliceObject,
    { node, readiness }: SliceEndpoint,
    pod: ClusterObject | undefined,
  ): Omit<Endpoint, 'address' | 'ports'> {
    const { names, cluster } = this.#settings
    const on = (pod && nodeOf(pod)) || node
    const labels = pod?.object.labels ?? {}
    const ofNode = localityOf(this.#nodes.get(on), names)
    const locality = localityLabel(labels) ?? ofNode
    // Without a proxy beside it, which the label tells, a pod accepts no mutual TLS, whatever its service account.
    const mode = `security.${names.domain}/tlsMode`
    const plain = pod && !Object.hasOwn(labels, mode) ? { [mode]: 'disabled' } : {}
    return {
      labels: { ...labels, ...plain, ...this.#topology(locality), [`topology.${names.domain}/cluster`]: cluster },
      locality,
      network: labels[`topology.${names.domain}/network`] ?? '',
      weight: 1,
      serviceAccount: pod ? (pod.object.spec as { readonly serviceAccount: string }).serviceAccount : '',
      namespace: pod?.object.namespace ?? namespace,
      workload: pod?.workload ?? '',
      ...(on === '' ? {} : { node: on }),
      ...(readiness === 'ready' ? {} : { readiness }),
    }
  }
}

const slicesService = ({ namespace, service }: SliceObject): string => `${namespace}/${service}`
const nodeOf = ({ object }: ClusterObject): string => (object.spec as { readonly node: string }).node

/** The first external address of a node that a Service is reached at, if the node has the labels. */
const outsideAddresses = (node: ClusterObject, wanted: Readonly<Record<string, string>> | undefined): readonly string[] =>
  labelsMatch(wanted, node.object.labels) ? node.outside.slice(0, 1) : []

/** The one endpoint of a Service of type ExternalName: the host that it stands for. */
function externalSlice({ externalName, namespace }: ServiceObject): EndpointSlice {
  const endpoint: Endpoint = {
    ...{ address: externalName, ports: {}, labels: {}, locality: '', network: '', weight: 1 },
    ...{ serviceAccount: '', namespace, workload: '' },
  }
  return { key: '', version: '', endpoints: [endpoint] }
}

/** Whether two states of a pod make no difference to endpoints. */
function isAlike(one: ClusterObject, other: ClusterObject): boolean {
  const parts = ({ object: { labels, spec }, workload }: ClusterObject) => {
    const { node, serviceAccount } = spec as { readonly node: string; readonly serviceAccount: string }
    return JSON.stringify([labels, node, serviceAccount, workload])
  }
  return parts(one) === parts(other)
}

/** The locality of a node; empty without one. */
const localityOf = (node: ClusterObject | undefined, { domain }: MeshNames): string => (node ? nodeLocality(node.object.labels, domain) : '')

function topologyLabels(locality: string, { domain }: MeshNames): Record<string, string> {
  const [region = '', zone = '', subzone = ''] = locality.split('/')
  const all = { 'topology.kubernetes.io/region': region, 'topology.kubernetes.io/zone': zone, [`topology.${domain}/subzone`]: subzone }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

function put(index: Map<string, Set<string>>, at: string, key: string): void {
  const known = index.get(at)
  if (known) known.add(key)
  else index.set(at, new Set([key]))
}

function drop(index: Map<string, Set<string>>, at: string, key: string): void {
  const known = index.get(at)
  known?.delete(key)
  if (known?.size === 0) index.delete(at)
}
