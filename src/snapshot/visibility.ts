/**
 * Who sees what, and in what a namespace differs from the others (docs/resources.md, V1 to V3). What is visible to all is the same for all
 * namespaces; a namespace of which more is to be said has a {@link Difference}: the hosts that it sees otherwise, and no list of the others.
 */

import type { Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { addTo, append, sameItems } from '../model/lists.ts'
import { isExported, isPublic, namespaceInHost } from '../model/match.ts'
import { compare } from '../model/order.ts'
import { type DestinationRuleIndex, findRule, type MergedRule, ruleFor, saysOfBytes } from './destination-rules.ts'
import { HostNameIndex, type HostNames } from './host-names.ts'
import { serviceKey } from './objects.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService, type VirtualServiceIndex } from './virtual-services.ts'

/** In what a namespace differs from what all see. A host that is in it may still be seen alike; one that is not is seen alike. Hosts are sorted. */
export interface Difference {
  /** Hosts whose service may be another; there may be none, or one that others do not see. */
  readonly services: readonly string[]
  /** Hosts whose service, rule or endpoints may be others. */
  readonly hosts: readonly string[]
  /** Hosts of services and of VirtualServices to which another VirtualService may apply, or one that means something else. */
  readonly routed: readonly string[]
  /** VirtualServices that the namespace sees beside those that all see. */
  readonly virtualServices: readonly ResolvedVirtualService[]
}

/** A service that may be seen. */
interface Visible {
  readonly service: Service
  readonly hasLocalEndpoints?: boolean
}

/** What visibility is worked out from. */
export interface VisibilityInputs {
  readonly mesh: MeshConfig
  /** Domain of the hosts of services. */
  readonly domain: string
  /** Services by host, the oldest first. */
  readonly services: ReadonlyMap<string, readonly Visible[]>
  /** A number that differs where definitions of services do. */
  readonly definitions: number
  readonly destinationRules: DestinationRuleIndex
  readonly virtualServices: VirtualServiceIndex
}

/** Whether visibility comes to the same from both. Services are the same where their definitions are. */
export function sameInputs(one: VisibilityInputs, other: VisibilityInputs): boolean {
  return (Object.keys(other) as (keyof VisibilityInputs)[]).every((field) => field === 'services' || one[field] === other[field])
}

/** What all see, and in what namespaces differ from that. */
export interface Visibility {
  /** Hosts that all see, sorted by the namespace of the service that they see, then by name. */
  readonly hosts: readonly string[]
  /** Hosts of which a namespace has a service, whoever may see it. */
  readonly hostsOf: ReadonlyMap<string, readonly string[]>
  /** Hosts by the namespace in their name, whose callers have short names for them. */
  readonly hostsNaming: ReadonlyMap<string, readonly string[]>
  /** All hosts of services, to be searched by wildcards. */
  readonly names: Pick<HostNames, 'covered'>
  /** VirtualServices for sidecars that all see. */
  readonly virtualServices: HostLookup
  /** VirtualServices for sidecars by namespace, whoever may see them, oldest first. */
  readonly virtualServicesOf: ReadonlyMap<string, readonly ResolvedVirtualService[]>
  readonly differences: ReadonlyMap<string, Difference>
}

/** The service that is seen under a host: the viewer's own namespace wins, else the oldest that is visible. Without a viewer, what all see. */
export function choose<State extends Visible>(states: readonly State[] | undefined, viewer: string | undefined, mesh: MeshConfig): State | undefined {
  let chosen: State | undefined
  for (const state of states ?? []) {
    const { exportTo, namespace } = state.service
    const fallback = mesh.defaultServiceExportTo
    if (!(viewer === undefined ? isPublic(exportTo, fallback) : isExported(exportTo, fallback, namespace, viewer))) continue
    if (namespace === viewer) return state
    chosen ??= state
  }
  return chosen
}

type RuleInputs = Pick<VisibilityInputs, 'destinationRules' | 'mesh'>

/** The rule for a service as a viewer sees it. */
export function visibleRule({ destinationRules, mesh }: RuleInputs, service: Service, viewer: string | undefined): MergedRule | undefined {
  const find = (namespace: string) => findRule(destinationRules.byNamespace.get(namespace), service.hostname)
  return ruleFor(find, service, viewer, mesh.rootNamespace, mesh.defaultDestinationRuleExportTo)
}

/** The same if it says something of connections that are carried as bytes. Who asks depends on the rules of the service alone, and on none while no namespace has one that says such things. */
export function visibleByteRule({ destinationRules, mesh }: RuleInputs, service: Service, viewer: string | undefined): MergedRule | undefined {
  if (destinationRules.ofBytes.size === 0) return undefined
  const namespaces = new Set([service.namespace, mesh.rootNamespace, ...(viewer === undefined ? [] : [viewer])])
  if (![...namespaces].some((namespace) => destinationRules.ofBytes.has(namespace))) return undefined
  const find = (namespace: string) => destinationRules.of(namespace, service.hostname)
  const rule = ruleFor(find, service, viewer, mesh.rootNamespace, mesh.defaultDestinationRuleExportTo)
  return rule && saysOfBytes(rule) ? rule : undefined
}

/** Who sees what, with what it was worked out from and on the way: what did not change is not worked out again. */
export interface WorkedOut {
  readonly visibility: Visibility
  /** Objects of which it could not be told who sees them: nobody whom they name does. */
  readonly faults: readonly ResourceFault[]
  readonly inputs: VisibilityInputs
  readonly services: ServicePart
  readonly rules: Part
}

/** Hosts that viewers see otherwise. */
interface Part {
  readonly differing: ReadonlyMap<string, ReadonlySet<string>>
  readonly faults: readonly ResourceFault[]
}

interface ServicePart extends Part, Pick<Visibility, 'hosts' | 'hostsOf' | 'hostsNaming'> {
  /** Hosts of services of which a namespace has endpoints that others have not, those on the machine of the caller. */
  readonly local: ReadonlyMap<string, ReadonlySet<string>>
  readonly names: HostNames
  /** Namespace of the service that all see, by host. */
  readonly owners: ReadonlyMap<string, string>
}

/** Works out who sees what. Differences that are as in `previous` keep their identity. */
export function visibilityOf(inputs: VisibilityInputs, previous: WorkedOut | undefined): WorkedOut {
  const same = (...fields: readonly (keyof VisibilityInputs)[]) => fields.every((field) => previous?.inputs[field] === inputs[field])
  const services = previous && same('mesh', 'definitions') ? previous.services : servicePart(inputs, previous?.services.names)
  const rules = previous && services === previous.services && same('destinationRules') ? previous.rules : rulePart(inputs, services)
  const { hosts, hostsOf, hostsNaming, names } = services
  const outbound = inputs.virtualServices.all.filter((service) => service.gateways.includes('mesh'))
  const shared = outbound.filter((service) => isPublic(service.exportTo, inputs.mesh.defaultVirtualServiceExportTo))
  const virtualServicesOf = new Map<string, ResolvedVirtualService[]>()
  for (const service of outbound) append(virtualServicesOf, service.namespace, service)
  const before = previous?.visibility.virtualServices
  const virtualServices = before && sameItems(before.all, shared) ? before : hostLookup(shared)
  const routes = routePart(inputs, outbound, services, rules)
  const differences = differencesOf(services, rules.differing, routes, previous?.visibility.differences)
  return {
    visibility: { hosts, hostsOf, hostsNaming, names, virtualServices, virtualServicesOf, differences },
    faults: [...services.faults, ...rules.faults, ...routes.faults],
    inputs,
    services,
    rules,
  }
}

function servicePart({ services, mesh, domain }: VisibilityInputs, known: HostNames | undefined): ServicePart {
  const owners = new Map<string, string>()
  const hostsOf = new Map<string, string[]>()
  const hostsNaming = new Map<string, string[]>()
  const differing = new Map<string, Set<string>>()
  const local = new Map<string, Set<string>>()
  const faults: ResourceFault[] = []
  for (const [host, states] of services) {
    const seen = choose(states, undefined, mesh)
    const named = namespaceInHost(host, domain)
    if (named !== undefined) append(hostsNaming, named, host)
    if (seen) owners.set(host, seen.service.namespace)
    for (const { service, hasLocalEndpoints } of states) {
      if (hasLocalEndpoints && service.namespace !== mesh.rootNamespace) addTo(local, service.namespace, host)
      append(hostsOf, service.namespace, host)
      for (const viewer of audience(serviceKey(service), service.exportTo, mesh.defaultServiceExportTo, service.namespace, faults))
        addTo(differing, viewer, host)
      if (states.length > 1 && owners.get(host) !== service.namespace) addTo(differing, service.namespace, host)
    }
  }
  const owner = (host: string) => owners.get(host) ?? ''
  const hosts = [...owners.keys()].sort((one, other) => compare(owner(one), owner(other)) || compare(one, other))
  const names = known && sameHosts(known, services) ? known : new HostNameIndex(services.keys())
  return { owners, hosts, hostsOf, hostsNaming, names, differing, local, faults }
}

function rulePart({ destinationRules, mesh, services }: VisibilityInputs, { owners, names }: ServicePart): Part {
  const differing = new Map<string, Set<string>>()
  const faults: ResourceFault[] = []
  for (const [namespace, { exact, wildcards }] of destinationRules.byNamespace) {
    for (const rule of [...exact.values(), ...wildcards]) {
      const viewers = audience(rule.sources.map(configKey).join(), rule.exportTo, mesh.defaultDestinationRuleExportTo, namespace, faults)
      const shared = isPublic(rule.exportTo, mesh.defaultDestinationRuleExportTo)
      if (shared && viewers.length === 0 && namespace === mesh.rootNamespace) continue
      for (const host of covered(rule.host, names, services)) {
        // Rules of one's own count for the services of others too, whatever they say of others.
        if (namespace !== mesh.rootNamespace && (!shared || owners.get(host) !== namespace)) addTo(differing, namespace, host)
        for (const viewer of viewers) addTo(differing, viewer, host)
      }
    }
  }
  return { differing, faults }
}

/** VirtualServices that viewers see beside those that all see, and the hosts to which others may apply, or which mean something else for them. */
interface RoutePart extends Part {
  readonly virtualServices: ReadonlyMap<string, readonly ResolvedVirtualService[]>
}

function routePart(
  { mesh, services }: VisibilityInputs,
  all: readonly ResolvedVirtualService[],
  { differing: seen, names }: ServicePart,
  rules: Part,
): RoutePart {
  const differing = new Map<string, Set<string>>()
  const virtualServices = new Map<string, ResolvedVirtualService[]>()
  const faults: ResourceFault[] = []
  const sending = new Map<string, ResolvedVirtualService[]>()
  const addHosts = (viewer: string, { hosts }: ResolvedVirtualService) => {
    for (const pattern of hosts) {
      addTo(differing, viewer, pattern)
      for (const host of covered(pattern, names, services)) addTo(differing, viewer, host)
    }
  }
  for (const service of all) {
    for (const viewer of audience(configKey(service.source), service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, faults)) {
      append(virtualServices, viewer, service)
      addHosts(viewer, service)
    }
    for (const caller of service.callerNamespaces) addHosts(caller, service)
    // Ports of destinations count in routes, and those of one host for the others.
    for (const host of new Set([...service.destinations, ...(service.hosts.length > 1 ? service.hosts : [])])) append(sending, host, service)
  }
  for (const others of [seen, rules.differing])
    for (const [viewer, hosts] of others) for (const host of hosts) for (const service of sending.get(host) ?? []) addHosts(viewer, service)
  return { differing, virtualServices, faults }
}

function differencesOf(
  { differing: services, local }: ServicePart,
  rules: Part['differing'],
  routes: RoutePart,
  previous: ReadonlyMap<string, Difference> | undefined,
): ReadonlyMap<string, Difference> {
  const found = new Map<string, Difference>()
  const sorted = (...sets: readonly (ReadonlySet<string> | undefined)[]) => [...new Set(sets.flatMap((set) => [...(set ?? [])]))].sort()
  for (const viewer of new Set([services, local, rules, routes.differing, routes.virtualServices].flatMap((all) => [...all.keys()]))) {
    const before = previous?.get(viewer)
    const now: Difference = {
      services: sorted(services.get(viewer)),
      hosts: sorted(services.get(viewer), local.get(viewer), rules.get(viewer)),
      routed: sorted(routes.differing.get(viewer)),
      virtualServices: routes.virtualServices.get(viewer) ?? [],
    }
    const same = before && (Object.keys(now) as (keyof Difference)[]).every((field) => sameItems(before[field], now[field]))
    found.set(viewer, same ? before : now)
  }
  return found
}

/** The hosts of services that a host or a wildcard means. */
function covered(pattern: string, names: Visibility['names'], services: VisibilityInputs['services']): readonly string[] {
  if (pattern.startsWith('*')) return names.covered(pattern)
  return services.has(pattern) ? [pattern] : []
}

/** Hosts of the VirtualServices that look at one of these labels of the caller, of services and of their own. */
export function hostsForCaller(
  inputs: { readonly visibility: Visibility; readonly virtualServices: VirtualServiceIndex },
  labels: Readonly<Record<string, string>>,
): string[] {
  const keys = Object.keys(labels)
  // Nothing is read, and so nothing recorded, for callers without such labels.
  if (keys.length === 0) return []
  const { names } = inputs.visibility
  const { byCallerLabel } = inputs.virtualServices
  const patterns = new Set(keys.flatMap((label) => (byCallerLabel.get(label) ?? []).flatMap(({ hosts }) => hosts)))
  return [...new Set([...patterns].flatMap((pattern) => [pattern, ...names.covered(pattern)]))].sort()
}

/** The namespaces that see an object which not all see; none for one that all see, or of which it cannot be told, which is a fault. */
function audience(object: string, exportTo: readonly string[], fallback: readonly string[], owner: string, faults: ResourceFault[]): string[] {
  return contain(
    () => {
      if (isPublic(exportTo, fallback)) return []
      const targets = exportTo.length > 0 ? exportTo : fallback
      return targets.flatMap((target) => (target === '.' ? [owner] : target === '~' ? [] : [target]))
    },
    (reason) => {
      faults.push({ type: 'index', resource: object, objects: object.split(','), reason, consequence: consequences.leftOut })
      return []
    },
  )
}

function sameHosts(names: HostNames, services: ReadonlyMap<string, unknown>): boolean {
  if (names.size !== services.size) return false
  for (const host of services.keys()) if (!names.has(host)) return false
  return true
}
