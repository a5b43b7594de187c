/**
 * A view is what a group of proxies may see: services, VirtualServices, rules, and on which listeners (discovery behaviour
 * 2.13). All namespaces for which nothing special is said share one view; a Sidecar object or something visible to one
 * namespace only makes a view of its own.
 */
import type { Service } from '../../protocols/data.ts'
import type { SidecarSpec } from '../config/traffic-specs.ts'
import { completeHost, hostCovers, hostsOverlap, isExported, isPublic, labelsMatch } from '../model/match.ts'
import { type MergedRule, ruleFor } from './destination-rules.ts'
import { compare, type Sidecar } from './objects.ts'
import type { MeshSnapshot, ServiceState } from './snapshot.ts'
import type { ResolvedVirtualService } from './virtual-services.ts'

/** One outbound listener of a view: the catch-all, or one that a Sidecar names. */
export interface EgressListener {
  /** Port that the Sidecar gives, or undefined: every service on its own ports. */
  readonly port: { readonly number: number; readonly protocol: string; readonly name: string } | undefined
  /** Address to bind, empty for the usual one. */
  readonly bind: string
  readonly captureMode: 'DEFAULT' | 'IPTABLES' | 'NONE'
  /** Sorted by namespace, then host name. */
  readonly services: readonly ServiceState[]
  readonly virtualServices: readonly ResolvedVirtualService[]
}

/** What a group of proxies may see. */
export interface View {
  readonly id: string
  /** Namespace whose private objects are visible; undefined for the view that all share. */
  readonly namespace: string | undefined
  /** All visible services, one a host name, sorted by namespace, then host name. */
  readonly services: readonly ServiceState[]
  /** Whether clusters of some service carry its endpoints. */
  readonly carriesEndpoints: boolean
  readonly byHost: ReadonlyMap<string, ServiceState>
  readonly egress: readonly EgressListener[]
  readonly sidecar: Sidecar | undefined
  readonly allowAny: boolean
  readonly egressProxy: NonNullable<SidecarSpec['outboundTrafficPolicy']>['egressProxy'] | undefined
  ruleFor(service: Service): MergedRule | undefined
}

/** Which view a proxy has: the id, and what it takes to build it. */
export interface ViewKey {
  readonly id: string
  readonly namespace: string | undefined
  readonly sidecar: Sidecar | undefined
}

/** Finds the view of a proxy by its namespace and labels; routers have no Sidecar. */
export function viewKeyOf(
  snapshot: MeshSnapshot,
  special: ReadonlySet<string>,
  proxy: { namespace: string; labels: Readonly<Record<string, string>>; type: string },
): ViewKey {
  const sidecar = proxy.type === 'sidecar' ? selectSidecar(snapshot, proxy.namespace, proxy.labels) : undefined
  if (sidecar) return { id: `sidecar:${sidecar.namespace}/${sidecar.name}@${proxy.namespace}`, namespace: proxy.namespace, sidecar }
  if (special.has(proxy.namespace)) return { id: `namespace:${proxy.namespace}`, namespace: proxy.namespace, sidecar: undefined }
  return { id: 'public', namespace: undefined, sidecar: undefined }
}

function selectSidecar(snapshot: MeshSnapshot, namespace: string, labels: Readonly<Record<string, string>>): Sidecar | undefined {
  const selectorOf = (sidecar: Sidecar) => sidecar.spec.workloadSelector?.labels ?? sidecar.spec.workloadSelector?.matchLabels
  const own = snapshot.sidecars.filter((sidecar) => sidecar.namespace === namespace)
  return (
    own.find((sidecar) => selectorOf(sidecar) && labelsMatch(selectorOf(sidecar), labels)) ??
    own.find((sidecar) => !selectorOf(sidecar)) ??
    snapshot.sidecars.find((sidecar) => sidecar.namespace === snapshot.mesh.rootNamespace && !selectorOf(sidecar))
  )
}

/** Namespaces that see something the others do not. */
export function specialNamespaces(snapshot: MeshSnapshot): Set<string> {
  const { mesh } = snapshot
  const special = new Set<string>()
  const addTargets = (targets: readonly string[], owner: string) => {
    for (const target of targets) if (target === '.') special.add(owner)
    for (const target of targets) if (target !== '.' && target !== '*' && target !== '~') special.add(target)
  }
  for (const states of snapshot.services.values()) {
    for (const { service } of states) {
      if (!isPublic(service.exportTo, mesh.defaultServiceExportTo))
        addTargets(service.exportTo.length ? service.exportTo : mesh.defaultServiceExportTo, service.namespace)
      if (states.length > 1) special.add(service.namespace)
    }
  }
  for (const service of snapshot.virtualServices.all) {
    const targets = service.exportTo.length ? service.exportTo : mesh.defaultVirtualServiceExportTo
    if (!targets.includes('*')) addTargets(targets, service.namespace)
  }
  for (const [namespace, rules] of snapshot.destinationRules.byNamespace) {
    if (namespace === mesh.rootNamespace) continue
    for (const rule of [...rules.exact.values(), ...rules.wildcards]) {
      const targets = rule.exportTo.length ? rule.exportTo : mesh.defaultDestinationRuleExportTo
      if (!targets.includes('*')) addTargets([...targets, '.'], namespace)
      else if (rule.host.startsWith('*') || snapshot.services.get(rule.host)?.some(({ service }) => service.namespace !== namespace))
        special.add(namespace)
    }
  }
  return special
}

/** Builds a view. */
export function buildView(snapshot: MeshSnapshot, key: ViewKey): View {
  const { mesh } = snapshot
  const visible = visibleServices(snapshot, key.namespace)
  const virtualServices = snapshot.virtualServices.all.filter((service) => {
    if (!service.gateways.includes('mesh')) return false
    return key.namespace === undefined
      ? isPublic(service.exportTo, mesh.defaultVirtualServiceExportTo)
      : isExported(service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, key.namespace)
  })
  const spec = key.sidecar?.spec
  const egress = spec?.egress?.length
    ? spec.egress.map((entry) => sidecarEgress(snapshot, key, entry, visible, virtualServices))
    : [catchAll(visible, virtualServices)]
  const services = egress.length === 1 ? (egress[0] as EgressListener).services : union(egress)
  const policy = spec?.outboundTrafficPolicy
  const rules = new Map<Service, MergedRule | undefined>()
  return {
    id: key.id,
    namespace: key.namespace,
    services,
    carriesEndpoints: services.some((state) => state.service.resolution === 'dns'),
    byHost: new Map(services.map((state) => [state.service.hostname, state])),
    egress,
    sidecar: key.sidecar,
    allowAny: (policy?.mode ?? mesh.outboundTrafficPolicy.mode) === 'ALLOW_ANY',
    egressProxy: policy?.egressProxy,
    ruleFor(service) {
      if (!rules.has(service))
        rules.set(service, ruleFor(snapshot.destinationRules, service, key.namespace, mesh.rootNamespace, mesh.defaultDestinationRuleExportTo))
      return rules.get(service)
    },
  }
}

const catchAll = (services: readonly ServiceState[], virtualServices: readonly ResolvedVirtualService[]): EgressListener => ({
  port: undefined,
  bind: '',
  captureMode: 'DEFAULT',
  services,
  virtualServices,
})

/** One service a host name: the viewer's own namespace wins, else the first that is visible. */
function visibleServices(snapshot: MeshSnapshot, viewer: string | undefined): ServiceState[] {
  const result: ServiceState[] = []
  const fallback = snapshot.mesh.defaultServiceExportTo
  for (const states of snapshot.services.values()) {
    const seen = states.filter(({ service }) =>
      viewer === undefined ? isPublic(service.exportTo, fallback) : isExported(service.exportTo, fallback, service.namespace, viewer),
    )
    const chosen = seen.find(({ service }) => service.namespace === viewer) ?? seen[0]
    if (chosen) result.push(chosen)
  }
  return result.sort(byNamespaceThenHost)
}

const byNamespaceThenHost = (one: ServiceState, other: ServiceState) =>
  compare(one.service.namespace, other.service.namespace) || compare(one.service.hostname, other.service.hostname)

type Egress = NonNullable<SidecarSpec['egress']>[number]

function sidecarEgress(
  snapshot: MeshSnapshot,
  key: ViewKey,
  entry: Egress,
  visible: readonly ServiceState[],
  virtualServices: readonly ResolvedVirtualService[],
): EgressListener {
  const own = key.namespace ?? ''
  const patterns = entry.hosts.map((text) => {
    const slash = text.indexOf('/')
    const namespace = text.slice(0, slash)
    return { namespace: namespace === '.' ? own : namespace, host: completeHost(text.slice(slash + 1), own, snapshot.settings.domain).toLowerCase() }
  })
  const allowed = (namespace: string, overlaps: (host: string) => boolean) =>
    patterns.some((pattern) => (pattern.namespace === '*' || pattern.namespace === namespace) && overlaps(pattern.host))
  const seen = virtualServices.filter((service) => allowed(service.namespace, (host) => service.hosts.some((own) => hostsOverlap(host, own))))
  const destinations = new Set(seen.flatMap((service) => destinationHosts(service)))
  const services = visible.filter(({ service }) => {
    if (entry.port?.number && !service.ports.some((port) => port.number === entry.port?.number)) return false
    return destinations.has(service.hostname) || allowed(service.namespace, (host) => hostCovers(host, service.hostname))
  })
  const port = entry.port?.number ? { number: entry.port.number, protocol: entry.port.protocol ?? '', name: entry.port.name ?? '' } : undefined
  return { port, bind: entry.bind ?? '', captureMode: entry.captureMode ?? 'DEFAULT', services, virtualServices: seen }
}

/** Every host that a VirtualService sends traffic to. */
export function destinationHosts(service: ResolvedVirtualService): string[] {
  const l4 = [...(service.source.spec.tls ?? []), ...(service.source.spec.tcp ?? [])].flatMap((route) =>
    route.route.map((entry) => entry.destination.host),
  )
  const http = service.http.flatMap((route) => [
    ...(route.route ?? []).map((entry) => entry.destination.host),
    ...(route.mirror ? [route.mirror.host] : []),
    ...(route.mirrors ?? []).map((entry) => entry.destination.host),
  ])
  return [...http, ...l4]
}

function union(egress: readonly EgressListener[]): ServiceState[] {
  const all = new Map<string, ServiceState>()
  for (const listener of egress) for (const state of listener.services) all.set(state.service.hostname, state)
  return [...all.values()].sort(byNamespaceThenHost)
}
