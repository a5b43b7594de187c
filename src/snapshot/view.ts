/**
 * A view is what a group of proxies may see: services, VirtualServices, rules, and on which listeners (docs/resources.md, V1
 * to V10). All namespaces of which nothing special is said share one view. Any other view is that one but for what differs
 * ({@link Difference}), or what a Sidecar chooses; neither costs more than what differs or is chosen.
 */
import type { Service } from '../../protocols/data.ts'
import { type SidecarSpec, sidecar as sidecarKind } from '../config/kinds/sidecar.ts'
import { completeHost, hostCovers, hostsOverlap, isExported, labelsMatch } from '../model/match.ts'
import { byAge, compare } from '../model/order.ts'
import type { ServiceState } from '../registry/merged-services.ts'
import { type AddressFamily, withAddress } from './allocated-addresses.ts'
import type { MergedRule } from './destination-rules.ts'
import type { Sidecar } from './objects.ts'
import type { MeshSnapshot } from './snapshot.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService } from './virtual-services.ts'
import { choose, type Difference, visibleByteRule, visibleRule } from './visibility.ts'

/** One outbound listener of a view: the catch-all, or one that a Sidecar names. */
export interface EgressListener {
  /** Port that the Sidecar gives, or undefined: every service on its own ports. */
  readonly port: { readonly number: number; readonly protocol: string; readonly name: string } | undefined
  /** Address to bind, empty for the usual one. */
  readonly bind: string
  readonly captureMode: 'DEFAULT' | 'IPTABLES' | 'NONE'
  /** Hosts of the services, sorted by namespace, then name. */
  readonly hosts: readonly string[]
  /** In the order of the hosts. */
  readonly services: readonly ServiceState[]
  readonly virtualServices: HostLookup
}

/** What a group of proxies may see. */
export interface View {
  readonly id: string
  /** Namespace whose private objects are visible; undefined for the view that all share. */
  readonly namespace: string | undefined
  /** In what it differs from the view that all share; undefined when it is a choice of a Sidecar. */
  readonly difference: Difference | undefined
  /** All visible services, one a host name, sorted by namespace, then host name. Listed when asked for. */
  readonly services: readonly ServiceState[]
  readonly egress: readonly EgressListener[]
  readonly sidecar: Sidecar | undefined
  readonly allowAny: boolean
  readonly egressProxy: NonNullable<SidecarSpec['outboundTrafficPolicy']>['egressProxy'] | undefined
  /** The visible service of a host. */
  service(host: string): ServiceState | undefined
  ruleFor(service: Service): MergedRule | undefined
  /** The rule for a service if it says something of connections that are carried as bytes; who asks depends on no other rules. */
  byteRuleFor(service: Service): MergedRule | undefined
}

/** Which view a proxy has: the id, and what it takes to build it. */
export interface ViewKey {
  readonly id: string
  readonly namespace: string | undefined
  readonly sidecar: Sidecar | undefined
  /** What is done with hosts that nobody knows, if that is not what the mesh says. */
  readonly policy?: SidecarSpec['outboundTrafficPolicy']
  /** Services without addresses are seen with addresses of this family that are given to them; `plain` is the view without. */
  readonly allocates?: { readonly family: AddressFamily; readonly plain: ViewKey }
}

/** The view in which services without addresses have those that are given to them. */
function allocating(plain: ViewKey, family: AddressFamily): ViewKey {
  return { ...plain, id: `${plain.id}|${family}`, allocates: { family, plain } }
}

/** The same view without addresses that are given to services. */
export const plainView = (key: ViewKey): ViewKey => key.allocates?.plain ?? key

/** The view that all share. */
export const publicView: ViewKey = { id: 'public', namespace: undefined, sidecar: undefined }

/** The view that all share, with the addresses that a view has and with what its Sidecar says of hosts that nobody knows. */
export function publicViewLike({ sidecar, allocates }: ViewKey): ViewKey {
  const policy = sidecar?.spec.outboundTrafficPolicy
  const plain = policy ? { ...publicView, id: `public|${JSON.stringify(policy)}`, policy } : publicView
  return allocates ? allocating(plain, allocates.family) : plain
}

/** What a namespace sees without a Sidecar. */
export function viewOfNamespace(namespace: string): ViewKey {
  return { id: `namespace:${namespace}`, namespace, sidecar: undefined }
}

/** The services of a view, whatever else is in it: the view of its namespace where its Sidecar chooses none, or that of all. */
export function servicesOfView(key: ViewKey, view: View): ViewKey {
  const { namespace, allocates } = key
  if (!view.difference) return key
  const plain = namespace === undefined || view.difference.services.length === 0 ? publicView : viewOfNamespace(namespace)
  return allocates ? allocating(plain, allocates.family) : plain
}

/** What the view of a proxy depends on. */
interface Viewer {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly type: string
  /** The family of the addresses that are given to services without, if it wants any. */
  readonly allocates: AddressFamily | undefined
}

/** Finds the view of a proxy by its namespace and labels; routers have no Sidecar. */
export function viewKeyOf(snapshot: MeshSnapshot, proxy: Viewer): ViewKey {
  const plain = plainViewOf(snapshot, proxy)
  return proxy.allocates ? allocating(plain, proxy.allocates) : plain
}

function plainViewOf(snapshot: MeshSnapshot, proxy: Viewer): ViewKey {
  const sidecar = proxy.type === 'sidecar' ? selectSidecar(snapshot, proxy.namespace, proxy.labels) : undefined
  if (sidecar) return { id: `sidecar:${sidecar.namespace}/${sidecar.name}@${proxy.namespace}`, namespace: proxy.namespace, sidecar }
  if (!snapshot.visibility.differences.has(proxy.namespace)) return publicView
  return viewOfNamespace(proxy.namespace)
}

function selectSidecar(snapshot: MeshSnapshot, namespace: string, labels: Readonly<Record<string, string>>): Sidecar | undefined {
  const selectorOf = ({ spec }: Sidecar) => sidecarKind.selects.labels(spec)
  const own = snapshot.sidecars.get(namespace) ?? []
  return (
    own.find((sidecar) => selectorOf(sidecar) && labelsMatch(selectorOf(sidecar), labels)) ??
    own.find((sidecar) => !selectorOf(sidecar)) ??
    snapshot.sidecars.get(snapshot.mesh.rootNamespace)?.find((sidecar) => !selectorOf(sidecar))
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
    return state && key.allocates ? addressed(state, snapshot, key.allocates.family) : state
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
    byteRuleFor: (service) => visibleByteRule(snapshot, service, namespace),
  }
}

/** A service with the address that is given to it, if one is. */
function addressed(state: ServiceState, { allocated }: MeshSnapshot, family: AddressFamily): ServiceState {
  const address = allocated.of(state.service, family)
  return address === undefined ? state : withAddress(state, address)
}

type Scope = Pick<View, 'egress' | 'services' | 'service'>
type Visible = (host: string) => ServiceState | undefined

/** Whether a Sidecar leaves what its namespace sees as it is. */
function takesAll(sidecar: Sidecar | undefined): boolean {
  const egress = sidecar?.spec.egress
  // Where unknown hosts go is looked for among what the namespace sees.
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

/** Everything that is visible. */
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

/** The order in which services claim what two of them want. */
export function byNamespaceThenHost({ service: one }: ServiceState, { service: other }: ServiceState): number {
  return compare(one.namespace, other.namespace) || compare(one.hostname, other.hostname)
}

/** What the egress listeners of a Sidecar choose. */
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

/** `<namespace>/<host>` of a Sidecar, either of which may be a wildcard. */
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
    if (entry.port?.number && !state.service.ports.some((port) => port.number === entry.port?.number)) return
    chosen.set(host, state)
  }
  const isKept = (host: string) => without.length === 0 || !isExcluded(visible(host)?.service.namespace ?? '', host)
  for (const pattern of patterns) for (const host of hostsOf(snapshot, pattern)) if (isKept(host)) choosing(host, pattern.namespace)
  for (const { destinations } of seen) for (const host of destinations) choosing(host, '*')
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

/** The hosts that a pattern may mean, whether visible or not. */
function hostsOf({ visibility, services }: MeshSnapshot, { namespace, host }: HostPattern): readonly string[] {
  if (!host.startsWith('*')) return services.has(host) ? [host] : []
  if (namespace === '*') return visibility.names.covered(host)
  return (visibility.hostsOf.get(namespace) ?? []).filter((own) => hostCovers(host, own))
}

/** The visible VirtualServices that a pattern means. */
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
