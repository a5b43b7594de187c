/** Reads the settings of the workload's secrets from the environment. */
import { resolve } from 'node:path'
import type { CertificateConfig, CloudAuthority, FetcherConfig, OutputConfig, SecretAgentConfig } from '../../protocols/messages/agent.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { workloadId } from '../identity/spiffe-id.ts'
import { canonicalCloudName } from '../names/mesh-names.ts'
import { exchangingProvider, federatedExchange } from '../sts/settings.ts'
import { authorityConnection, defaultRoots, isCloudAuthority, keptIn, mountedCertificates, tokenFile } from './connections.ts'
import { platformMetadata } from './platform.ts'

/** The Unix socket on which Envoy connects for secrets. */
export const secretSocket = './etc/mesh/proxy/SDS'

/**
 * Returns the configuration of the SDS server. Throws an Error that names the variable when an address, a name or an algorithm is invalid,
 * or when variables contradict each other. `discoveryAddress` is the one of the proxy's configuration, `<host>:<port>`.
 */
export function secretAgentConfig(features: AgentFeatures, discoveryAddress: string): SecretAgentConfig {
  const { OUTPUT_CERTS: output, PROV_CERT: provisioned, FILE_MOUNTED_CERTS: areMounted } = features
  if (provisioned !== '' && areMounted)
    throw new Error(
      'environment variables PROV_CERT and FILE_MOUNTED_CERTS contradict each other: a certificate is provisioned for a call to the authority, or mounted in its place',
    )
  return {
    socket: secretSocket,
    allowVolumes: features.ORCHESTRATOR_SERVICE_HOST !== '',
    certificate: areMounted ? undefined : certificateConfig(features, discoveryAddress),
    fetcher: areMounted ? undefined : fetcherConfig(features),
    notices: noticesOf(features),
    mounted: output !== '' && resolve(output) === resolve(mountedCertificates) ? undefined : mountedCertificates,
    output: output === '' ? undefined : outputConfig(features),
    fileQuietMs: features.FILE_DEBOUNCE_DURATION,
  }
}

function outputConfig({
  OUTPUT_CERTS: directory,
  OUTPUT_CERTS_PASSWORD_FILE: passwordFile,
  ORCHESTRATOR_SERVICE_HOST: host,
}: AgentFeatures): OutputConfig {
  return { directory, isForAll: host !== '', passwordFile: passwordFile === '' ? undefined : passwordFile }
}

/**
 * The value of `CREDENTIAL_FETCHER_TYPE` for tokens of a cloud's metadata server, and below it the one for tokens of a discovery service on
 * the same machine.
 */
const cloudFetcher = 'CloudComputeEngine'
const localFetcher = 'meshd'

function fetcherConfig(features: AgentFeatures): FetcherConfig | undefined {
  const { CREDENTIAL_FETCHER_TYPE: type, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: account } = features
  if (canonicalCloudName(type) !== cloudFetcher && type !== localFetcher) return undefined
  const variable = `environment variable CREDENTIAL_FETCHER_TYPE: ${type}`
  const file = tokenFile(features)
  if (file === undefined) throw new Error(`${variable} needs JWT_POLICY to name a token, whose file it writes`)
  if (type !== localFetcher) return { from: 'cloud', metadataHost: features.GCE_METADATA_HOST, audience: features.TRUST_DOMAIN, tokenFile: file }
  if (namespace === '' || account === '') throw new Error(`${variable} needs POD_NAMESPACE and SERVICE_ACCOUNT`)
  return { from: 'local', socket: features.MESHD_ADMIN_SOCKET, namespace, account, tokenFile: file, rootsFile: defaultRoots }
}

function cloudAuthority(features: AgentFeatures): CloudAuthority | undefined {
  if (!isCloudAuthority(features)) return undefined
  const variable = `environment variables CA_PROVIDER, CA_ADDR: the certificate service of a cloud needs`
  if (tokenFile(features) === undefined) throw new Error(`${variable} JWT_POLICY to name a token`)
  const exchange = federatedExchange(features, platformMetadata(features.CLOUD_METADATA, features.CLOUD_CLUSTER_URL))
  if ('fault' in exchange) throw new Error(`${variable} to know the cluster: ${exchange.fault}`)
  const zone = /\/projects\/[^/]*\/locations\/([^/]+)\/clusters\//.exec(exchange.cluster)?.[1]
  return { federatedUrl: exchange.federatedUrl, audience: exchange.audience, zone }
}

/** The known values of `PILOT_CERT_PROVIDER`. `istiod` and `kubernetes` are the names that the reference uses. */
const rootProviders = ['meshd', 'istiod', 'orchestrator', 'kubernetes', 'custom']

function noticesOf(features: AgentFeatures): string[] {
  const [provider, fetcher, identity] = [features.CA_PROVIDER, features.CREDENTIAL_FETCHER_TYPE, features.CREDENTIAL_IDENTITY_PROVIDER]
  const quoted = (value: string) => JSON.stringify(value.slice(0, 100))
  const known = ['', localFetcher, cloudFetcher]
  return [
    ...(provider === 'Citadel' || isCloudAuthority(features)
      ? []
      : [`CA_PROVIDER: ${quoted(provider)} has no client of its own: the one for Citadel is used`]),
    ...(known.includes(canonicalCloudName(fetcher))
      ? []
      : [`CREDENTIAL_FETCHER_TYPE: ${quoted(fetcher)} has no effect: it is neither CloudComputeEngine nor meshd`]),
    ...(canonicalCloudName(identity) === cloudFetcher
      ? []
      : [`CREDENTIAL_IDENTITY_PROVIDER: ${quoted(identity)} has no effect: CloudComputeEngine is the only one`]),
    ...(tokenFile(features)
      ? []
      : [`JWT_POLICY: ${quoted(features.JWT_POLICY)} names no token, so none is sent: third-party-jwt and first-party-jwt do`]),
    ...(rootProviders.includes(features.PILOT_CERT_PROVIDER)
      ? []
      : [`PILOT_CERT_PROVIDER: ${quoted(features.PILOT_CERT_PROVIDER)} has no effect: it is none of ${rootProviders.join(', ')}`]),
    ...(features.OUTPUT_CERTS_PASSWORD_FILE === '' || features.OUTPUT_CERTS !== ''
      ? []
      : ['OUTPUT_CERTS_PASSWORD_FILE has no effect: OUTPUT_CERTS names no directory']),
    ...(['', exchangingProvider].includes(features.XDS_AUTH_PROVIDER)
      ? []
      : [`XDS_AUTH_PROVIDER: ${quoted(features.XDS_AUTH_PROVIDER)} has no effect: ${exchangingProvider} is the only one`]),
  ]
}

function certificateConfig(features: AgentFeatures, discoveryAddress: string): CertificateConfig {
  const { ECC_SIGNATURE_ALGORITHM: algorithm } = features
  if (algorithm !== '' && algorithm !== 'ECDSA')
    throw new Error(`environment variable ECC_SIGNATURE_ALGORITHM: ${JSON.stringify(algorithm.slice(0, 100))} is not ECDSA, nor empty for RSA`)
  return {
    authority: authorityConnection(features, discoveryAddress),
    cloud: cloudAuthority(features),
    clusterId: features.MESH_META_CLUSTER_ID,
    identity: identityOf(features),
    key: { type: algorithm === 'ECDSA' ? 'ec' : 'rsa', format: features.PKCS8_KEY ? 'pkcs8' : 'traditional' },
    ttlSeconds: Math.ceil(features.SECRET_TTL / 1000),
    graceRatio: features.SECRET_GRACE_PERIOD_RATIO,
    keptIn: keptIn(features),
  }
}

/**
 * Returns the SPIFFE id to request. Undefined when the namespace or service account is unknown: the authority issues for the caller's
 * identity in any case.
 */
function identityOf(features: AgentFeatures): string | undefined {
  const { TRUST_DOMAIN: trustDomain, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: account } = features
  if (namespace === '' || account === '') return undefined
  try {
    return workloadId(trustDomain, { namespace, account })
  } catch (error) {
    throw new Error(`environment variables TRUST_DOMAIN, POD_NAMESPACE, SERVICE_ACCOUNT: ${(error as Error).message}`)
  }
}
