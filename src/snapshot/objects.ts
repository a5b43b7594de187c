/** Configuration objects with typed specs, as the snapshot contains them. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { configKey } from '../config/kinds.ts'

export type VirtualService = ConfigObject<VirtualServiceSpec>
export type DestinationRule = ConfigObject<DestinationRuleSpec>
export type Gateway = ConfigObject<GatewaySpec>
export type Sidecar = ConfigObject<SidecarSpec>
export type EnvoyFilter = ConfigObject<EnvoyFilterSpec>

/** The key of the object that defines a service. */
export const serviceKey = ({ provider, namespace, name }: Service): string => configKey({ kind: provider, namespace, name })
