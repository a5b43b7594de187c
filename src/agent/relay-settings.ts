/** Reads the settings of the relay between Envoy and discovery from the environment. */

import type { ServerAddress } from '../../protocols/messages/credentials.ts'
import type { XdsRelayConfig } from '../../protocols/messages/xds-relay.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { exchangingProvider } from '../sts/settings.ts'
import { authorityConnection, type DiscoverySettings, discoveryConnection } from './connections.ts'
import { platformMetadata } from './platform.ts'

/** The Unix socket on which Envoy connects for its configuration. */
export const relaySocket = './etc/mesh/proxy/XDS'

/**
 * The minimum interval between two writes of the stored configuration, and how long discovery may be unreachable before the stored
 * configuration is served. Both in milliseconds.
 */
const keeping = { everyMs: 10_000, fallbackAfterMs: 3000 }

/** The prefix of variables that add a header to streams to discovery: `XDS_HEADER_<name>=<value>`. */
const headerPrefix = 'XDS_HEADER_'

/** The names of headers that are reserved for gRPC and for the agent. */
const ownHeaders =
  /^(grpc-.*|content-type|content-length|te|host|connection|transfer-encoding|upgrade|keep-alive|http2-settings|authorization|clusterid)$/

/** The configuration of the relay, and warnings about variables that cannot be used. */
export interface RelaySettings {
  readonly config: XdsRelayConfig
  readonly warnings: readonly string[]
}

/**
 * Returns the configuration of the relay. `asksNameTable` is true when the agent has a DNS server. Throws an Error when the address of
 * discovery or of the authority is invalid.
 */
export function xdsRelayConfig(
  features: AgentFeatures,
  proxy: DiscoverySettings,
  environment: Readonly<Record<string, string | undefined>>,
  asksNameTable: boolean,
): RelaySettings {
  const { headers, warnings } = extraHeaders(environment)
  const { MESH_META_CLUSTER_ID: clusterId, XDS_AUTH_PROVIDER: provider, CLOUD_METADATA: metadata } = features
  const { MESH_AGENT_KEEP_CONFIGURATION: keeps, MESH_AGENT_STATE_DIR: stateDirectory } = features
  const exchangesToken = provider === exchangingProvider
  const discovery = discoveryConnection(features, proxy)
  const project = exchangesToken ? platformMetadata(metadata, '').gcp_project : undefined
  return {
    config: {
      socket: relaySocket,
      allowVolumes: features.ORCHESTRATOR_SERVICE_HOST !== '',
      discovery,
      headers: { ...headers, ...(project ? { 'x-goog-user-project': project } : {}), ...(clusterId === '' ? {} : { clusterid: clusterId }) },
      exchangesToken,
      keeps: keeps ? { file: `${stateDirectory}/configuration/last`, ...keeping } : undefined,
      asksNameTable,
      asksTrust: !features.FILE_MOUNTED_CERTS && isSameServer(discovery.address, authorityConnection(features, proxy.discoveryAddress).address),
    },
    warnings,
  }
}

/** Whether discovery is the certificate authority too, called in the same way: another server does not decide which roots are trusted. */
const isSameServer = (discovery: ServerAddress, authority: ServerAddress): boolean =>
  discovery.host === authority.host && discovery.port === authority.port && discovery.isPlain === authority.isPlain

function extraHeaders(environment: Readonly<Record<string, string | undefined>>): { headers: Record<string, string>; warnings: string[] } {
  const headers = new Map<string, string>()
  const warnings: string[] = []
  for (const [variable, value = ''] of Object.entries(environment)) {
    if (!variable.startsWith(headerPrefix)) continue
    const name = variable.slice(headerPrefix.length).toLowerCase()
    const fault = headerFault(name, value)
    if (fault === undefined) headers.set(name, value)
    else warnings.push(`environment variable ${variable.slice(0, 100)}: ${fault}; it is not sent`)
  }
  return { headers: Object.fromEntries(headers), warnings }
}

/** Returns why a header cannot be sent as metadata (gRPC over HTTP/2, Custom-Metadata). Undefined when it can. */
function headerFault(name: string, value: string): string | undefined {
  if (!/^[0-9a-z_.-]{1,200}$/.test(name)) return 'names no header: letters, digits, "-", "_" and "." are allowed'
  if (ownHeaders.test(name)) return `names the header ${name}, which is reserved`
  if (name.endsWith('-bin')) return 'names a binary header (-bin), which is not supported'
  if (!/^[\x20-\x7e]{0,8192}$/.test(value)) return 'has a value that is not of at most 8192 printable ASCII characters'
  return undefined
}
