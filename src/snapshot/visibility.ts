/**
 * Computes the visibility of objects, and the differences of single namespaces (docs/resources.md, V1 to V3). Objects visible to all are
 * the same for all namespaces. Each namespace that differs has a {@link Difference}, which lists only the hosts that it sees differently.
 */

import type { Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import type { ResourceFault } from '../model/faults.ts'
import { addTo, append, sameItems } from '../model/lists.ts'
import { isPublic } from '../model/match.ts'
import { differingKeys } from '../model/overlaid-map.ts'
import { audience } from './audience.ts'
import { type DestinationRuleIndex, differingRules, hasTcpSettings, type MergedRule, ruleFor } from './destination-rules.ts'
import { coversName, type HostNames } from './host-names.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService, type VirtualServiceIndex } from './virtual-services.ts'
import { changedSet, MovesByKey, type ServiceInputs, type VisibleServices, visibleServices } from './visible-services.ts'

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

/** The inputs of visibility. */
export interface VisibilityInputs extends ServiceInputs {
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
  readonly services: VisibleServices
  readonly rules: Part
  readonly sidecarServices: SidecarServices
  readonly routes: RoutePart
}

/** Hosts that namespaces see differently, by namespace. */
interface Part {
  readonly differing: ReadonlyMap<string, ReadonlySet<string>>
  readonly faults: readonly ResourceFault[]
}

/** The VirtualServices for sidecars. */
interface SidecarServices extends Pick<Visibility, 'virtualServices' | 'virtualServicesOf'> {
  /** Those that are not visible to all, or have no effect for some callers. */
  readonly restricted: readonly ResolvedVirtualService[]
  /** Computed on first use ({@link byRelatedHost}). */
  byRelatedHost(): ReadonlyMap<string, readonly ResolvedVirtualService[]>
}

/** Computes visibility. Parts of which nothing differs from `previous` keep their identity. */
export function visibilityOf(inputs: VisibilityInputs, previous: ComputedVisibility | undefined): ComputedVisibility {
  const same = (...fields: readonly (keyof VisibilityInputs)[]) => fields.every((field) => previous?.inputs[field] === inputs[field])
  const services = visibleServices(inputs, previous && { ...previous.inputs, visible: previous.services })
  const isSeenAlike = services === previous?.services && same('mesh')
  const rules = previous && isSeenAlike && same('destinationRules') ? previous.rules : rulePart(inputs, services, previous)
  const sidecarServices =
    previous && same('virtualServices', 'mesh') ? previous.sidecarServices : servicesOfSidecars(inputs, previous?.visibility.virtualServices)
  const isRoutedAlike = isSeenAlike && rules === previous?.rules && sidecarServices === previous.sidecarServices
  if (isRoutedAlike) return { ...previous, inputs }
  const routes = routePart(inputs, sidecarServices, services, rules, previous?.routes)
  const { hosts, hostsOf, hostsNaming, names } = services
  const { virtualServices, virtualServicesOf } = sidecarServices
  const differences = differencesOf({ services, rules, routes }, previous)
  return {
    visibility: { hosts, hostsOf, hostsNaming, names, virtualServices, virtualServicesOf, differences },
    faults: [...[...services.faults.values()].flat(), ...rules.faults, ...routes.faults],
    inputs,
    services,
    rules,
    sidecarServices,
    routes,
  }
}

function servicesOfSidecars({ virtualServices: { all }, mesh }: VisibilityInputs, before: HostLookup | undefined): SidecarServices {
  const outbound = all.filter((service) => service.gateways.includes('mesh'))
  const shared = outbound.filter((service) => isPublic(service.exportTo, mesh.defaultVirtualServiceExportTo))
  const virtualServicesOf = new Map<string, ResolvedVirtualService[]>()
  for (const service of outbound) append(virtualServicesOf, service.namespace, service)
  let related: ReadonlyMap<string, readonly ResolvedVirtualService[]> | undefined
  return {
    virtualServices: before && sameItems(before.all, shared) ? before : hostLookup(shared),
    virtualServicesOf,
    restricted: outbound.filter(
      ({ exportTo, callerNamespaces }) => callerNamespaces.length > 0 || !isPublic(exportTo, mesh.defaultVirtualServiceExportTo),
    ),
    byRelatedHost: () => (related ??= byRelatedHost(outbound)),
  }
}

/** Returns sets by namespace, of which those that equal the ones before keep their identity; `before` itself if all of them do. */
function keptSets(now: ReadonlyMap<string, ReadonlySet<string>>, before: Part['differing'] | undefined): Part['differing'] {
  const kept = new Map<string, ReadonlySet<string>>()
  for (const [key, set] of now) {
    const known = before?.get(key)
    kept.set(key, known && known.size === set.size && [...set].every((name) => known.has(name)) ? known : set)
  }
  return before && before.size === kept.size && [...kept].every(([key, set]) => before.get(key) === set) ? before : kept
}

/** The number of hosts that are looked at one by one. For more of them a pass over all rules costs less. */
const maxHosts = 100

function rulePart(inputs: VisibilityInputs, services: VisibleServices, previous: ComputedVisibility | undefined): Part {
  return (previous && changedRulePart(inputs, services, previous)) ?? wholeRulePart(inputs, services, previous?.rules)
}

/** Changes what the rules for some hosts contribute. Undefined when there are many, or when rules have or had faults. */
function changedRulePart(inputs: VisibilityInputs, services: VisibleServices, previous: ComputedVisibility): Part | undefined {
  const { inputs: before, rules } = previous
  if (before.mesh !== inputs.mesh || rules.faults.length > 0) return undefined
  const ruled = before.destinationRules === inputs.destinationRules ? [] : differingRules(before.destinationRules, inputs.destinationRules)
  if (!ruled) return undefined
  const named = ruled.map((question) => question.slice(question.indexOf(' ') + 1))
  const hosts = new Set([...named, ...services.names.differing(previous.services.names), ...differingKeys(previous.services.owners, services.owners)])
  if (hosts.size > maxHosts) return undefined
  const faults: ResourceFault[] = []
  const moves = new MovesByKey()
  for (const host of hosts) moves.move(host, viewersByRules(host, before, previous.services, faults), viewersByRules(host, inputs, services, faults))
  if (faults.length > 0) return undefined
  const differing = moves.applied(rules.differing, changedSet)
  return differing === rules.differing ? rules : { differing, faults }
}

/** The namespaces for which the rule of a host may be another one than for all. */
function viewersByRules(host: string, inputs: VisibilityInputs, { owners }: VisibleServices, faults: ResourceFault[]): string[] {
  if (!inputs.services.has(host)) return []
  const found = new Set<string>()
  for (const [namespace, { exact, wildcards }] of inputs.destinationRules.byNamespace) {
    const named = exact.get(host)
    for (const rule of [...(named ? [named] : []), ...wildcards.filter((wildcard) => coversName(wildcard.host, host))])
      for (const viewer of viewersOf(rule, namespace, owners.get(host), inputs, faults)) found.add(viewer)
  }
  return [...found]
}

/** The namespaces for which a rule makes a difference at a host of which the services of `owner` are visible to all. */
function viewersOf(rule: MergedRule, namespace: string, owner: string | undefined, { mesh }: VisibilityInputs, faults: ResourceFault[]): string[] {
  const { exportTo } = rule
  const viewers = audience(() => rule.sources.map(configKey).join(), exportTo, mesh.defaultDestinationRuleExportTo, namespace, faults)
  // A namespace's own rules apply to services of other namespaces too, whatever their exportTo is.
  const isOwn = namespace !== mesh.rootNamespace && (!isPublic(exportTo, mesh.defaultDestinationRuleExportTo) || owner !== namespace)
  return isOwn ? [...viewers, namespace] : viewers
}

function wholeRulePart({ destinationRules, mesh, services }: VisibilityInputs, { owners, names }: VisibleServices, before: Part | undefined): Part {
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
  const kept = keptSets(differing, before?.differing)
  return before && kept === before.differing && faults.length + before.faults.length === 0 ? before : { differing: kept, faults }
}

/**
 * VirtualServices that namespaces see in addition to those visible to all, and the hosts for which VirtualServices may apply differently.
 */
interface RoutePart extends Part {
  readonly virtualServices: ReadonlyMap<string, readonly ResolvedVirtualService[]>
}

function routePart(
  { mesh, services }: VisibilityInputs,
  sidecars: SidecarServices,
  { differing: seen, names }: VisibleServices,
  rules: Part,
  before: RoutePart | undefined,
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
  for (const service of sidecars.restricted) {
    for (const viewer of audience(() => configKey(service.source), service.exportTo, mesh.defaultVirtualServiceExportTo, service.namespace, faults)) {
      append(virtualServices, viewer, service)
      addHosts(viewer, service)
    }
    for (const caller of service.callerNamespaces) addHosts(caller, service)
  }
  if (seen.size + rules.differing.size > 0) {
    const sending = sidecars.byRelatedHost()
    for (const others of [seen, rules.differing])
      for (const [viewer, hosts] of others) for (const host of hosts) for (const service of sending.get(host) ?? []) addHosts(viewer, service)
  }
  return { differing: keptSets(differing, before?.differing), virtualServices, faults }
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

/** The parts from which differences follow. */
type Parts = Pick<ComputedVisibility, 'services' | 'rules' | 'routes'>

/** Returns the differences of all namespaces. Those of namespaces for which nothing in the parts differs are taken over. */
function differencesOf(parts: Parts, previous: ComputedVisibility | undefined): ReadonlyMap<string, Difference> {
  const found = new Map<string, Difference>()
  const sorted = (...sets: readonly (ReadonlySet<string> | undefined)[]) => [...new Set(sets.flatMap((set) => [...(set ?? [])]))].sort()
  const { differing: services, local } = parts.services
  const { differing: rules } = parts.rules
  const { differing: routed, virtualServices } = parts.routes
  for (const viewer of new Set([services, local, rules, routed, virtualServices].flatMap((all) => [...all.keys()]))) {
    const before = previous?.visibility.differences.get(viewer)
    if (before && previous && isSameFor(viewer, parts, previous)) {
      found.set(viewer, before)
      continue
    }
    const now: Difference = {
      services: sorted(services.get(viewer)),
      hosts: sorted(services.get(viewer), local.get(viewer), rules.get(viewer)),
      routed: sorted(routed.get(viewer)),
      virtualServices: virtualServices.get(viewer) ?? [],
    }
    const same = before && (Object.keys(now) as (keyof Difference)[]).every((field) => sameItems(before[field], now[field]))
    found.set(viewer, same ? before : now)
  }
  return found
}

function isSameFor(viewer: string, one: Parts, other: Parts): boolean {
  const setsOf = ({ services, rules, routes }: Parts) =>
    [services.differing, services.local, rules.differing, routes.differing].map((of) => of.get(viewer))
  return (
    sameItems(setsOf(one), setsOf(other)) && sameItems(one.routes.virtualServices.get(viewer) ?? [], other.routes.virtualServices.get(viewer) ?? [])
  )
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
