import type { Cluster } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { Listener } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import type { VirtualHost } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { RouteConfiguration } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { Resource } from '../slab/resource.ts'
import type { Traits } from '../traits.ts'

/** Where patches are applied, and to whom they report what they could not do. */
export interface PatchContext {
  readonly context: 'SIDECAR_INBOUND' | 'SIDECAR_OUTBOUND' | 'GATEWAY' | 'extensions'
  readonly traits: Traits
  /** Called with `EnvoyFilter/<namespace>/<name>` and the reason. */
  report(object: string, reason: string): void
}

export function patchClusters(clusters: Cluster[], _context: PatchContext, _last = false): Cluster[] {
  return clusters
}
export function patchListeners(listeners: Listener[], _context: PatchContext): Listener[] {
  return listeners
}
export function patchVirtualHosts(hosts: VirtualHost[], _route: string, _context: PatchContext): VirtualHost[] {
  return hosts
}
export function patchRoutes(routes: RouteConfiguration[], _context: PatchContext): RouteConfiguration[] {
  return routes
}
export function extensionConfigs(_context: PatchContext): Resource[] {
  return []
}
