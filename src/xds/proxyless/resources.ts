/**
 * Resources of clients that are gRPC libraries without a proxy (docs/resources.md, L20). From each port of a service: a listener
 * (envoy.config.listener.v3.Listener, an API listener), a route configuration and a cluster, all named `<host>:<port>`.
 */
import { create } from '@bufbuild/protobuf'
import { type Cluster, Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { RouterSchema } from '../../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import { HttpConnectionManagerSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { Draft } from '../draft.ts'
import { overAds, pack } from '../message.ts'
import { outboundCluster } from '../names.ts'

/** A port of a service that these clients can call: its endpoints come with a load assignment. */
interface Target {
  readonly host: string
  readonly port: number
  /** `<host>:<port>`. */
  readonly name: string
}

/** The listeners of a service. */
export const proxylessListeners = (state: ServiceState): Draft<Listener>[] => draftsOf(state, listenerOf)

/** The route configurations of a service. */
export const proxylessRoutes = (state: ServiceState): Draft<RouteConfiguration>[] => draftsOf(state, routesOf)

/** The clusters of a service. */
export const proxylessClusters = (state: ServiceState): Draft<Cluster>[] => draftsOf(state, clusterOf)

function draftsOf<Message>({ service }: ServiceState, make: (target: Target) => Message): Draft<Message>[] {
  const { hostname: host, ports, resolution } = service
  if (resolution !== 'static' || host.startsWith('*')) return []
  const usable = ports.filter(({ protocol }) => protocol !== 'udp').map(({ number }) => ({ host, port: number, name: `${host}:${number}` }))
  return usable.map((target) => ({ name: target.name, objects: () => [serviceKey(service)], make: () => make(target) }))
}

function listenerOf({ name }: Target): Listener {
  const manager = pack(HttpConnectionManagerSchema, {
    statPrefix: name,
    routeSpecifier: { case: 'rds', value: { routeConfigName: name, configSource: overAds } },
    httpFilters: [{ name: 'envoy.filters.http.router', configType: { case: 'typedConfig', value: pack(RouterSchema, {}) } }],
  })
  return create(ListenerSchema, { name, apiListener: { apiListener: manager } })
}

function routesOf({ name, host }: Target): RouteConfiguration {
  const route = {
    match: { pathSpecifier: { case: 'prefix' as const, value: '' } },
    action: { case: 'route' as const, value: { clusterSpecifier: { case: 'cluster' as const, value: name } } },
  }
  return create(RouteConfigurationSchema, { name, virtualHosts: [{ name, domains: [host, name], routes: [route] }] })
}

function clusterOf({ name, host, port }: Target): Cluster {
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
    edsClusterConfig: { serviceName: outboundCluster(port, '', host), edsConfig: overAds },
    lbPolicy: Cluster_LbPolicy.ROUND_ROBIN,
  })
}
