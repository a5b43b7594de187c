/**
 * Derives everything that the proxy is started with from the sources: its node, effective configuration, and bootstrap settings
 * (docs/agent.md, "Bootstrap").
 */
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { ServerConnection } from '../../protocols/messages/credentials.ts'
import { type DiscoverySettings, discoveryConnection } from '../agent/connections.ts'
import { localityOf, platformMetadata } from '../agent/platform.ts'
import { type AgentFeatures, readAgentFeatures } from '../config/agent-features.ts'
import { canonicalEnvironment, type MeshNames } from '../names/mesh-names.ts'
import { tokenServiceConfig } from '../sts/settings.ts'
import { nodeMetadata } from './metadata.ts'
import { areIpv6Only, domainOf, nodeId, type WorkloadNode, workloadAddresses } from './node.ts'
import { type ConfigLayer, checkProxyConfig, concurrencyOf, mergeProxyConfig, type ProxyConfig, withHostAddress } from './proxy-config.ts'
import type { BootstrapSettings } from './settings.ts'
import { statsChoice } from './stats.ts'

type Environment = Readonly<Record<string, string | undefined>>
type Texts = Readonly<Record<string, string>>

/** The contents of the pod's files. Empty for missing files. */
export interface PodFacts {
  readonly labels: Texts
  readonly annotations: Texts
  /** The CPU limit and request in millicores. */
  readonly cpuLimit: string
  readonly cpuRequest: string
}

/** The sources. */
export interface ProxySources {
  /** The version of the agent, `<major>.<minor>.<patch>`. */
  readonly version: string
  readonly options: ProxyOptions
  /** The variables of the process, with names in the mesh form. */
  readonly environment: Environment
  readonly pod: PodFacts
  /** Layers of the configuration. Later layers take precedence. */
  readonly layers: readonly ConfigLayer[]
  /** The addresses of interfaces that are up, without loopback addresses. */
  readonly interfaces: readonly string[]
  /** Whether the kernel has IPv6, in the network namespace of the workload. */
  readonly hasIpv6: boolean
  readonly names: MeshNames
}

/** The settings of the proxy. Plain data. */
export interface PreparedSettings {
  readonly options: ProxyOptions
  /** The values of the agent's variables, read from `environment`. */
  readonly features: AgentFeatures
  /** The variables of the process, and those of `proxyMetadata` that the process does not set. */
  readonly environment: Environment
  readonly config: ProxyConfig
  readonly node: WorkloadNode
  readonly platform: Texts
  /** How the discovery service is called. */
  readonly discovery: ServerConnection
  readonly stats: BootstrapSettings['stats']
}

/** Derives the settings. Throws an Error that names the source and the field that cannot be parsed or is invalid. */
export function preparedSettings(sources: ProxySources, warn: (text: string) => void): PreparedSettings {
  const { version, options, pod, names, hasIpv6 } = sources
  const layered = mergeProxyConfig(sources.layers, warn)
  // The process's variables take precedence over those that the configuration sets for the proxy.
  const environment = { ...canonicalEnvironment(layered.proxyMetadata ?? {}), ...sources.environment }
  const { features, warnings } = readAgentFeatures(environment)
  for (const warning of warnings) warn(warning)
  const config = effectiveConfig(options, layered, { features, environment, pod })
  checkProxyConfig(config)
  const platform = platformMetadata(features.CLOUD_METADATA, features.CLOUD_CLUSTER_URL)
  const addresses = workloadAddresses(features.INSTANCE_IP, sources.interfaces)
  const { labels, annotations } = pod
  const { PROXY_STATUS_PORT, PROXY_PROMETHEUS_PORT } = features
  const ports = { PROXY_STATUS_PORT, PROXY_PROMETHEUS_PORT }
  const metadata = nodeMetadata({ version, environment, labels, addresses, hasIpv6, config, stsPort: options.stsPort, ports, platform }, warn)
  return {
    options,
    features,
    environment,
    config,
    node: workloadNode(options, features, { addresses, hasIpv6 }, metadata),
    platform,
    discovery: discoveryConnection(features, discoverySettings(config)),
    // The metadata may contain annotations as well, for pods without an annotations file.
    stats: statsChoice(config, names.canonicalKeys({ ...textsOf(metadata), ...annotations }), names.domain),
  }
}

/** Returns the settings that determine how discovery is called. */
export function discoverySettings({ discoveryAddress, controlPlaneAuthPolicy, proxyMetadata = {} }: ProxyConfig): DiscoverySettings {
  return { discoveryAddress, controlPlaneAuthPolicy, proxyMetadata }
}

const textsOf = (metadata: WorkloadNode['metadata']): Texts =>
  Object.fromEntries(Object.entries(metadata).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))

interface EffectiveSources {
  readonly features: AgentFeatures
  readonly environment: Environment
  readonly pod: PodFacts
}

/** Returns the configuration with the overrides of flags, variables and the container's CPU limit. */
function effectiveConfig(options: ProxyOptions, layered: ProxyConfig, { features, environment, pod }: EffectiveSources): ProxyConfig {
  const { role, concurrency: flag, serviceCluster, templateFile } = options
  const { cpuLimit, cpuRequest } = pod
  const { HOST_IP: hostIp, TERMINATION_DRAIN_DURATION_SECONDS: drainSeconds } = features
  return withHostAddress(
    {
      ...layered,
      serviceCluster,
      concurrency: concurrencyOf({ role, flag, configured: layered.concurrency, cpuLimit, cpuRequest }),
      ...(environment.TERMINATION_DRAIN_DURATION_SECONDS !== undefined && { terminationDrainDuration: drainSeconds * 1000 }),
      ...(templateFile && !layered.customConfigFile && { proxyBootstrapTemplatePath: templateFile }),
    },
    hostIp,
  )
}

function workloadNode(
  options: ProxyOptions,
  features: AgentFeatures,
  { addresses, hasIpv6 }: Pick<WorkloadNode, 'addresses' | 'hasIpv6'>,
  metadata: WorkloadNode['metadata'],
): WorkloadNode {
  const { role, domain: flag, serviceCluster } = options
  const { POD_NAME: name, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: serviceAccount, MESH_META_CLUSTER_ID: clusterId } = features
  const domain = domainOf(flag, namespace)
  const id = nodeId(role, addresses[0] ?? '', name, namespace, domain)
  return {
    role,
    id,
    domain,
    addresses,
    isIpv6Only: areIpv6Only(addresses),
    hasIpv6,
    name,
    namespace,
    serviceAccount,
    clusterId,
    serviceCluster,
    metadata,
  }
}

/**
 * Returns the token settings with which the proxy calls discovery by itself: undefined with certificates, and when the agent calls in its
 * place and sends the token. Throws an Error that names what is missing when no token is sent, or no connection may carry one.
 */
function callCredentials({ options, features, platform, node, discovery }: PreparedSettings): BootstrapSettings['callCredentials'] {
  if (!features.CALL_CREDENTIALS) return undefined
  const { tokenFile } = discovery.credentials
  if (tokenFile === undefined)
    throw new Error('environment variable CALL_CREDENTIALS: needs a token, and JWT_POLICY or FILE_MOUNTED_CERTS says that there is none')
  if (discovery.address.isPlain) throw new Error('environment variable CALL_CREDENTIALS: needs TLS to discovery, and no token is sent without it')
  const service = tokenServiceConfig(features, { ...options, platform, isIpv6Only: node.isIpv6Only })
  if (service?.port !== undefined && !('fault' in service.plugin)) return { stsPort: service.port, tokenFile }
  return features.PROXY_XDS_VIA_AGENT ? undefined : { stsPort: undefined, tokenFile }
}

/** Facts that are determined when the bootstrap is written. */
export interface FoundPeers {
  /** The file of the discovery service's roots. Undefined for the roots of the system. */
  readonly roots: string | undefined
  /** Whether the files of the agent's own client certificate exist. */
  readonly hasPair: boolean
  /** The resolved address of the statsd collector. Undefined without one. */
  readonly statsd: BootstrapSettings['statsd']
}

/** Returns the settings of the bootstrap. */
export function bootstrapSettings(prepared: PreparedSettings, { roots, hasPair, statsd }: FoundPeers): BootstrapSettings {
  const { options, features, config, node, platform, discovery, stats } = prepared
  const { credentials, address } = discovery
  return {
    config,
    node,
    locality: localityOf(node.metadata.LABELS, platform),
    stats,
    localhost: node.isIpv6Only ? '::1' : '127.0.0.1',
    wildcard: node.isIpv6Only ? '::' : '0.0.0.0',
    otherWildcard: node.hasIpv6 ? (node.isIpv6Only ? '0.0.0.0' : '::') : undefined,
    dnsLookupFamily: node.isIpv6Only ? 'AUTO' : 'V4_ONLY',
    isViaAgent: features.PROXY_XDS_VIA_AGENT,
    isDelta: features.MESH_DELTA_XDS,
    callCredentials: callCredentials(prepared),
    discovery: { address, roots, pair: hasPair ? credentials.pair : undefined },
    readinessPort: features.PROXY_STATUS_PORT,
    metricsPort: features.PROXY_PROMETHEUS_PORT,
    outlierLogPath: options.outlierLogPath,
    statsd,
  }
}
