/** Access logs: `envoy.config.accesslog.v3.AccessLog` from the mesh configuration (docs/resources.md, L13). */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf'
import { create } from '@bufbuild/protobuf'
import { type AccessLogSchema, ResponseFlagFilterSchema } from '../../../protocols/gen/envoy/config/accesslog/v3/accesslog_pb.js'
import { FileAccessLogSchema } from '../../../protocols/gen/envoy/extensions/access_loggers/file/v3/file_pb.js'
import { HttpGrpcAccessLogConfigSchema } from '../../../protocols/gen/envoy/extensions/access_loggers/grpc/v3/als_pb.js'
import type { MeshConfig } from '../../config/mesh-config.ts'
import { pack } from '../message.ts'

type AccessLog = MessageInitShape<typeof AccessLogSchema>

/** Keys of the JSON format with their command operators; {@link textFormat} uses the same operators. */
const operators: Readonly<Record<string, string>> = {
  start_time: '%START_TIME%',
  route_name: '%ROUTE_NAME%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
  protocol: '%PROTOCOL%',
  response_code: '%RESPONSE_CODE%',
  response_flags: '%RESPONSE_FLAGS%',
  response_code_details: '%RESPONSE_CODE_DETAILS%',
  connection_termination_details: '%CONNECTION_TERMINATION_DETAILS%',
  bytes_received: '%BYTES_RECEIVED%',
  bytes_sent: '%BYTES_SENT%',
  duration: '%DURATION%',
  upstream_service_time: '%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%',
  x_forwarded_for: '%REQ(X-FORWARDED-FOR)%',
  user_agent: '%REQ(USER-AGENT)%',
  request_id: '%REQ(X-REQUEST-ID)%',
  authority: '%REQ(:AUTHORITY)%',
  upstream_host: '%UPSTREAM_HOST%',
  upstream_cluster: '%UPSTREAM_CLUSTER%',
  upstream_local_address: '%UPSTREAM_LOCAL_ADDRESS%',
  downstream_local_address: '%DOWNSTREAM_LOCAL_ADDRESS%',
  downstream_remote_address: '%DOWNSTREAM_REMOTE_ADDRESS%',
  requested_server_name: '%REQUESTED_SERVER_NAME%',
  upstream_transport_failure_reason: '%UPSTREAM_TRANSPORT_FAILURE_REASON%',
}

const op = (key: string): string => operators[key] as string
const textFormat = `[${op('start_time')}] "${op('method')} ${op('path')} ${op('protocol')}" ${['response_code', 'response_flags', 'response_code_details', 'connection_termination_details'].map(op).join(' ')} "${op('upstream_transport_failure_reason')}" ${['bytes_received', 'bytes_sent', 'duration', 'upstream_service_time'].map(op).join(' ')} ${['x_forwarded_for', 'user_agent', 'request_id', 'authority', 'upstream_host'].map((key) => `"${op(key)}"`).join(' ')} ${['upstream_cluster', 'upstream_local_address', 'downstream_local_address', 'downstream_remote_address', 'requested_server_name', 'route_name'].map(op).join(' ')}\n`

/** Returns the access logs of connections and requests: to a file, and to the access log service. */
export function accessLogs(mesh: MeshConfig): AccessLog[] {
  const logs: AccessLog[] = []
  if (mesh.accessLogFile !== '') logs.push(fileLog(mesh))
  if (mesh.enableEnvoyAccessLogService) {
    logs.push({
      name: 'envoy.access_loggers.http_grpc',
      configType: {
        case: 'typedConfig',
        value: pack(HttpGrpcAccessLogConfigSchema, {
          commonConfig: {
            logName: 'http_envoy_accesslog',
            transportApiVersion: 2,
            grpcService: { targetSpecifier: { case: 'envoyGrpc', value: { clusterName: 'envoy_accesslog_service' } } },
          },
        }),
      },
    })
  }
  return logs
}

/** Returns the access log of a listener itself: it logs connections for which no filter chain was found. */
export function listenerAccessLogs(mesh: MeshConfig): AccessLog[] {
  if (mesh.disableEnvoyListenerLog || mesh.accessLogFile === '') return []
  return [
    { ...fileLog(mesh), filter: { filterSpecifier: { case: 'responseFlagFilter', value: create(ResponseFlagFilterSchema, { flags: ['NR'] }) } } },
  ]
}

function fileLog(mesh: MeshConfig): { name: string; configType: { case: 'typedConfig'; value: ReturnType<typeof pack> } } {
  const json = mesh.accessLogEncoding === 'JSON'
  const format = json
    ? { case: 'jsonFormat' as const, value: jsonFormat(mesh.accessLogFormat) }
    : { case: 'textFormatSource' as const, value: { specifier: { case: 'inlineString' as const, value: mesh.accessLogFormat || textFormat } } }
  return {
    name: 'envoy.access_loggers.file',
    configType: {
      case: 'typedConfig',
      value: pack(FileAccessLogSchema, { path: mesh.accessLogFile, accessLogFormat: { case: 'logFormat', value: { format } } }),
    },
  }
}

function jsonFormat(given: string): JsonObject {
  if (given === '') return { ...operators }
  try {
    return JSON.parse(given) as JsonObject
  } catch {
    return { ...operators }
  }
}
