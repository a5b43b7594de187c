/** The types of resources and of what stands in their `Any`s, for JSON. */
import { createRegistry, type JsonObject, type Registry, toJson } from '@bufbuild/protobuf'
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { NodeSchema } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { NameTableSchema } from '../../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { contain } from '../../../src/model/faults.ts'
import { messageTypes } from '../../../src/xds/envoy-filter/message-types.ts'

const resources = createRegistry(
  ClusterSchema,
  NodeSchema,
  TypedExtensionConfigSchema,
  ClusterLoadAssignmentSchema,
  ListenerSchema,
  VirtualHostSchema,
  RouteConfigurationSchema,
  NameTableSchema,
)

/** A registry of these types. */
export const resourceTypes: Registry = { ...messageTypes, getMessage: (name) => resources.getMessage(name) ?? messageTypes.getMessage(name) }

/** A resource as JSON with the names of its schema; undefined: the schema of a type within it is not known, or it is no message of its type. */
export const resourceJson = (resource: Any): JsonObject | undefined =>
  contain<JsonObject | undefined>(
    () => toJson(AnySchema, resource, { registry: resourceTypes, useProtoFieldName: true }) as JsonObject,
    () => undefined,
  )
