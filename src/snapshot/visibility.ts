/**
 * Who sees what, and in what a namespace differs from the others (docs/resources.md, V1 to V3). What is visible to all is the same for all
 * namespaces; a namespace of which more is to be said has a {@link Difference}: the hosts that it sees otherwise, and no list of the others.
 */
import type { Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { isExported, isPublic } from '../model/match.ts'
import { type DestinationRuleIndex, type MergedRule, ruleFor } from './destination-rules.ts'
import { HostNameIndex, type HostNames } from './host-names.ts'
import { compare, serviceKey } from './objects.ts'
import { type HostLookup, hostLookup, type ResolvedVirtualService, type VirtualServiceIndex } from './virtual-services.ts'

/** In what a namespace differs from what all see. A host that is in it may still be seen alike; one that is not is seen alike. Hosts are sorted. */
export interface Difference {
  /** Hosts whose service may be another; there may be none, or one that others do not see. */
  readonly services: readonly string[]
  /** Hosts whose service or rule may be another. */
  readonly hosts: readonly string[]
  /** Hosts of services and of VirtualServices to which another VirtualService may apply, or one that means something else. */
  readonly routed: readonly string[]
  /** VirtualServices that the namespace sees beside those that all see. */
  readonly virtualServices: readonly ResolvedVirtualService[]
}

/** A service that may be seen. */
interface Visible {
  readonly service: Service
}

/** What visibility is worked out from. */
export interface VisibilityInputs {
  readonly mesh: MeshConfig
  /** Services by host, sorted by namespace. */
  readonly services: ReadonlyMap<string, readonly Visible[]>
  readonly destinationRules: DestinationRuleIndex
  readonly virtualServices: VirtualServiceIndex
}

/** What all see, and in what namespaces differ from that. */
export interface Visibility {
  /** Hosts that all see, sorted by the namespace of the service that they see, then by name. */
  readonly hosts: readonly string[]
  /** Hosts of which a namespace has a service, whoever may see it. */
  readonly hostsOf: ReadonlyMap<string, readonly string[]>
  /** All hosts of services, to be searched by wildcards. */
  readonly names: HostNames
  /** VirtualServices for sidecars that all see. */
  readonly virtualServices: HostLookup
  /** VirtualServices for sidecars by namespace, whoever may see them, oldest first. */
  readonly virtualServicesOf: ReadonlyMap<string, readonly ResolvedVirtualService[]>
  readonly differences: ReadonlyMap<string, Difference>
}

/** The service that is seen under a host: the viewer's own namespace wins, else the first by namespace that is visible. Without a viewer, what all see. */
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

/** The rule for a service as a viewer sees it. */
export function visibleRule(inputs: VisibilityInputs, service: Service, viewer: string | undefined): MergedRule | undefined {
  return ruleFor(inputs.destinationRules, service, viewer, inputs.mesh.rootNamespace, inputs.mesh.defaultDestinationRuleExportTo)
}

/** Works out who sees what. Differences that are as in `previous` keep their identity. An object that cannot be read is seen by nobody it names, and told. */
export function visibilityOf(inputs: VisibilityInputs, previous: Visibility | undefined): { visibility: Visibility; faults: ResourceFault[] } {
  const owners = new Map<string, string>()
  const hostsOf = new Map<string, string[]>()
  for (const [host, states] of inputs.services) {
    const seen = choose(states, undefined, inputs.mesh)
    if (seen) owners.set(host, seen.service.namespace)
    for (const { service } of states) add(hostsOf, service.namespace, host)
  }
  const hosts = [...owners.keys()].sort((one, other) => compare(owners.get(one) ?? '', owners.get(other) ?? '') || compare(one, other))
  const names = previous && sameHosts(previous.names, inputs.services) ? previous.names : new HostNameIndex(inputs.services.keys())
  const outbound = inputs.virtualServices.all.filter((service) => service.gateways.includes('mesh'))
  const shared = outbound.filter((service) => isPublic(service.exportTo, inputs.mesh.defaultVirtualServiceExportTo))
  const virtualServicesOf = new Map<string, ResolvedVirtualService[]>()
  for (const service of outbound) add(virtualServicesOf, service.namespace, service)
  const before = previous?.virtualServices
  const virtualServices = before && sameList(before.all, shared) ? before : hostLookup(shared)
  const finder = new DifferenceFinder(inputs, owners, names)
  finder.findServices()
  finder.findRules()
  finder.findVirtualServices(outbound)
  const differences = finder.differences(previous?.differences)
  return { visibility: { hosts, hostsOf, names, virtualServices, virtualServicesOf, differences }, faults: finder.faults }
}

/** Hosts of the VirtualServices that look at one of these labels of the caller, of services and of their own. */
export function hostsForCaller({ names }: Visibility, { byCallerLabel }: VirtualServiceIndex, labels: Readonly<Record<string, string>>): string[] {
  const patterns = new Set(Object.keys(labels).flatMap((label) => (byCallerLabel.get(label) ?? []).flatMap(({ hosts }) => hosts)))
  return [...new Set([...patterns].flatMap((pattern) => [pattern, ...names.covered(pattern)]))].sort()
}

/** Collects, by viewer, the hosts that are seen otherwise. Its cost is that of what is not visible to all. */
class DifferenceFinder {
  readonly #inputs: VisibilityInputs
  /** Namespace of the service that all see, by host. */
  readonly #owners: ReadonlyMap<string, string>
  readonly #names: HostNames
  readonly #services = new Map<string, Set<string>>()
  readonly #rules = new Map<string, Set<string>>()
  readonly #routed = new Map<string, Set<string>>()
  readonly #virtualServices = new Map<string, ResolvedVirtualService[]>()
  /** Objects of which it could not be told who sees them. */
  readonly faults: ResourceFault[] = []

  constructor(inputs: VisibilityInputs, owners: ReadonlyMap<string, string>, names: HostNames) {
    this.#inputs = inputs
    this.#owners = owners
    this.#names = names
  }

  findServices(): void {
    const fallback = this.#inputs.mesh.defaultServiceExportTo
    for (const [host, states] of this.#inputs.services) {
      for (const { service } of states) {
        for (const viewer of this.#audience(serviceKey(service), service.exportTo, fallback, service.namespace)) addTo(this.#services, viewer, host)
        if (states.length > 1 && this.#owners.get(host) !== service.namespace) addTo(this.#services, service.namespace, host)
      }
    }
  }

  findRules(): void {
    const { destinationRules, mesh } = this.#inputs
    for (const [namespace, { exact, wildcards }] of destinationRules.byNamespace) {
      for (const rule of [...exact.values(), ...wildcards]) {
        const viewers = this.#audience(rule.sources.map(configKey).join(), rule.exportTo, mesh.defaultDestinationRuleExportTo, namespace)
        const shared = isPublic(rule.exportTo, mesh.defaultDestinationRuleExportTo)
        const covered = viewers.length > 0 || !shared || namespace !== mesh.rootNamespace ? this.#covered(rule.host) : []
        for (const host of covered) {
          // Rules of one's own count for the services of others too, whatever they say of others.
          if (namespace !== mesh.rootNamespace && (!shared || this.#owners.get(host) !== namespace)) addTo(this.#rules, namespace, host)
          for (const viewer of viewers) addTo(this.#rules, viewer, host)
        }
      }
    }
  }

  findVirtualServices(all: readonly ResolvedVirtualService[]): void {
    const fallback = this.#inputs.mesh.defaultVirtualServiceExportTo
    const sending = new Map<string, ResolvedVirtualService[]>()
    for (const service of all) {
      for (const viewer of this.#audience(configKey(service.source), service.exportTo, fallback, service.namespace)) {
        add(this.#virtualServices, viewer, service)
        this.#addRouted(viewer, service)
      }
      for (const caller of service.callerNamespaces) this.#addRouted(caller, service)
      for (const host of service.destinations) add(sending, host, service)
    }
    for (const others of [this.#services, this.#rules])
      for (const [viewer, hosts] of others) for (const host of hosts) for (const service of sending.get(host) ?? []) this.#addRouted(viewer, service)
  }

  #audience(object: string, exportTo: readonly string[], fallback: readonly string[], owner: string): string[] {
    return contain(
      () => audience(exportTo, fallback, owner),
      (reason) => {
        this.faults.push({ type: 'index', resource: object, objects: object.split(','), reason, consequence: consequences.leftOut })
        return []
      },
    )
  }

  #addRouted(viewer: string, { hosts }: ResolvedVirtualService): void {
    for (const pattern of hosts) {
      addTo(this.#routed, viewer, pattern)
      for (const host of this.#covered(pattern)) addTo(this.#routed, viewer, host)
    }
  }

  #covered(pattern: string): readonly string[] {
    if (pattern.startsWith('*')) return this.#names.covered(pattern)
    return this.#inputs.services.has(pattern) ? [pattern] : []
  }

  differences(previous: ReadonlyMap<string, Difference> | undefined): ReadonlyMap<string, Difference> {
    const found = new Map<string, Difference>()
    for (const viewer of new Set([this.#services, this.#rules, this.#routed, this.#virtualServices].flatMap((all) => [...all.keys()]))) {
      const before = previous?.get(viewer)
      const [services, rules, routed] = [this.#services, this.#rules, this.#routed].map((all) => all.get(viewer) ?? []) as Set<string>[]
      const now: Difference = {
        services: [...(services ?? [])].sort(),
        hosts: [...new Set([...(services ?? []), ...(rules ?? [])])].sort(),
        routed: [...(routed ?? [])].sort(),
        virtualServices: this.#virtualServices.get(viewer) ?? [],
      }
      const same =
        before &&
        sameList(before.services, now.services) &&
        sameList(before.hosts, now.hosts) &&
        sameList(before.routed, now.routed) &&
        sameList(before.virtualServices, now.virtualServices)
      found.set(viewer, same ? before : now)
    }
    return found
  }
}

/** The namespaces that see an object which not all see; none for one that all see. */
function audience(exportTo: readonly string[], fallback: readonly string[], owner: string): string[] {
  if (isPublic(exportTo, fallback)) return []
  const targets = exportTo.length > 0 ? exportTo : fallback
  return targets.flatMap((target) => (target === '.' ? [owner] : target === '~' ? [] : [target]))
}

function sameHosts(names: HostNames, services: ReadonlyMap<string, unknown>): boolean {
  if (names.size !== services.size) return false
  for (const host of services.keys()) if (!names.has(host)) return false
  return true
}

function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index])
}

function add<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}

function addTo(sets: Map<string, Set<string>>, key: string, item: string): void {
  const set = sets.get(key)
  if (set) set.add(item)
  else sets.set(key, new Set([item]))
}
