/**
 * Computes the visibility of objects, and the differences of single namespaces (docs/resources.md, V1 to V3). Objects visible to all are
 * the same for all namespaces. Each namespace that differs has a {@link Difference}, which lists only the hosts that it sees differently.
 */

import type { Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { addTo, append, sameItems } from '../model/lists.ts'
import { isExported, isPublic, namespaceInHost } from '../model/match.ts'
import { compare } from '../model/order.ts'
import { type DestinationRuleIndex, hasTcpSettings, type MergedRule, ruleFor } from './destination-rules.ts'
import { HostNameIndex, type HostNames } from './host-names.ts'
import { serviceKey } from './objects.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService, type VirtualServiceIndex } from './virtual-services.ts'

/**
 * The difference of a namespace from what all namespaces see. A listed host may be seen alike all the same; a host that is not listed is
 * seen alike. Hosts are sorted.
 */
export interface Difference {
  /** Hosts for which the namespace may see another service, none, or one that others do not see. */
  readonly services: readonly string[]
  /** Hosts whose service, DestinationRule or endpoints may differ. */
  readonly hosts: readonly string[]
  /** Hosts, of services and of VirtualServices, whose VirtualService may be another one or have another effect. */
  readonly routed: readonly string[]
  /** VirtualServices that the namespace sees in addition to those that all namespaces see. */
  readonly virtualServices: readonly ResolvedVirtualService[]
}

/** A service as far as visibility depends on it. */
interface Visible {
  readonly service: Service
  readonly hasLocalEndpoints?: boolean
}

/** The inputs of visibility. */
export interface VisibilityInputs {
  readonly mesh: MeshConfig
  /** The DNS suffix of service hosts. */
  readonly domain: string
  /** Services by host, the oldest first. */
  readonly services: ReadonlyMap<string, readonly Visible[]>
  /** A number that changes whenever a definition of a service changes. */
  readonly definitions: number
  readonly destinationRules: DestinationRuleIndex
  readonly virtualServices: VirtualServiceIndex
}

/** Whether both inputs have the same result. Services are compared by the number of their definitions. */
export function sameInputs(one: VisibilityInputs, other: VisibilityInputs): boolean {
  return (Object.keys(other) as (keyof VisibilityInputs)[]).every((field) => field === 'services' || one[field] === other[field])
}

/** What all namespaces see, and the differences of single namespaces. */
export interface Visibility {
  /** Hosts visible to all namespaces, sorted by the namespace of the visible service, then by name. */
  readonly hosts: readonly string[]
  /** Hosts by the namespace of their services, regardless of visibility. */
  readonly hostsOf: ReadonlyMap<string, readonly string[]>
  /** Hosts by the namespace in their name. Callers in that namespace may use short names for them. */
  readonly hostsNaming: ReadonlyMap<string, readonly string[]>
  /** All hosts of services, for wildcard lookups. */
  readonly names: Pick<HostNames, 'covered'>
  /** VirtualServices for sidecars (gateway `mesh`) that are visible to all namespaces. */
  readonly virtualServices: HostLookup
  /** VirtualServices for sidecars by their namespace, regardless of visibility, oldest first. */
  readonly virtualServicesOf: ReadonlyMap<string, readonly ResolvedVirtualService[]>
  readonly differences: ReadonlyMap<string, Difference>
}

/**
 * Chooses the visible service of a host: the one of the viewer's own namespace, otherwise the oldest visible one. Without a viewer: the
 * oldest one that is visible to all.
 */
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

/** The DestinationRule for a service as seen from a namespace. Without a viewer: as visible to all. */
export function visibleRule({ destinationRules, mesh }: RuleInputs, service: Service, viewer: string | undefined): MergedRule | undefined {
  // What is read of a namespace without rules is that it has none, so that nothing is recorded for each of its hosts.
  const find = (namespace: string) => (destinationRules.namespaces.has(namespace) ? destinationRules.of(namespace, service.hostname) : undefined)
  return ruleFor(find, service, viewer, mesh.rootNamespace, mesh.defaultDestinationRuleExportTo)
}

/**
 * The same rule, only if it has settings for TCP connections. The recorded reads are limited to the rules of this service, and to none of
 * them while no namespace has such a rule.
 */
export function visibleTcpRule({ destinationRules, mesh }: RuleInputs, service: Service, viewer: string | undefined): MergedRule | undefined {
  if (destinationRules.withTcpSettings.size === 0) return undefined
  const namespaces = new Set([service.namespace, mesh.rootNamespace, ...(viewer === undefined ? [] : [viewer])])
  if (![...namespaces].some((namespace) => destinationRules.withTcpSettings.has(namespace))) return undefined
  const find = (namespace: string) => destinationRules.tcpOf(namespace, service.hostname)
  const rule = ruleFor(find, service, viewer, mesh.rootNamespace, mesh.defaultDestinationRuleExportTo)
  return rule && hasTcpSettings(rule) ? rule : undefined
}

/** A visibility with its inputs and intermediate results, from which the parts that did not change are reused. */
export interface ComputedVisibility {
  readonly visibility: Visibility
  /** Objects whose visibility could not be determined. Namespaces that they are exported to do not see them. */
  readonly faults: readonly ResourceFault[]
  readonly inputs: VisibilityInputs
  readonly services: ServicePart
  readonly rules: Part
}

/** Hosts that namespaces see differently, by namespace. */
interface Part {
  readonly differing: ReadonlyMap<string, ReadonlySet<string>>
  readonly faults: readonly ResourceFault[]
}

interface ServicePart extends Part, Pick<Visibility, 'hosts' | 'hostsOf' | 'hostsNaming'> {
  /** By namespace the hosts of its services that have endpoints on the caller's own machine, which only some callers get. */
  readonly local: ReadonlyMap<string, ReadonlySet<string>>
  readonly names: HostNames
  /** By host the namespace of the service that is visible to all. */
  readonly owners: ReadonlyMap<string, string>
}

/** Computes visibility. Differences that equal those in `previous` keep their identity. */
export function visibilityOf(inputs: VisibilityInputs, previous: ComputedVisibility | undefined): ComputedVisibility {
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
      for (const viewer of audience(() => serviceKey(service), service.exportTo, mesh.defaultServiceExportTo, service.namespace, faults))
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
      const viewers = audience(() => rule.sources.map(configKey).join(), rule.exportTo, mesh.defaultDestinationRuleExportTo, namespace, faults)
      const shared = isPublic(rule.exportTo, mesh.defaultDestinationRuleExportTo)
      if (shared && viewers.length === 0 && namespace === mesh.rootNamespace) continue
      for (const host of covered(rule.host, names, services)) {
        // A namespace's own rules apply to services of other namespaces too, whatever their exportTo is.
        if (namespace !== mesh.rootNamespace && (!shared || owners.get(host) !== namespace)) addTo(differing, namespace, host)
        for (const viewer of viewers) addTo(differing, viewer, host)
      }
    }
  }
  return { differing, faults }
}

/**
 * VirtualServices that namespaces see in addition to those visible to all, and the hosts for which VirtualServices may apply differently.
 */
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
  const addHosts = (viewer: string, { hosts }: ResolvedVirtualService) => {
    for (const pattern of hosts) {
      addTo(differing, viewer, pattern)
      for (const host of covered(pattern, names, services)) addTo(differing, viewer, host)
    }
  }
  for (const service of all) {
    for (const viewer of audience(() => configKey(service.source), service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, faults)) {
      append(virtualServices, viewer, service)
      addHosts(viewer, service)
    }
    for (const caller of service.callerNamespaces) addHosts(caller, service)
  }
  if (seen.size + rules.differing.size > 0) {
    const sending = byRelatedHost(all)
    for (const others of [seen, rules.differing])
      for (const [viewer, hosts] of others) for (const host of hosts) for (const service of sending.get(host) ?? []) addHosts(viewer, service)
  }
  return { differing, virtualServices, faults }
}

/**
 * VirtualServices by the hosts whose ports affect their routes: the destinations, and the other hosts of a VirtualService with several.
 */
function byRelatedHost(all: readonly ResolvedVirtualService[]): ReadonlyMap<string, readonly ResolvedVirtualService[]> {
  const related = new Map<string, ResolvedVirtualService[]>()
  for (const service of all)
    for (const host of new Set([...service.destinations, ...(service.hosts.length > 1 ? service.hosts : [])])) append(related, host, service)
  return related
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

/** The service hosts that a host or wildcard matches. */
function covered(pattern: string, names: Visibility['names'], services: VisibilityInputs['services']): readonly string[] {
  if (pattern.startsWith('*')) return names.covered(pattern)
  return services.has(pattern) ? [pattern] : []
}

/**
 * Hosts of the VirtualServices that match on one of these labels of the caller: service hosts, and hosts of the VirtualServices themselves.
 */
export function hostsForCaller(
  inputs: { readonly visibility: Visibility; readonly virtualServices: VirtualServiceIndex },
  labels: Readonly<Record<string, string>>,
): string[] {
  const keys = Object.keys(labels)
  // For callers without such labels nothing is read, so that no dependency is recorded.
  if (keys.length === 0) return []
  const { names } = inputs.visibility
  const { byCallerLabel } = inputs.virtualServices
  const patterns = new Set(keys.flatMap((label) => (byCallerLabel.get(label) ?? []).flatMap(({ hosts }) => hosts)))
  return [...new Set([...patterns].flatMap((pattern) => [pattern, ...names.covered(pattern)]))].sort()
}

/**
 * The namespaces that see an object which is not visible to all. Empty for an object visible to all, and for one whose visibility cannot be
 * determined, which is reported as a fault under its `key`.
 */
function audience(key: () => string, exportTo: readonly string[], fallback: readonly string[], owner: string, faults: ResourceFault[]): string[] {
  return contain(
    () => {
      if (isPublic(exportTo, fallback)) return []
      const targets = exportTo.length > 0 ? exportTo : fallback
      return targets.flatMap((target) => (target === '.' ? [owner] : target === '~' ? [] : [target]))
    },
    (reason) => {
      faults.push({ type: 'index', resource: key(), objects: key().split(','), reason, consequence: consequences.leftOut })
      return []
    },
  )
}

function sameHosts(names: HostNames, services: ReadonlyMap<string, unknown>): boolean {
  if (names.size !== services.size) return false
  for (const host of services.keys()) if (!names.has(host)) return false
  return true
}
