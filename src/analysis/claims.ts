/** What objects claim of which there should be one: by these texts analyzers find the other claimants, and learn when these change. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { kindId } from '../config/kinds.ts'
import { gatewayPath } from '../model/gateway-ports.ts'
import { completeHost } from '../model/match.ts'

/** The claim to the routes of a host in the mesh, and at the Gateway of a path, to the policy of a host, to a host as a service. */
export const routesOf = (host: string): string => `routes ${host}`
export const routesAt = (gateway: string, host: string): string => `routes ${gateway} ${host}`
export const rulesOf = (host: string): string => `rules ${host}`
/** The claim to the workloads of a namespace as entries of a service. */
export const selectingEntries = (namespace: string): string => `selecting entries ${namespace}`
export const entriesOf = (host: string): string => `entries ${host}`

/** The claim of all Gateways: any two may select the same workload. */
export const allGateways = 'gateways'

/** The claim of rules of wildcards, and of the peer policies of a namespace. */
export const wildcardRules = 'wildcard rules'
export const peersOf = (namespace: string): string => `peers ${namespace}`

/** The claim of a Sidecar to the workloads that it selects. */
export function sidecarsOf({ namespace, spec }: ConfigObject<SidecarSpec>): string {
  const labels = spec.workloadSelector?.labels ?? spec.workloadSelector?.matchLabels ?? {}
  return `sidecars ${JSON.stringify([namespace, Object.entries(labels).sort()])}`
}

/** Returns all claims of an object. */
export function claimsOf(object: ConfigObject, domain: string): readonly string[] {
  const { namespace } = object
  switch (kindId(object)) {
    case 'VirtualService': {
      const { hosts = [], gateways = [] } = object.spec as VirtualServiceSpec
      const claim = (gateway: string, host: string) => (gateway === 'mesh' ? routesOf(host) : routesAt(gatewayPath(gateway, namespace), host))
      const names = hosts.map((host) => completeHost(host, namespace, domain))
      return [...new Set((gateways.length > 0 ? gateways : ['mesh']).flatMap((gateway) => names.map((host) => claim(gateway, host))))]
    }
    case 'DestinationRule': {
      const host = completeHost((object.spec as DestinationRuleSpec).host, namespace, domain)
      return host.startsWith('*') ? [rulesOf(host), wildcardRules] : [rulesOf(host)]
    }
    case 'ServiceEntry':
      return [
        ...new Set((object.spec as ServiceEntrySpec).hosts.map((host) => entriesOf(host.toLowerCase()))),
        ...((object.spec as ServiceEntrySpec).workloadSelector ? [selectingEntries(namespace)] : []),
      ]
    case 'Sidecar':
      return [sidecarsOf(object as ConfigObject<SidecarSpec>)]
    case 'Gateway':
      return [allGateways]
    case 'PeerAuthentication':
      return [peersOf(namespace)]
    default:
      return []
  }
}
