/**
 * Why an object has no part in a resource of a proxy, in the words of those who choose: every answer comes from the function that the
 * generators choose with.
 */
import type { ConfigObject, Service } from '../../../protocols/data.ts'
import { type ExplainInput, noEffect, ofAnotherPort } from '../../../protocols/messages/explain.ts'
import { configKey, kinds } from '../../config/kinds.ts'
import { selectedLabelSets } from '../../config/shapes/policies.ts'
import { hostsOverlap, isExported, labelsMatch } from '../../model/match.ts'
import type { ServiceEntry } from '../../registry/service-entries.ts'
import type { MergedRule } from '../../snapshot/destination-rules.ts'
import type { DestinationRule, Sidecar, VirtualService } from '../../snapshot/objects.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import { allPolicies, policiesFor } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { portsNotHad, type View } from '../../snapshot/view.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import { visibleRule } from '../../snapshot/visibility.ts'
import { choose } from '../../snapshot/visible-services.ts'
import { filtersFor, selectedFilters } from '../../xds/envoy-filter/selection.ts'
import { hostOf } from '../../xds/names.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { clusterType, endpointType, routeType, virtualHostType } from '../../xds/type-urls.ts'
import type { Planner } from '../planner.ts'

/** Knows why objects were left out. */
export class Reasons {
  readonly #planner: Planner
  readonly #input: ExplainInput
  readonly #proxy: ProxyClass | undefined
  readonly #view: View | undefined

  /** `planner` has the proxy of the explanation as its only one. */
  constructor(planner: Planner, input: ExplainInput) {
    this.#planner = planner
    this.#input = input
    this.#proxy = planner.proxies()[0]?.proxyClass
    this.#view = this.#proxy && planner.builder.view(this.#proxy.viewKey)
  }

  /** Why an object has no part in the resource. */
  of(object: ConfigObject): string {
    const { without } = kinds.get(object.kind) ?? {}
    if (without !== undefined) return `objects of this kind have no effect: ${without}`
    return this.#decided(object) ?? this.#told(configKey(object)) ?? noEffect
  }

  /** Why a service of a registry has no part in the resource. */
  ofService(service: Service): string {
    return this.#ofHost(service) ?? this.#told(serviceKey(service)) ?? noEffect
  }

  get #snapshot(): MeshSnapshot {
    return this.#planner.snapshot
  }

  /** The namespace that sees the resource. */
  get #viewer(): string {
    return this.#input.node.namespace
  }

  /** What a fault or loss tells of an object: a conflict of listeners, endpoints that cannot be used, a refusal, a check of policies. */
  #told(key: string): string | undefined {
    const fault = [...this.#planner.faults.all(), ...this.#input.told].find(({ objects }) => objects.includes(key))
    return fault && `${fault.resource}: ${fault.reason}; ${fault.consequence}`
  }

  #decided(object: ConfigObject): string | undefined {
    const { proxyLabels: labels } = this
    switch (object.kind) {
      case 'ServiceEntry':
        return this.#ofEntry(object as ServiceEntry)
      case 'DestinationRule':
        return this.#ofRule(object as DestinationRule)
      case 'VirtualService':
        return this.#ofRoute(object as VirtualService)
      case 'Sidecar':
        return this.#ofSidecar(object as Sidecar)
      case 'EnvoyFilter': {
        const { node } = this.#input
        const selected = filtersFor(selectedFilters(this.#snapshot, { namespace: node.namespace, labels }), node)
        return selected.some((filter) => configKey(filter) === configKey(object))
          ? undefined
          : 'its selector, or its conditions on the proxy, do not match'
      }
      case 'Gateway':
        // One that concerns a sidecar is that of a gateway of a network.
        if (this.#input.node.type !== 'router') return undefined
        return this.#proxy?.gateways.includes(`${object.namespace}/${object.name}`) ? undefined : 'its selector does not match the proxy'
      case 'AuthorizationPolicy':
      case 'RequestAuthentication':
      case 'PeerAuthentication':
        return this.#ofPolicy(object)
      default:
        return undefined
    }
  }

  /** The labels of the proxy that selectors look at. */
  get proxyLabels(): Readonly<Record<string, string>> {
    return this.#planner.labelsOf(this.#input.node)
  }

  #ofEntry(entry: ServiceEntry): string | undefined {
    const key = configKey(entry)
    const asked = hostOf(this.#input.typeUrl, this.#input.name)
    const hosts = (entry.spec.hosts ?? []).map((host) => host.toLowerCase())
    const host = hosts.find((each) => each === asked) ?? hosts[0]
    if (host === undefined) return undefined
    const state = this.#snapshot.services.get(host)?.find(({ service }) => service.namespace === entry.namespace)
    if (!state) return this.#told(key)
    const reason = this.#ofHost(state.service)
    if (reason !== undefined) return reason
    const first = serviceKey(state.service)
    return first === key ? undefined : `${first} defines ${host} first, and this adds nothing that the resource has`
  }

  /** Why a service is not the one that the proxy sees for its host. */
  #ofHost({ hostname, namespace, exportTo }: Service): string | undefined {
    const { mesh } = this.#snapshot
    if (!isExported(exportTo, mesh.defaultServiceExportTo, namespace, this.#viewer))
      return `exportTo does not make it visible in namespace ${this.#viewer} (V1 in docs/resources.md)`
    const chosen = choose(this.#snapshot.services.get(hostname), this.#viewer, mesh)
    if (chosen && chosen.service.namespace !== namespace) {
      const why = chosen.service.namespace === this.#viewer ? 'is of its own namespace' : 'is older'
      return `the proxy takes ${hostname} from namespace ${chosen.service.namespace}: that service ${why}`
    }
    const { sidecar } = this.#view ?? {}
    if (!sidecar || this.#view?.service(hostname)) return undefined
    const ports = chosen ? portsNotHad(this.#snapshot, this.#viewer, sidecar, chosen) : []
    if (ports.length === 0) return `${configKey(sidecar)} does not import ${hostname}`
    const own = (chosen?.service.ports ?? []).map(({ number }) => number)
    return `the listeners of ${configKey(sidecar)} whose hosts name ${hostname} are for port ${ports.join(', ')}, and it has only port ${own.join(', ')} (V9 in docs/resources.md)`
  }

  #ofRule(rule: DestinationRule): string | undefined {
    const merged = this.#mergedWith(rule)
    if (!merged) return undefined
    const { mesh, services } = this.#snapshot
    const covered = [...services.values()].flat().find(({ service }) => hostsOverlap(merged.host, service.hostname))
    if (!covered) return `it is for ${merged.host}, which is no service here`
    if (!isExported(merged.exportTo, mesh.defaultDestinationRuleExportTo, merged.namespace, this.#viewer))
      return `exportTo does not make it visible in namespace ${this.#viewer} (V1 in docs/resources.md)`
    const service = this.#serviceAsked() ?? covered.service
    const chosen = visibleRule(this.#snapshot, service, this.#view?.namespace)
    if (chosen && chosen !== merged)
      return `DestinationRule/${chosen.namespace}/${chosen.name} counts for ${service.hostname} (V3 to V5 in docs/resources.md)`
    if (!chosen) return `no rule of namespace ${merged.namespace} counts for ${service.hostname} in namespace ${this.#viewer}`
    if (merged.name !== rule.name) return `DestinationRule/${merged.namespace}/${merged.name} is older, and this adds nothing that the resource has`
    return undefined
  }

  #mergedWith(rule: DestinationRule): MergedRule | undefined {
    const rules = this.#snapshot.destinationRules.byNamespace.get(rule.namespace)
    return [...(rules?.exact.values() ?? []), ...(rules?.wildcards ?? [])].find(({ sources }) =>
      sources.some((source) => configKey(source) === configKey(rule)),
    )
  }

  /** The service that the resource is about by its name. */
  #serviceAsked(): Service | undefined {
    return this.#view?.service(hostOf(this.#input.typeUrl, this.#input.name))?.service
  }

  #ofRoute(route: VirtualService): string | undefined {
    const { typeUrl } = this.#input
    const { mesh, virtualServices } = this.#snapshot
    const resolved = virtualServices.all.find(({ source }) => configKey(source) === configKey(route))
    if (!resolved) return 'no VirtualService that counts delegates to it'
    if (!isExported(resolved.exportTo, mesh.defaultVirtualServiceExportTo, route.namespace, this.#viewer))
      return `exportTo does not make it visible in namespace ${this.#viewer} (V1 in docs/resources.md)`
    const isOfProxy = (gateway: string) => (this.#input.node.type === 'router' ? this.#proxy?.gateways.includes(gateway) : gateway === 'mesh')
    if (!resolved.gateways.some(isOfProxy)) return `its gateways are not those of the proxy: ${resolved.gateways.join(', ')}`
    const elsewhere = this.#otherPorts(resolved)
    if (elsewhere !== undefined) return elsewhere
    const egress = this.#view?.egress ?? []
    for (const { virtualServices: there } of egress)
      for (const host of resolved.hosts) {
        const found: ResolvedVirtualService | undefined = host.startsWith('*') ? undefined : there.find(host)
        if (found && found !== resolved) return `${configKey(found.source)} counts for ${host}: it is older or for a more specific host`
      }
    const isImported = egress.some((each) => each.virtualServices.all.includes(resolved))
    if (this.#view?.sidecar && !isImported) return `${configKey(this.#view.sidecar)} does not import it`
    return typeUrl === clusterType || typeUrl === endpointType
      ? 'a VirtualService has a part in clusters and endpoints only where a Sidecar imports it'
      : undefined
  }

  /** Why the Gateways of a VirtualService give a gateway no routes on the port that is asked about; undefined: one of them may. */
  #otherPorts({ gateways }: ResolvedVirtualService): string | undefined {
    const { typeUrl, name, node } = this.#input
    if (node.type !== 'router' || (typeUrl !== virtualHostType && typeUrl !== routeType)) return undefined
    const [, port] = (typeUrl === virtualHostType ? /:(\d+)$/ : /^https?\.(\d+)/).exec(name) ?? []
    const own = this.#snapshot.gateways.filter((gateway) => gateways.includes(`${gateway.namespace}/${gateway.name}`))
    const ports = [...new Set(own.flatMap(({ spec }) => spec.servers.map((server) => server.port.number)))]
    if (port === undefined || own.length === 0 || ports.includes(Number(port))) return undefined
    return `its gateways are ${own.map(configKey).join(', ')}, with port ${ports.join(', ')}: port ${port} ${ofAnotherPort}`
  }

  #ofSidecar(sidecar: Sidecar): string | undefined {
    const chosen = this.#view?.sidecar
    if (chosen && configKey(chosen) === configKey(sidecar)) return undefined
    if (chosen) return `${configKey(chosen)} counts for the proxy`
    return 'its selector does not match the proxy'
  }

  #ofPolicy(policy: ConfigObject): string | undefined {
    const { policies, mesh } = this.#snapshot
    const labels = this.proxyLabels
    const selected = allPolicies(policiesFor(policies, mesh.rootNamespace, { namespace: this.#viewer, labels }))
    if (selected.some((each) => configKey(each) === configKey(policy))) return undefined
    const isSelected = selectedLabelSets(policy.spec as Parameters<typeof selectedLabelSets>[0]).some((set) => labelsMatch(set, labels))
    return isSelected ? 'an older policy counts, or it is for workloads of another namespace' : 'its selector does not match the proxy'
  }
}
