/** The snapshot as generators read it, with every read recorded. Parts without questions of their own are recorded as a whole. */

import type { Pod, ProxyNode } from '../../../protocols/data.ts'
import { sameItems } from '../../model/lists.ts'
import { differingKeys } from '../../model/overlaid-map.ts'
import { reachesClusters, type ServiceState } from '../../registry/merged-services.ts'
import { type DestinationRuleIndex, differingRules, type MergedRule, sameTcpSettings } from '../../snapshot/destination-rules.ts'
import { type PodIndex, podOf, sameNodes, samePods } from '../../snapshot/pods.ts'
import type { MeshSnapshot, Settings } from '../../snapshot/snapshot.ts'
import type { HostLookup, ResolvedVirtualService, VirtualServiceIndex } from '../../snapshot/virtual-services.ts'
import type { Difference, Visibility } from '../../snapshot/visibility.ts'
import type { SelectedWorkload, SelectingObjects } from '../classes/selecting-objects.ts'
import type { Dependencies, Topic } from './dependencies.ts'
import { SelectingReader } from './selecting-reader.ts'

type Recording = Dependencies<MeshSnapshot>
type About<Value> = Topic<MeshSnapshot, Value>

/** Parts of the snapshot that are recorded as a whole. */
const wholes = {
  mesh: { of: ({ mesh }) => mesh } satisfies About<unknown>,
  networks: { of: ({ networks }) => networks } satisfies About<unknown>,
  systemNetworks: { of: ({ systemNetworks }) => systemNetworks } satisfies About<unknown>,
  nodeHosts: { of: ({ nodeHosts }) => nodeHosts } satisfies About<unknown>,
  networkGateways: { of: ({ networkGateways }) => networkGateways } satisfies About<unknown>,
  virtualServices: { of: ({ virtualServices }) => virtualServices } satisfies About<VirtualServiceIndex>,
  gateways: { of: ({ gateways }) => gateways } satisfies About<unknown>,
  envoyFilters: { of: ({ envoyFilters }) => envoyFilters } satisfies About<unknown>,
}
const itself = <Value>(value: Value): Value => value

const callerLabels: About<VirtualServiceIndex['byCallerLabel']> = { of: ({ virtualServices }) => virtualServices.byCallerLabel }
const rulesOf = ({ destinationRules }: MeshSnapshot): DestinationRuleIndex => destinationRules
/** Topics of questions about the rule for a host, and about its settings for TCP connections. */
const rulesOfHosts: Record<'any' | 'tcp', About<DestinationRuleIndex>> = {
  any: { of: rulesOf, changed: differingRules },
  tcp: { of: rulesOf, changed: differingRules },
}
/** Answers a question about a rule, whose key is `<namespace> <host>`. */
const ruleIn = (rules: DestinationRuleIndex, key: string): MergedRule | undefined => {
  const space = key.indexOf(' ')
  return rules.of(key.slice(0, space), key.slice(space + 1))
}
const anyPods: About<PodIndex> = { of: ({ pods }) => pods }
const isAnyIn = (pods: PodIndex): boolean => pods.size > 0
const anyNodeHosts: About<MeshSnapshot['nodeHosts']> = { of: ({ nodeHosts }) => nodeHosts }
const isAnyOf = (hosts: ReadonlySet<string>): boolean => hosts.size > 0
const vips: About<MeshSnapshot['vipClusters']> = { of: ({ vipClusters }) => vipClusters }
const hasVips = (clusters: ReadonlySet<string>, cluster: string): boolean => clusters.has(cluster)
const allocations: About<MeshSnapshot['allocated']> = { of: ({ allocated }) => allocated }

/** A snapshot of which every read is recorded. */
export class SnapshotReader implements MeshSnapshot {
  readonly #record: Recording
  readonly services: RecordedMap<readonly ServiceState[]>
  /** The same services for readers of their endpoints, which are outdated by every change. */
  readonly endpoints: RecordedMap<readonly ServiceState[]>
  readonly allocated: MeshSnapshot['allocated']
  readonly sidecars: MeshSnapshot['sidecars']
  readonly keySets: MeshSnapshot['keySets']
  readonly destinationRules: MeshSnapshot['destinationRules']
  readonly policies: MeshSnapshot['policies']
  readonly virtualServices: VirtualServiceIndex
  readonly visibility: Visibility
  readonly pods: RecordedMap<readonly Pod[]>
  /** The same pods for readers of their nodes. */
  readonly #podsOnNodes: RecordedMap<readonly Pod[]>
  readonly #selecting: SelectingReader

  constructor(record: Recording) {
    this.#record = record
    this.#selecting = new SelectingReader(record)
    this.services = new RecordedMap(record, ({ services }) => services, sameServices)
    this.endpoints = new RecordedMap(record, ({ services }) => services)
    this.allocated = {
      of: (service, family) =>
        record.read(allocations, `${family}|${service.namespace}/${service.hostname}`, (allocated) => allocated.of(service, family)),
    }
    this.sidecars = new RecordedMap(record, ({ sidecars }) => sidecars, sameItems)
    this.pods = new RecordedMap(record, ({ pods }) => pods, samePods)
    this.#podsOnNodes = new RecordedMap(record, ({ pods }) => pods, sameNodes)
    this.keySets = new RecordedMap(record, ({ keySets }) => keySets)
    this.destinationRules = {
      byNamespace: new RecordedMap(record, ({ destinationRules }) => destinationRules.byNamespace),
      withTcpSettings: new RecordedMap(record, ({ destinationRules }) => destinationRules.withTcpSettings),
      namespaces: new RecordedMap(record, ({ destinationRules }) => destinationRules.namespaces),
      of: (namespace, host) => record.read(rulesOfHosts.any, `${namespace} ${host}`, ruleIn),
      tcpOf: (namespace, host) => record.read(rulesOfHosts.tcp, `${namespace} ${host}`, ruleIn, sameTcpSettings),
    }
    this.policies = {
      authorization: new RecordedMap(record, ({ policies }) => policies.authorization, sameItems),
      requests: new RecordedMap(record, ({ policies }) => policies.requests, sameItems),
      peers: new RecordedMap(record, ({ policies }) => policies.peers, sameItems),
    }
    this.virtualServices = new VirtualServicesReader(record)
    this.visibility = new VisibilityReader(record)
  }

  get settings(): Settings {
    return this.#record.state.settings
  }

  /** The objects that select a workload. */
  selecting(workload: SelectedWorkload): SelectingObjects {
    return this.#selecting.select(workload)
  }

  /** The pod of a proxy. A changed pod outdates the proxies that it may be the pod of. */
  podOf(node: ProxyNode): Pod | undefined {
    const isAny = this.#record.read(anyPods, '', isAnyIn)
    return podOf({ isAny, get: (key) => this.pods.get(key) }, node)
  }

  /** The names of the labels by which matches of routes and listeners select callers, sorted. */
  get callerLabels(): readonly string[] {
    return this.#record.read(callerLabels, '', (labels) => [...labels.keys()].sort(), sameItems)
  }

  get mesh(): MeshSnapshot['mesh'] {
    return this.#record.read(wholes.mesh, '', itself)
  }

  get networks(): MeshSnapshot['networks'] {
    return this.#record.read(wholes.networks, '', itself)
  }

  /** The node of the pod of a proxy, empty if it is not known; undefined where it matters to no service. */
  clusterNodeOf(node: ProxyNode): string | undefined {
    if (!this.#record.read(anyNodeHosts, '', isAnyOf)) return undefined
    const isAny = this.#record.read(anyPods, '', isAnyIn)
    return podOf({ isAny, get: (key) => this.#podsOnNodes.get(key) }, node)?.spec.node ?? ''
  }

  get nodeHosts(): MeshSnapshot['nodeHosts'] {
    return this.#record.read(wholes.nodeHosts, '', itself)
  }

  /** Whether some service has addresses of its own in a cluster. */
  hasVipsIn(cluster: string): boolean {
    return this.#record.read(vips, cluster, hasVips)
  }

  get vipClusters(): MeshSnapshot['vipClusters'] {
    return this.#record.read(vips, '', itself)
  }

  get systemNetworks(): MeshSnapshot['systemNetworks'] {
    return this.#record.read(wholes.systemNetworks, '', itself)
  }

  get networkGateways(): MeshSnapshot['networkGateways'] {
    return this.#record.read(wholes.networkGateways, '', itself)
  }

  get gateways(): MeshSnapshot['gateways'] {
    return this.#record.read(wholes.gateways, '', itself)
  }

  get envoyFilters(): MeshSnapshot['envoyFilters'] {
    return this.#record.read(wholes.envoyFilters, '', itself)
  }
}

/** All VirtualServices, with every read recorded; those with `sourceLabels` are recorded by label. */
class VirtualServicesReader implements VirtualServiceIndex {
  readonly #record: Recording
  readonly byCallerLabel: VirtualServiceIndex['byCallerLabel']

  constructor(record: Recording) {
    this.#record = record
    this.byCallerLabel = new RecordedMap(record, ({ virtualServices }) => virtualServices.byCallerLabel, sameItems)
  }

  get all(): VirtualServiceIndex['all'] {
    return this.#record.read(wholes.virtualServices, '', itself).all
  }

  get missingDelegates(): VirtualServiceIndex['missingDelegates'] {
    return this.#record.read(wholes.virtualServices, '', itself).missingDelegates
  }
}

const allHosts: About<Visibility['hosts']> = { of: ({ visibility }) => visibility.hosts }
const allNames: About<Visibility['names']> = { of: ({ visibility }) => visibility.names }
const coveredIn = (names: Visibility['names'], pattern: string): readonly string[] => names.covered(pattern)

/** The visibility index, with every read recorded. */
class VisibilityReader implements Visibility {
  readonly #record: Recording
  readonly hostsOf: Visibility['hostsOf']
  readonly hostsNaming: Visibility['hostsNaming']
  readonly virtualServicesOf: Visibility['virtualServicesOf']
  readonly differences: ReadonlyMap<string, Difference>
  readonly names: Visibility['names']
  readonly virtualServices: HostLookup

  constructor(record: Recording) {
    this.#record = record
    this.hostsOf = new RecordedMap(record, ({ visibility }) => visibility.hostsOf, sameItems)
    this.hostsNaming = new RecordedMap(record, ({ visibility }) => visibility.hostsNaming, sameItems)
    this.virtualServicesOf = new RecordedMap(record, ({ visibility }) => visibility.virtualServicesOf, sameItems)
    this.differences = new RecordedMap(record, ({ visibility }) => visibility.differences)
    this.names = { covered: (pattern) => record.read(allNames, pattern, coveredIn, sameItems) }
    this.virtualServices = new RecordedLookup(record)
  }

  get hosts(): readonly string[] {
    return this.#record.read(allHosts, '', itself, sameItems)
  }
}

const lookup = ({ visibility }: MeshSnapshot): HostLookup => visibility.virtualServices
/** Topics of questions about one host, and about all hosts. */
const routesOfHosts: Record<'find' | 'covering', About<HostLookup>> = {
  find: { of: lookup, changed: differingHosts },
  covering: { of: lookup, changed: differingHosts },
}
const findIn = (there: HostLookup, host: string): ResolvedVirtualService | undefined => there.find(host)
const coveringIn = (there: HostLookup, host: string): readonly ResolvedVirtualService[] => there.covering(host)
const allRoutes: Record<'all' | 'hosts', About<HostLookup>> = { all: { of: lookup }, hosts: { of: lookup } }

class RecordedLookup implements HostLookup {
  readonly #record: Recording

  constructor(record: Recording) {
    this.#record = record
  }

  get all(): readonly ResolvedVirtualService[] {
    return this.#record.read(allRoutes.all, '', ({ all }) => all, sameItems)
  }

  find(host: string): ResolvedVirtualService | undefined {
    return this.#record.read(routesOfHosts.find, host, findIn)
  }

  covering(host: string): readonly ResolvedVirtualService[] {
    return this.#record.read(routesOfHosts.covering, host, coveringIn, sameItems)
  }

  hosts(): readonly string[] {
    return this.#record.read(allRoutes.hosts, '', (there) => [...there.hosts()], sameItems)
  }
}

/** Hosts of the VirtualServices that are in only one of two lookups. Undefined when one of them is a wildcard, which may cover any host. */
function differingHosts(before: HostLookup, now: HostLookup): readonly string[] | undefined {
  const [one, other] = [new Set(before.all), new Set(now.all)]
  const hosts = [...before.all.filter((each) => !other.has(each)), ...now.all.filter((each) => !one.has(each))].flatMap((each) => each.hosts)
  return hosts.some((host) => host.startsWith('*')) ? undefined : hosts
}

/** A map of the state of which each lookup is recorded by its key, whether or not the key is there. */
export class RecordedMap<Value> implements ReadonlyMap<string, Value> {
  readonly #record: Recording
  readonly #entries: About<ReadonlyMap<string, Value>>
  readonly #presence: About<ReadonlyMap<string, Value>>
  readonly #whole: About<ReadonlyMap<string, Value>>
  readonly #alike: (one: Value | undefined, other: Value | undefined) => boolean

  constructor(
    record: Recording,
    of: (snapshot: MeshSnapshot) => ReadonlyMap<string, Value>,
    alike: (one: Value, other: Value) => boolean = (one, other) => one === other,
  ) {
    this.#record = record
    this.#entries = { of, changed: differingKeys }
    this.#presence = { of, changed: differingKeys }
    this.#whole = { of }
    this.#alike = (one, other) => one !== undefined && other !== undefined && alike(one, other)
  }

  get(key: string): Value | undefined {
    return this.#record.read(this.#entries, key, getFrom, this.#alike)
  }

  /** Readers do not depend on the value. */
  has(key: string): boolean {
    return this.#record.read(this.#presence, key, isIn)
  }

  /** What the products were made for that looked up a key directly. */
  askers(key: string): Iterable<unknown> {
    return this.#record.askers(this.#entries, key)
  }

  get #all(): ReadonlyMap<string, Value> {
    return this.#record.read(this.#whole, '', itself)
  }

  get size(): number {
    return this.#all.size
  }

  forEach(visit: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    this.#all.forEach(visit)
  }

  entries(): MapIterator<[string, Value]> {
    return this.#all.entries()
  }

  keys(): MapIterator<string> {
    return this.#all.keys()
  }

  values(): MapIterator<Value> {
    return this.#all.values()
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.#all[Symbol.iterator]()
  }
}

const getFrom = <Value>(map: ReadonlyMap<string, Value>, key: string): Value | undefined => map.get(key)

const isIn = (map: ReadonlyMap<string, unknown>, key: string): boolean => map.has(key)

/**
 * Changed endpoints are sent to proxies separately. The other readers of a service are outdated only when its endpoints change what
 * clusters contain.
 */
function sameServices(one: readonly ServiceState[], other: readonly ServiceState[]): boolean {
  return (
    one.length === other.length &&
    one.every((state, index) => {
      const peer = other[index] as ServiceState
      return state === peer || (state.service === peer.service && !reachesClusters(peer, state))
    })
  )
}
