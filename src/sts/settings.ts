/** Reads the settings of the token service from flags and the environment. */
import type { CloudExchange, TokenServiceConfig } from '../../protocols/messages/sts.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { canonicalCloudName } from '../names/mesh-names.ts'

/** The flags of the token service and facts of the workload. */
export interface TokenServiceFlags {
  /** `--stsPort`; 0 when there is no server. */
  readonly stsPort: number
  /** `--tokenManagerPlugin`. */
  readonly tokenManagerPlugin: string
  readonly isIpv6Only: boolean
  /** The platform metadata, under the names that telemetry uses (`gcp_project_number`, ...). */
  readonly platform: Readonly<Record<string, string>>
}

const pluginName = 'CloudTokenExchange'
/** The value of `XDS_AUTH_PROVIDER` with which the relay's tokens are exchanged. */
export const exchangingProvider = 'gcp'
const fetcherOfInstances = 'CloudComputeEngine'

/**
 * Returns the configuration of the token service. Undefined when neither the server nor the relay needs it. Throws an Error that names the
 * variable with an invalid URL.
 */
export function tokenServiceConfig(features: AgentFeatures, { stsPort, isIpv6Only, ...flags }: TokenServiceFlags): TokenServiceConfig | undefined {
  if (stsPort === 0 && features.XDS_AUTH_PROVIDER !== exchangingProvider) return undefined
  return { port: stsPort === 0 ? undefined : stsPort, isIpv6Only, plugin: pluginOf(features, flags) }
}

function pluginOf(
  features: AgentFeatures,
  { tokenManagerPlugin: name, platform }: Pick<TokenServiceFlags, 'tokenManagerPlugin' | 'platform'>,
): TokenServiceConfig['plugin'] {
  if (canonicalCloudName(name) !== pluginName)
    return { fault: `--tokenManagerPlugin ${JSON.stringify(name.slice(0, 100))} is not known; ${pluginName} is` }
  const { gcp_project_number: projectNumber } = platform
  if (!projectNumber) return { fault: unknownCluster('number of the project') }
  const exchange = federatedExchange(features, platform)
  if ('fault' in exchange) return exchange
  const { federatedUrl, audience } = exchange
  return {
    federatedUrl,
    accessUrl: checkedUrl('CLOUD_ACCESS_TOKEN_URL', features.CLOUD_ACCESS_TOKEN_URL.replaceAll('{project}', encodeURIComponent(projectNumber))),
    audience,
  } satisfies CloudExchange
}

const unknownCluster = (what: string) => `the ${what} is not known: CLOUD_METADATA is not <id>|<number>|<cluster>|<zone>`

/** How a token of the workload is exchanged for a federated token, and the URL of the workload's cluster; empty when it is not known. */
interface FederatedExchange extends Pick<CloudExchange, 'federatedUrl' | 'audience'> {
  readonly cluster: string
}

/**
 * Returns how a federated token is obtained, or why none can be. `platform` is the platform metadata. Throws an Error that names the
 * variable with an invalid URL.
 */
export function federatedExchange(
  features: AgentFeatures,
  { gcp_project: project, gcp_gke_cluster_name: clusterName, gcp_location: zone }: TokenServiceFlags['platform'],
): FederatedExchange | { readonly fault: string } {
  const located =
    project && clusterName && zone && `https://container.googleapis.com/v1/projects/${project}/locations/${zone}/clusters/${clusterName}`
  const cluster = features.CLOUD_CLUSTER_URL || located || ''
  const isInstance = canonicalCloudName(features.CREDENTIAL_FETCHER_TYPE) === fetcherOfInstances
  const provider = isInstance ? features.CREDENTIAL_IDENTITY_PROVIDER : cluster
  if (provider === '') return { fault: `${unknownCluster('cluster')}, and CLOUD_CLUSTER_URL is empty` }
  return {
    cluster,
    federatedUrl: checkedUrl('CLOUD_FEDERATED_TOKEN_URL', features.CLOUD_FEDERATED_TOKEN_URL),
    audience: `identitynamespace:${features.TRUST_DOMAIN}:${provider}`,
  }
}

/** Validates a URL: tokens are sent over TLS or stay on this machine. */
function checkedUrl(variable: string, given: string): string {
  const url = URL.parse(given)
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname))) return url.href
  throw new Error(`environment variable ${variable}: ${JSON.stringify(given.slice(0, 200))} is no https URL, and no http URL on this machine`)
}
