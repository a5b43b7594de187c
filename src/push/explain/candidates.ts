/**
 * Gathers what may concern a resource of a proxy: the objects that the deciders of its view, routes, rules and policies choose among. What
 * becomes of them is not decided here but by making the resource (`trial.ts`), so that a needless object costs a trial and nothing else.
 */
import { hash } from 'node:crypto'
import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import type { ExplainInput, RegistryService } from '../../../protocols/messages/explain.ts'
import { configKey, keyAt, kindOfKey } from '../../config/kinds.ts'
import type { ResourceFault } from '../../model/faults.ts'
import { hostCovers, hostsOverlap } from '../../model/match.ts'
import { registryName, type ServiceState } from '../../registry/merged-services.ts'
import type { Gateway } from '../../snapshot/objects.ts'
import { podOf } from '../../snapshot/pods.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import { hostOf } from '../../xds/names.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../xds/type-urls.ts'
import { passedSettings } from '../passed-mesh.ts'
import type { Planner } from '../planner.ts'

/** Maximum number of hosts whose objects are gathered, and of workloads. */
const mostHosts = 40
const mostWorkloads = 100
/** Maximum size of a resource that is compared with what is made, in bytes. */
const mostDigested = 1_048_576
/** Maximum number of VirtualServices that are gathered. */
const mostRoutes = 40

/** Returns what may concern a resource of a proxy; undefined where the proxy is not known. */
export function explainInput(planner: Planner, connection: string, typeUrl: string, name: string): ExplainInput | undefined {
  const proxy = planner.proxies().find((each) => each.connection === connection)
  if (!proxy) return undefined
  const { snapshot } = planner
  const gathered = new Gathered(planner)
  const own = planner.instancesOf(proxy.node).map(({ service }) => service.hostname)
  const asked = hostsAsked(snapshot, typeUrl, name, own)
  for (const host of own) gathered.host(host)
  for (const host of asked.slice(0, mostHosts)) gathered.host(host)
  // A Sidecar that imports a VirtualService imports its destinations too. Route configurations and listeners have hosts of VirtualServices that are no services.
  const isOfPort = typeUrl === listenerType || typeUrl === routeType
  gathered.routes(isOfPort ? undefined : asked.slice(0, mostHosts), proxy.proxyClass?.gateways ?? [])
  for (const { gateways = [] } of Object.values(snapshot.networks.networks ?? {}))
    for (const { registryServiceName } of gateways) if (registryServiceName !== undefined) gathered.host(registryServiceName.toLowerCase())
  for (const { hostname } of planner.state.services.networkGateways) gathered.host(hostname)
  gathered.rules()
  gathered.ofProxy(proxy.node, typeUrl)
  gathered.ofClusters(proxy.node)
  const objects = [...gathered.objects.values()]
  return {
    ...passedSettings(planner),
    ...{ node: proxy.node, typeUrl, name, objects, services: [...gathered.services.values()] },
    leftOut: [...objects.flatMap((object) => planner.state.leftOut(configKey(object))), ...undiscovered(planner, asked)],
    ...(proxy.proxyClass ? foundIn(planner, proxy.proxyClass.id, typeUrl, name) : { exists: false, digest: undefined }),
    otherHosts: Math.max(0, asked.length - mostHosts) + gathered.left,
    told: [...planner.faults.all().filter(({ type }) => type !== 'definition' && type !== 'refused'), ...withdrawnFrom(planner, connection, name)]
      .filter(({ objects: of }) => of.some((key) => gathered.objects.has(key)))
      .map(({ resource, objects: of, reason, consequence }) => ({ resource, objects: of, reason, consequence })),
  }
}

/**
 * What the proxy refused, as far as it is why an object has no part: the EnvoyFilters whose patches were withdrawn from it, and what was replaced of
 * the resource. What another proxy refused, or what it has still in an earlier version, keeps no object out.
 */
const withdrawnFrom = (planner: Planner, connection: string, name: string): ResourceFault[] =>
  [...planner.refusals()]
    .filter((each) => each.connection === connection && each.isReplaced)
    .map(({ fault }) => fault)
    .filter(({ resource, objects }) => resource.endsWith(` ${name}`) || objects.every((key) => kindOfKey(key) === 'EnvoyFilter'))

/** Whether a class has a resource, and a digest of its content where that takes little time. */
function foundIn(planner: Planner, classId: string, typeUrl: string, name: string): Pick<ExplainInput, 'exists' | 'digest'> {
  const resource = resourceOf(planner, classId, typeUrl, name)
  const bytes = resource?.slices.reduce((sum, { length }) => sum + length, 0) ?? 0
  return { exists: resource !== undefined, digest: resource && bytes <= mostDigested ? hash('sha1', planner.groups.valueOf(resource)) : undefined }
}

/** Returns a digest of the content of a resource that a class of proxies has. */
export function digestOf(planner: Made, classId: string, typeUrl: string, name: string): string | undefined {
  const resource = resourceOf(planner, classId, typeUrl, name)
  return resource && hash('sha1', planner.groups.valueOf(resource))
}

type Made = Pick<Planner, 'present' | 'groups'>

function resourceOf({ present, groups }: Made, classId: string, typeUrl: string, name: string): Resource | undefined {
  const host = hostOf(typeUrl, name)
  const shown = (present.manifest(classId)?.groups[typeUrl] ?? []).filter(
    ({ group, hide }) => !hide.includes(host) && groups.resources(group).has(name),
  )
  const chosen = (shown.find(({ group }) => !groups.isLeaving(group, name)) ?? shown[0])?.group
  return chosen === undefined ? undefined : groups.resources(chosen).get(name)
}

/** The hosts that a resource is about, by its name: its own, those on its port, or those of the workload. */
function hostsAsked({ services }: MeshSnapshot, typeUrl: string, name: string, own: readonly string[]): string[] {
  const isOfPort = typeUrl === listenerType || typeUrl === routeType
  const host = hostOf(typeUrl, name)
  if (!isOfPort) return host === '' ? [...own] : [host]
  const port = Number(/(\d+)$/.exec(name)?.[1] ?? Number.NaN)
  const named = [...services].filter(([, states]) => states.some(({ service }) => service.ports.some(({ number }) => number === port)))
  return [...new Set([...own, ...named.map(([hostname]) => hostname)])]
}

/** The services, routes and rules of some hosts that are left out because their namespaces are not discovered. */
function undiscovered({ state }: Planner, hosts: readonly string[]): ExplainInput['leftOut'] {
  const concerned = state.undiscovered().filter(({ spec }) => {
    const { hosts: named = [], host = [] } = spec as { readonly hosts?: readonly string[]; readonly host?: string }
    return [named, host].flat().some((one) => hosts.some((other) => hostsOverlap(one.toLowerCase(), other)))
  })
  return concerned.slice(0, mostHosts).map((object) => ({
    object,
    reason: `namespace ${object.namespace} is not discovered: discoverySelectors do not select it (O3 in docs/resources.md)`,
  }))
}

/** What has been gathered. */
class Gathered {
  readonly objects = new Map<string, ConfigObject>()
  /** By registry and key. */
  readonly services = new Map<string, RegistryService>()
  readonly #planner: Planner
  readonly #hosts = new Set<string>()
  #workloads = 0
  #routes = 0
  /** The number of VirtualServices that were left out because there are too many. */
  left = 0

  constructor(planner: Planner) {
    this.#planner = planner
  }

  get #snapshot(): MeshSnapshot {
    return this.#planner.snapshot
  }

  /** Adds the definitions of a host, with their workloads. */
  host(host: string): void {
    if (this.#hosts.has(host)) return
    this.#hosts.add(host)
    for (const state of this.#snapshot.services.get(host) ?? []) this.#service(state)
  }

  #service({ service, endpoints }: ServiceState): void {
    const { state } = this.#planner
    const path = `${service.namespace}/${service.hostname}`
    for (const [source, record] of state.services.recordsAt(path)) {
      if (kindOfKey(source) === 'ServiceEntry') this.#key(source)
      // Endpoints that the Service has by selecting WorkloadEntries follow from these.
      else if (source === registryName(record.service)) {
        const { provider, cluster } = record.service
        this.services.set(`${source} ${path}`, { registry: { provider, cluster }, key: path, service: record.service, slices: record.slices })
      }
    }
    for (const { namespace, workload, node = '' } of endpoints) {
      if ((workload === '' && node === '') || this.#workloads >= mostWorkloads) continue
      this.#workloads++
      this.#key(configKey({ kind: 'WorkloadEntry', namespace, name: workload }))
      this.#inClusters('Pod', namespace, workload)
      this.#inClusters('Node', '', node)
    }
  }

  /** Adds the VirtualServices of hosts (undefined: of all) and of gateways, with their hosts, delegates and destinations. */
  routes(hosts: readonly string[] | undefined, gateways: readonly string[]): void {
    const concerns = (route: ResolvedVirtualService) =>
      !hosts ||
      route.gateways.some((gateway) => gateways.includes(gateway)) ||
      [...route.hosts, ...route.destinations].some((one) => hosts.some((other) => hostsOverlap(one, other)))
    for (const route of this.#snapshot.virtualServices.all) {
      if (!concerns(route)) continue
      if (++this.#routes > mostRoutes) {
        this.left++
        continue
      }
      for (const source of [route.source, ...route.sources]) this.#add(source)
      for (const { delegate } of route.source.spec.http ?? [])
        if (delegate) this.#key(keyAt('VirtualService', `${delegate.namespace || route.namespace}/${delegate.name}`))
      for (const destination of [...route.hosts, ...route.destinations]) if (this.#hosts.size < 2 * mostHosts) this.host(destination)
    }
  }

  /** Adds the DestinationRules for the hosts that were added, of all namespaces. */
  rules(): void {
    for (const { exact, wildcards } of this.#snapshot.destinationRules.byNamespace.values()) {
      for (const host of this.#hosts) for (const source of exact.get(host)?.sources ?? []) this.#add(source)
      for (const rule of wildcards)
        if ([...this.#hosts].some((host) => hostCovers(rule.host, host))) for (const source of rule.sources) this.#add(source)
    }
  }

  /** Adds what a proxy of a namespace may be selected by. */
  ofProxy({ namespace, type }: ProxyNode, typeUrl: string): void {
    const { sidecars, envoyFilters, gateways, policies, mesh } = this.#snapshot
    const both = new Set([namespace, mesh.rootNamespace])
    // The Gateways of networks decide which endpoints these lead to.
    const deciding = typeUrl === endpointType || typeUrl === clusterType ? this.#passing() : []
    for (const gateway of type === 'router' ? gateways : deciding) this.#add(gateway)
    if (type !== 'router') for (const each of both) for (const sidecar of sidecars.get(each) ?? []) this.#add(sidecar)
    for (const filter of envoyFilters) if (both.has(filter.namespace)) this.#add(filter)
    // The modes of workloads decide which endpoints gateways of networks reach; the other policies are in listeners only.
    const owners = [...this.#hosts].flatMap((host) => (this.#snapshot.services.get(host) ?? []).map(({ service }) => service.namespace))
    for (const each of new Set(['', ...both, ...owners])) for (const policy of policies.peers.get(each) ?? []) this.#add(policy)
    if (typeUrl !== listenerType) return
    for (const each of new Set(['', ...both]))
      for (const list of [policies.authorization, policies.requests]) for (const policy of list.get(each) ?? []) this.#add(policy)
  }

  /** The Gateways by which gateways of networks pass calls on. */
  #passing(): readonly Gateway[] {
    const { gateways, networkGateways } = this.#snapshot
    const passedOn = [...networkGateways.values()].flatMap((ofNetwork) => [...ofNetwork.values()].flat())
    const paths = new Set(passedOn.flatMap((each) => each.passedOn?.gateways ?? []))
    return gateways.filter(({ namespace, name }) => paths.has(`${namespace}/${name}`))
  }

  /** Adds the pod of the proxy with its node, and the namespaces by whose labels the others are discovered or have a network. */
  ofClusters(node: ProxyNode): void {
    const { pods, mesh, settings } = this.#snapshot
    const pod = podOf({ isAny: true, get: (key) => pods.get(key) }, node)
    if (pod) {
      this.#add(pod)
      this.#inClusters('Node', '', pod.spec.node)
    }
    const namespaces = new Set([settings.features.POD_NAMESPACE])
    if ((mesh.discoverySelectors ?? []).length > 0) {
      for (const { namespace } of this.objects.values()) namespaces.add(namespace)
      for (const { service } of this.services.values()) namespaces.add(service.namespace)
    }
    for (const name of namespaces) this.#inClusters('Namespace', '', name)
  }

  #inClusters(kind: string, namespace: string, name: string): void {
    for (const object of this.#planner.state.inClusters(kind, namespace, name)) this.#add(object)
  }

  #key(key: string): void {
    const object = this.#planner.state.objects.get(key)
    if (object) this.objects.set(key, object)
  }

  #add(object: ConfigObject): void {
    this.objects.set(configKey(object), object)
  }
}
