/** The configuration of a proxy in the form of Envoy's admin interface (`envoy.admin.v3.ConfigDump`). */
import { type DescMessage, fromBinary, type JsonValue, toJson } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { NameTableSchema } from '../../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { messageTypes } from '../../../src/xds/envoy-filter/message-types.ts'
import { resourceIn } from '../../../src/xds/resource-element.ts'
import {
  clusterType,
  endpointType,
  extensionConfigType,
  listenerType,
  nameTableType,
  routeType,
  virtualHostType,
} from '../../../src/xds/type-urls.ts'

/** The encoded resources of a proxy, as its writer returns them. */
export type ProxyResources = Readonly<Record<string, readonly { name: string; version: string; element: string }[]>>

/** Returns the clusters, listeners, routes and extension configurations of a proxy. */
export function configDump(resources: ProxyResources): unknown {
  const list = (typeUrl: string, schema: DescMessage) =>
    (resources[typeUrl] ?? []).map(({ name, version, element }) => ({ name, version_info: version, resource: decode(schema, typeUrl, element) }))
  const hosts = list(virtualHostType, VirtualHostSchema)
  const admin = 'type.googleapis.com/envoy.admin.v3.'
  return {
    configs: [
      {
        '@type': `${admin}ClustersConfigDump`,
        dynamic_active_clusters: list(clusterType, ClusterSchema).map(({ version_info, resource }) => ({ version_info, cluster: resource })),
      },
      {
        '@type': `${admin}ListenersConfigDump`,
        dynamic_listeners: list(listenerType, ListenerSchema).map(({ name, version_info, resource }) => ({
          name,
          active_state: { version_info, listener: resource },
        })),
      },
      {
        '@type': `${admin}RoutesConfigDump`,
        dynamic_route_configs: list(routeType, RouteConfigurationSchema).map(({ name, version_info, resource }) => ({
          version_info,
          route_config: withHosts(
            resource,
            hosts.filter((host) => host.name.startsWith(`${name}/`)).map((host) => host.resource),
          ),
        })),
      },
      {
        '@type': `${admin}EcdsConfigDump`,
        ecds_filters: list(extensionConfigType, TypedExtensionConfigSchema).map(({ version_info, resource }) => ({
          version_info,
          ecds_filter: resource,
        })),
      },
    ],
  }
}

/** Adds the virtual hosts that are separate resources (VHDS) to a route configuration, as the proxy sees it. */
function withHosts(route: JsonValue, hosts: readonly JsonValue[]): JsonValue {
  if (hosts.length === 0 || typeof route !== 'object' || route === null || Array.isArray(route)) return route
  return { ...route, virtual_hosts: [...((route.virtual_hosts as JsonValue[] | undefined) ?? []), ...hosts] }
}

/** Returns the load assignments of a proxy. */
export function loadAssignments(resources: ProxyResources): JsonValue[] {
  return (resources[endpointType] ?? []).map(({ element }) => decode(ClusterLoadAssignmentSchema, endpointType, element))
}

/** Returns the name table of a proxy; undefined for a proxy that is sent none. */
export function nameTableOf(resources: ProxyResources): JsonValue | undefined {
  const [table] = resources[nameTableType] ?? []
  return table && decode(NameTableSchema, nameTableType, table.element)
}

/** Decodes a resource to JSON. For a message that cannot be decoded, the JSON has the reason. */
function decode(schema: DescMessage, typeUrl: string, element: string): JsonValue {
  try {
    const any = resourceIn(Buffer.from(element, 'base64'))
    return { '@type': typeUrl, ...(toJson(schema, fromBinary(schema, any.value), { registry: messageTypes, useProtoFieldName: true }) as object) }
  } catch (error) {
    return { '@type': typeUrl, error: (error as Error).message }
  }
}
