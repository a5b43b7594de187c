/**
 * A view contains what a group of proxies may see: services, VirtualServices and rules, and the listeners they are on (docs/resources.md,
 * V1 to V10). All namespaces with the common visibility share one view. Any other view is the shared one with a {@link Difference}, or the
 * imports of a Sidecar. Its cost is proportional to what differs or is imported.
 */
import type { Service } from '../../protocols/data.ts'
import { type SidecarSpec, sidecar as sidecarKind } from '../config/kinds/sidecar.ts'
import { completeHost, hostCovers, hostsOverlap, isExported, labelsMatch } from '../model/match.ts'
import { byAge, compare } from '../model/order.ts'
import type { ServiceState } from '../registry/merged-services.ts'
import type { AddressFamily } from '../registry/slices.ts'
import { withAddress, withAddresses } from './allocated-addresses.ts'
import type { MergedRule } from './destination-rules.ts'
import type { Sidecar } from './objects.ts'
import type { MeshSnapshot } from './snapshot.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService } from './virtual-services.ts'
import { type Difference, visibleRule, visibleTcpRule } from './visibility.ts'
import { choose } from './visible-services.ts'

/** An outbound listener of a view: the catch-all, or one that a Sidecar names. */
export interface EgressListener {
  /** The port that the Sidecar gives. Undefined: every service is on its own ports. */
  readonly port: { readonly number: number; readonly protocol: string; readonly name: string } | undefined
  /** The address to bind. Empty: the default one. */
  readonly bind: string
  readonly captureMode: 'DEFAULT' | 'IPTABLES' | 'NONE'
  /** Hosts of the services, sorted by namespace, then name. */
  readonly hosts: readonly string[]
  /** In the order of the hosts. */
  readonly services: readonly ServiceState[]
  readonly virtualServices: HostLookup
}

/** A set of services, rules and listeners that a group of proxies may see. */
export interface View {
  readonly id: string
  /** The namespace whose private objects are visible. Undefined for the shared view. */
  readonly namespace: string | undefined
  /** The difference from the shared view. Undefined when a Sidecar restricts the imports. */
  readonly difference: Difference | undefined
  /** All visible services, one for each host name, sorted by namespace, then host name. Listed on each access. */
  readonly services: readonly ServiceState[]
  readonly egress: readonly EgressListener[]
  readonly sidecar: Sidecar | undefined
  readonly allowAny: boolean
  readonly egressProxy: NonNullable<SidecarSpec['outboundTrafficPolicy']>['egressProxy'] | undefined
  /** The visible service of a host. */
  service(host: string): ServiceState | undefined
  ruleFor(service: Service): MergedRule | undefined
  /** The rule for a service if it has settings for TCP connections. Readers do not depend on other rules. */
  tcpRuleFor(service: Service): MergedRule | undefined
}

/** Identifies the view of a proxy: the id, and the inputs needed to build it. */
export interface ViewKey {
  /** Unique: it joins names, which do not contain `:`, `/`, `@` or `|`, and JSON. */
  readonly id: string
  readonly namespace: string | undefined
  readonly sidecar: Sidecar | undefined
  /** The outbound traffic policy for unknown hosts, if it differs from that of the mesh. */
  readonly policy?: SidecarSpec['outboundTrafficPolicy']
  /** If set, services have other addresses than their definitions say. `plain` is the same view with those. */
  readonly addressing?: Addressing & { readonly plain: ViewKey }
}

/** Which addresses services have for a viewer. */
interface Addressing {
  /** Services without addresses have allocated ones of this family. Undefined: none are allocated. */
  readonly family: AddressFamily | undefined
  /** Services have the addresses that they have in this cluster. Undefined: none has others there. */
  readonly cluster: string | undefined
}

/** The view in which services have other addresses. */
function addressing(plain: ViewKey, { family, cluster }: Addressing): ViewKey {
  if (family === undefined && cluster === undefined) return plain
  const id = `${plain.id}|${family ?? ''}${cluster === undefined ? '' : `|${cluster}`}`
  return { ...plain, id, addressing: { family, cluster, plain } }
}

/** The same view with the addresses of the definitions. */
export const plainView = (key: ViewKey): ViewKey => key.addressing?.plain ?? key

/** The shared view. */
export const publicView: ViewKey = { id: 'public', namespace: undefined, sidecar: undefined }

/** The shared view with the addresses and the outbound traffic policy of another view. */
export function publicViewLike({ sidecar, addressing: own }: ViewKey): ViewKey {
  const policy = sidecar?.spec.outboundTrafficPolicy
  const plain = policy ? { ...publicView, id: `public|${JSON.stringify(policy)}`, policy } : publicView
  return own ? addressing(plain, own) : plain
}

/** The view of a namespace without a Sidecar. */
export function viewOfNamespace(namespace: string): ViewKey {
  return { id: `namespace:${namespace}`, namespace, sidecar: undefined }
}

/**
 * A view with the same services as this one, whatever its other contents: its own if a Sidecar restricts the imports, otherwise that of its
 * namespace, or the shared one.
 */
export function servicesOfView(key: ViewKey, view: View): ViewKey {
  const { namespace, addressing: own } = key
  if (!view.difference) return key
  const plain = namespace === undefined || view.difference.services.length === 0 ? publicView : viewOfNamespace(namespace)
  return own ? addressing(plain, own) : plain
}

/** What determines the view of a proxy. */
interface Viewer {
  readonly namespace: string
  /** The Sidecar that selects it ({@link selectSidecar}). */
  readonly sidecar: Sidecar | undefined
  /** Whether its namespace has a difference. */
  readonly isDifferent: boolean
  /** The family of the addresses to allocate to services that have none. Undefined: none are allocated. */
  readonly allocates: AddressFamily | undefined
  /** Its cluster, if some service has addresses of its own there. */
  readonly cluster: string | undefined
}

/** Finds the view of a proxy. */
export function viewKeyOf(proxy: Viewer): ViewKey {
  return addressing(plainViewOf(proxy), { family: proxy.allocates, cluster: proxy.cluster })
}

function plainViewOf({ sidecar, namespace, isDifferent }: Viewer): ViewKey {
  if (sidecar) return { id: `sidecar:${sidecar.namespace}/${sidecar.name}@${namespace}`, namespace, sidecar }
  return isDifferent ? viewOfNamespace(namespace) : publicView
}

/** Finds the Sidecar that selects a workload. Sidecars do not apply to routers. */
export function selectSidecar(
  { sidecars, mesh }: Pick<MeshSnapshot, 'sidecars' | 'mesh'>,
  { namespace, labels }: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
): Sidecar | undefined {
  const selectorOf = ({ spec }: Sidecar) => sidecarKind.selects.labels(spec)
  const own = sidecars.get(namespace) ?? []
  return (
    own.find((sidecar) => selectorOf(sidecar) && labelsMatch(selectorOf(sidecar), labels)) ??
    own.find((sidecar) => !selectorOf(sidecar)) ??
    sidecars.get(mesh.rootNamespace)?.find((sidecar) => !selectorOf(sidecar))
  )
}

const nothingDiffers: Difference = { services: [], hosts: [], routed: [], virtualServices: [] }

/** Builds a view. */
export function buildView(snapshot: MeshSnapshot, key: ViewKey): View {
  const { mesh, visibility } = snapshot
  const { namespace } = key
  const named = key.sidecar
  const sidecar = named && snapshot.sidecars.get(named.namespace)?.find(({ name }) => name === named.name)
  const policy = key.policy ?? sidecar?.spec.outboundTrafficPolicy
  const visible = (host: string): ServiceState | undefined => {
    const state = choose(snapshot.services.get(host), namespace, mesh)
    return state && key.addressing ? addressed(state, snapshot, key.addressing) : state
  }
  const difference = takesAll(sidecar) ? (namespace !== undefined && visibility.differences.get(namespace)) || nothingDiffers : undefined
  const scope = difference
    ? wholeScope(snapshot, difference, visible)
    : sidecarScope(snapshot, namespace ?? '', sidecar?.spec.egress?.length ? sidecar.spec.egress : [{ hosts: ['*/*'] }], visible)
  return {
    id: key.id,
    namespace,
    sidecar,
    egress: scope.egress,
    service: scope.service,
    difference,
    allowAny: (policy?.mode ?? mesh.outboundTrafficPolicy.mode) === 'ALLOW_ANY',
    egressProxy: policy?.egressProxy && {
      ...policy.egressProxy,
      host: completeHost(policy.egressProxy.host, namespace ?? '', snapshot.settings.domain).toLowerCase(),
    },
    get services() {
      return scope.services
    },
    ruleFor: (service) => visibleRule(snapshot, service, namespace),
    tcpRuleFor: (service) => visibleTcpRule(snapshot, service, namespace),
  }
}

/** Returns a service with its addresses in the cluster of the viewer, or its allocated address, if there are such. */
function addressed(state: ServiceState, { allocated }: MeshSnapshot, { family, cluster }: Addressing): ServiceState {
  const { clusterVIPs } = state.service
  if (cluster !== undefined && clusterVIPs && Object.hasOwn(clusterVIPs, cluster)) return withAddresses(state, clusterVIPs[cluster] ?? [])
  const address = family && allocated.of(state.service, family)
  return address === undefined ? state : withAddress(state, address)
}

type Scope = Pick<View, 'egress' | 'services' | 'service'>
type Visible = (host: string) => ServiceState | undefined

/** Whether a Sidecar imports everything that is visible to its namespace. */
function takesAll(sidecar: Sidecar | undefined): boolean {
  const egress = sidecar?.spec.egress
  // The egress proxy's host is looked up among the services that the namespace sees.
  if (sidecar?.spec.outboundTrafficPolicy?.egressProxy) return false
  if (!egress?.length) return true
  const [entry] = egress
  return (
    egress.length === 1 &&
    !!entry &&
    !entry.port?.number &&
    !entry.bind &&
    entry.captureMode !== 'NONE' &&
    entry.hosts.includes('*/*') &&
    !entry.hosts.some((host) => host.startsWith('~'))
  )
}

/** The scope of everything that is visible. */
function wholeScope({ visibility }: MeshSnapshot, difference: Difference, service: Visible): Scope {
  const listed = () => {
    const differing = new Set(difference.services)
    if (differing.size === 0) return visibility.hosts
    const shared = visibility.hosts.filter((host) => !differing.has(host)).flatMap((host) => service(host) ?? [])
    const own = difference.services.flatMap((host) => service(host) ?? [])
    return [...shared, ...own].sort(byNamespaceThenHost).map((state) => state.service.hostname)
  }
  const own = difference.virtualServices
  const egress: EgressListener = {
    port: undefined,
    bind: '',
    captureMode: 'DEFAULT',
    get hosts() {
      return listed()
    },
    get services() {
      return listed().flatMap((host) => service(host) ?? [])
    },
    virtualServices: own.length > 0 ? hostLookup(own, visibility.virtualServices) : visibility.virtualServices,
  }
  return {
    egress: [egress],
    get services() {
      return egress.services
    },
    service,
  }
}

/** The order of precedence of services that claim the same listener or domain. */
export function byNamespaceThenHost({ service: one }: ServiceState, { service: other }: ServiceState): number {
  return compare(one.namespace, other.namespace) || compare(one.hostname, other.hostname)
}

/** The scope that the egress listeners of a Sidecar import. */
function sidecarScope(snapshot: MeshSnapshot, viewer: string, entries: readonly Egress[], visible: Visible): Scope {
  const egress = entries.map((entry) => sidecarEgress(snapshot, viewer, entry, visible))
  const hosts = new Set(egress.flatMap((listener) => listener.hosts))
  const service: Visible = (host) => (hosts.has(host) ? visible(host) : undefined)
  return {
    egress,
    get services() {
      return [...hosts].flatMap((host) => visible(host) ?? []).sort(byNamespaceThenHost)
    },
    service,
  }
}

type Egress = NonNullable<SidecarSpec['egress']>[number]

/** `<namespace>/<host>` of a Sidecar. Either may be a wildcard. */
interface HostPattern {
  readonly namespace: string
  readonly host: string
}

function sidecarEgress(snapshot: MeshSnapshot, viewer: string, entry: Egress, visible: Visible): EgressListener {
  const patternOf = (text: string): HostPattern => {
    const slash = text.indexOf('/')
    const namespace = text.slice(0, slash)
    const host = completeHost(text.slice(slash + 1), viewer, snapshot.settings.domain).toLowerCase()
    return { namespace: namespace === '.' ? viewer : namespace || '*', host }
  }
  const [without = [], patterns = []] = [true, false].map((excludes) =>
    entry.hosts.filter((text) => text.startsWith('~') === excludes).map((text) => patternOf(text.replace('~', ''))),
  )
  const isExcluded = (namespace: string, host: string) =>
    without.some((pattern) => [namespace, '*'].includes(pattern.namespace) && hostCovers(pattern.host, host))
  const isSeen = (service: ResolvedVirtualService, { host }: HostPattern) =>
    service.hosts.some((pattern) => hostsOverlap(host, pattern) && !isExcluded(service.namespace, pattern))
  const seen = [
    ...new Set(patterns.flatMap((pattern) => virtualServicesOf(snapshot, viewer, pattern).filter((service) => isSeen(service, pattern)))),
  ].sort((one, other) => byAge(one.source, other.source))
  const chosen = new Map<string, ServiceState>()
  const choosing = (host: string, namespace: string) => {
    const state = visible(host)
    if (!state || (namespace !== '*' && state.service.namespace !== namespace)) return
    if (hasPortOf(entry, state.service)) chosen.set(host, state)
  }
  const isKept = (host: string) => without.length === 0 || !isExcluded(visible(host)?.service.namespace ?? '', host)
  for (const pattern of patterns) for (const host of hostsOf(snapshot, pattern)) if (isKept(host)) choosing(host, pattern.namespace)
  // A route may lead to another port than that of the listener.
  for (const { destinations } of seen)
    for (const host of destinations) {
      const state = visible(host)
      if (state) chosen.set(host, state)
    }
  const port = entry.port?.number ? { number: entry.port.number, protocol: entry.port.protocol ?? '', name: entry.port.name ?? '' } : undefined
  const hosts = [...chosen.values()].sort(byNamespaceThenHost).map(({ service }) => service.hostname)
  const egress: EgressListener = {
    port,
    bind: entry.bind ?? '',
    captureMode: entry.captureMode ?? 'DEFAULT',
    hosts,
    get services() {
      return hosts.flatMap((host) => visible(host) ?? [])
    },
    virtualServices: hostLookup(seen),
  }
  return egress
}

/** Whether a service has the port of an egress listener, if that has one. */
const hasPortOf = ({ port }: Pick<Egress, 'port'>, { ports }: Service): boolean => !port?.number || ports.some(({ number }) => number === port.number)

/** The ports of the egress listeners of a Sidecar whose hosts name a service that has none of these ports. */
export function portsNotHad(snapshot: MeshSnapshot, viewer: string, { spec }: Sidecar, state: ServiceState): number[] {
  const { service } = state
  const visible: Visible = (host) => (host === service.hostname ? state : undefined)
  return (spec.egress ?? []).flatMap((entry) => {
    if (!entry.port?.number || hasPortOf(entry, service)) return []
    const { hosts } = sidecarEgress(snapshot, viewer, { ...entry, port: undefined }, visible)
    return hosts.includes(service.hostname) ? [entry.port.number] : []
  })
}

/** The hosts that a pattern matches, whether visible or not. */
function hostsOf({ visibility, services }: MeshSnapshot, { namespace, host }: HostPattern): readonly string[] {
  if (!host.startsWith('*')) return services.has(host) ? [host] : []
  if (namespace === '*') return visibility.names.covered(host)
  return (visibility.hostsOf.get(namespace) ?? []).filter((own) => hostCovers(host, own))
}

/** The visible VirtualServices that a pattern matches. */
function virtualServicesOf({ visibility, mesh }: MeshSnapshot, viewer: string, { namespace, host }: HostPattern): ResolvedVirtualService[] {
  const own = visibility.differences.get(viewer)?.virtualServices ?? []
  const { virtualServices } = visibility
  const shared = () => (host.startsWith('*') ? virtualServices.all : virtualServices.covering(host))
  const among = namespace === '*' ? [...shared(), ...own] : (visibility.virtualServicesOf.get(namespace) ?? [])
  return among.filter(
    (service) =>
      service.hosts.some((pattern) => hostsOverlap(host, pattern)) &&
      isExported(service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, viewer),
  )
}
