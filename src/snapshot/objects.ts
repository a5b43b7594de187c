/** Configuration objects with their specs typed, as the snapshot keeps them. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import type { WorkloadEntrySpec } from '../config/kinds/workload-entry.ts'
import { configKey } from '../config/kinds.ts'

export type VirtualService = ConfigObject<VirtualServiceSpec>
export type DestinationRule = ConfigObject<DestinationRuleSpec>
export type Gateway = ConfigObject<GatewaySpec>
export type Sidecar = ConfigObject<SidecarSpec>
export type EnvoyFilter = ConfigObject<EnvoyFilterSpec>
export type ServiceEntry = ConfigObject<ServiceEntrySpec>
export type WorkloadEntry = ConfigObject<WorkloadEntrySpec>

/** The order in which objects of one kind win over each other: the oldest first, then by name. */
export function byAge(one: ConfigObject, other: ConfigObject): number {
  return one.createdAt - other.createdAt || compare(one.namespace, other.namespace) || compare(one.name, other.name)
}

/** Plain comparison of text by code unit. */
export function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** The object that a service comes from. */
export const serviceKey = ({ registry, namespace, name }: Service): string => configKey({ kind: registry, namespace, name })
