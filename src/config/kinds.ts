/** The table of all kinds of configuration objects. A kind is declared in a file of its own. */
import { authorizationPolicy } from './kinds/authorization-policy.ts'
import { destinationRule } from './kinds/destination-rule.ts'
import { envoyFilter } from './kinds/envoy-filter.ts'
import { gateway } from './kinds/gateway.ts'
import type { Kind } from './kinds/kind.ts'
import { peerAuthentication } from './kinds/peer-authentication.ts'
import { proxyConfig } from './kinds/proxy-config.ts'
import { requestAuthentication } from './kinds/request-authentication.ts'
import { serviceEntry } from './kinds/service-entry.ts'
import { sidecar } from './kinds/sidecar.ts'
import { telemetry } from './kinds/telemetry.ts'
import { trafficExtension } from './kinds/traffic-extension.ts'
import { virtualService } from './kinds/virtual-service.ts'
import { wasmPlugin } from './kinds/wasm-plugin.ts'
import { workloadEntry } from './kinds/workload-entry.ts'
import { workloadGroup } from './kinds/workload-group.ts'

const declared = [
  virtualService,
  destinationRule,
  gateway,
  serviceEntry,
  workloadEntry,
  workloadGroup,
  sidecar,
  envoyFilter,
  authorizationPolicy,
  requestAuthentication,
  peerAuthentication,
  telemetry,
  proxyConfig,
  wasmPlugin,
  trafficExtension,
] as const

/** The name of a declared kind. */
export type KindName = (typeof declared)[number]['name']

/** All kinds by name. */
export const kinds: ReadonlyMap<string, Kind<KindName>> = new Map(declared.map((kind) => [kind.name, kind]))

/** Returns the key of an object, which is unique among all objects: `<Kind>/<namespace>/<name>`. */
export function configKey(object: { kind: string; namespace: string; name: string }): string {
  return `${object.kind}/${object.namespace}/${object.name}`
}
