/** Makes the proxy's bootstrap (envoy.config.bootstrap.v3.Bootstrap) from its settings (docs/agent.md, B11). */

import type { JsonObject } from '@bufbuild/protobuf'
import type {
  AdminJson,
  Bootstrap_DynamicResourcesJson,
  BootstrapJson,
  LayeredRuntimeJson,
} from '../../protocols/gen/envoy/config/bootstrap/v3/bootstrap_pb.js'
import type { ApiConfigSourceJson } from '../../protocols/gen/envoy/config/core/v3/config_source_pb.js'
import type { GrpcService_GoogleGrpcJson, GrpcServiceJson } from '../../protocols/gen/envoy/config/core/v3/grpc_service_pb.js'
import type { ListenerJson } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import type { OverloadManagerJson } from '../../protocols/gen/envoy/config/overload/v3/overload_pb.js'
import { agentProgramSize } from '../config/program-bounds.ts'
import { staticClusters } from './clusters.ts'
import { programSizeKey } from './metadata.ts'
import type { ProxyConfig } from './proxy-config.ts'
import type { BootstrapSettings } from './settings.ts'
import { statsConfig, statsSinks } from './stats.ts'
import { tracing } from './tracer.ts'
import { typed } from './typed.ts'

/** Where Envoy's admin interface writes CPU profiles. */
const profilePath = '/var/lib/mesh/data/envoy.prof'

/** Makes the bootstrap. Throws an Error that names the field when TLS settings lack a required file. */
export function makeBootstrap(settings: BootstrapSettings): BootstrapJson {
  const { config, node, locality, stats, outlierLogPath } = settings
  const sinks = statsSinks(config, settings.statsd)
  const tracer = tracing(config, node.serviceCluster)
  return {
    node: {
      id: node.id,
      cluster: node.serviceCluster,
      locality,
      metadata: node.metadata as JsonObject,
    },
    layeredRuntime: runtime(config),
    overloadManager,
    statsConfig: statsConfig(stats, node.addresses),
    ...(sinks.length > 0 && { statsSinks: sinks }),
    admin: admin(settings),
    dynamicResources: dynamicResources(settings),
    staticResources: { clusters: staticClusters(settings), listeners: listeners(settings) },
    ...(tracer && { tracing: tracer }),
    ...(outlierLogPath && { clusterManager: { outlierDetection: { eventLogPath: outlierLogPath } } }),
  }
}

/** Sets a practically unlimited number of downstream connections, because the workload enforces limits of its own. */
const overloadManager: OverloadManagerJson = {
  resourceMonitors: [
    {
      name: 'envoy.resource_monitors.global_downstream_max_connections',
      typedConfig: typed('envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig', {
        maxActiveDownstreamConnections: '2147483647',
      }),
    },
  ],
}

function runtime(config: ProxyConfig): LayeredRuntimeJson {
  return {
    layers: [
      // Envoy's default limit is too small for the patterns that routes may contain.
      { name: 'deprecation', staticLayer: { [programSizeKey]: agentProgramSize } },
      ...(config.runtimeValues ? [{ name: 'global config', staticLayer: config.runtimeValues as JsonObject }] : []),
      { name: 'admin', adminLayer: {} },
    ],
  }
}

function admin({ config, localhost }: BootstrapSettings): AdminJson {
  return {
    accessLog: [
      { name: 'envoy.access_loggers.file', typedConfig: typed('envoy.extensions.access_loggers.file.v3.FileAccessLog', { path: '/dev/null' }) },
    ],
    profilePath,
    address: { socketAddress: { address: localhost, portValue: config.proxyAdminPort } },
  }
}

function dynamicResources(settings: BootstrapSettings): Bootstrap_DynamicResourcesJson {
  const aggregated = { ads: {}, resourceApiVersion: 'V3' } as const
  const adsConfig: ApiConfigSourceJson = {
    apiType: settings.isDelta ? 'DELTA_GRPC' : 'GRPC',
    setNodeOnFirstMessageOnly: true,
    transportApiVersion: 'V3',
    grpcServices: [discoveryService(settings)],
  }
  return { ldsConfig: aggregated, cdsConfig: aggregated, adsConfig }
}

function discoveryService({ config, callCredentials, discovery: { roots, address } }: BootstrapSettings): GrpcServiceJson {
  if (!callCredentials) return { envoyGrpc: { clusterName: 'xds-grpc' } }
  const { host, serverName } = address
  return {
    googleGrpc: {
      targetUri: config.discoveryAddress,
      statPrefix: 'googlegrpcxds',
      channelCredentials: { sslCredentials: roots === undefined ? {} : { rootCerts: { filename: roots } } },
      ...(serverName !== host && { channelArgs: { args: { 'grpc.ssl_target_name_override': { stringValue: serverName } } } }),
      ...tokenCredentials(callCredentials),
    },
  }
}

/** Envoy's plugin for a token that is read from its file for each call. */
const fileCredentials = 'envoy.grpc_credentials.file_based_metadata'

function tokenCredentials({ stsPort, tokenFile }: NonNullable<BootstrapSettings['callCredentials']>): Partial<GrpcService_GoogleGrpcJson> {
  if (stsPort === undefined) {
    const typedConfig = typed('envoy.config.grpc_credential.v3.FileBasedMetadataConfig', {
      secretData: { filename: tokenFile },
      headerPrefix: 'Bearer ',
    })
    return { credentialsFactoryName: fileCredentials, callCredentials: [{ fromPlugin: { name: fileCredentials, typedConfig } }] }
  }
  return {
    callCredentials: [
      {
        stsService: {
          tokenExchangeServiceUri: `http://localhost:${stsPort}/token`,
          subjectTokenPath: tokenFile,
          subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
          scope: 'https://www.googleapis.com/auth/cloud-platform',
        },
      },
    ],
  }
}

function listeners(settings: BootstrapSettings): ListenerJson[] {
  const { config, wildcard, otherWildcard, metricsPort, readinessPort } = settings
  const metrics = { port: metricsPort, name: 'stats', path: '/stats/prometheus', cluster: 'prometheus_stats' }
  // Without a status server there is no endpoint for readiness probes.
  const readiness = config.statusPort > 0 ? [{ port: readinessPort, name: 'agent', path: '/healthz/ready', cluster: 'agent' }] : []
  return [metrics, ...readiness].map((own) => listener(wildcard, otherWildcard, own))
}

/** A listener of the bootstrap: its port and name, and the only path that it answers, with the cluster behind it. */
interface OwnListener {
  readonly port: number
  readonly name: string
  readonly path: string
  readonly cluster: string
}

function listener(address: string, other: string | undefined, { port, name, path, cluster }: OwnListener): ListenerJson {
  const virtualHost = { name: 'backend', domains: ['*'], routes: [{ match: { prefix: path }, route: { cluster } }] }
  const manager = typed('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
    codecType: 'AUTO',
    statPrefix: name,
    routeConfig: { virtualHosts: [virtualHost] },
    httpFilters: [{ name: 'envoy.filters.http.router', typedConfig: typed('envoy.extensions.filters.http.router.v3.Router', {}) }],
  })
  return {
    address: { socketAddress: { protocol: 'TCP', address, portValue: port } },
    ...(other !== undefined && { additionalAddresses: [{ address: { socketAddress: { protocol: 'TCP', address: other, portValue: port } } }] }),
    filterChains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typedConfig: manager }] }],
  }
}
