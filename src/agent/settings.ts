/** What the environment says of the workload's certificate, and where its token and the roots of its authority are. */
import type { AuthorityAddress, SecretAgentConfig } from '../../protocols/messages/agent.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { workloadId } from '../identity/spiffe-id.ts'

/** The socket on which Envoy asks for secrets. */
export const secretSocket = './etc/mesh/proxy/SDS'

/** Name in the discovery service's certificate where its address is not its name. */
const discoveryName = 'meshd.mesh-system.svc'
const plainPort = 15010

const tokenFiles: Readonly<Record<string, string>> = {
  'third-party-jwt': './var/run/secrets/tokens/mesh-token',
  'first-party-jwt': '/var/run/secrets/kubernetes.io/serviceaccount/token',
}

const rootFiles: Readonly<Record<string, string>> = {
  orchestrator: './var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
  custom: './etc/certs/root-cert.pem',
}
const defaultRootFile = './var/run/secrets/mesh/root-cert.pem'

/**
 * Reads the environment. Throws an Error that names the variable when an address, a name or an algorithm is none. `discoveryAddress` is
 * that of the proxy's configuration, `<host>:<port>`.
 */
export function secretAgentConfig(features: AgentFeatures, discoveryAddress: string): SecretAgentConfig {
  const { ECC_SIGNATURE_ALGORITHM: algorithm } = features
  if (algorithm !== '' && algorithm !== 'ECDSA')
    throw new Error(`environment variable ECC_SIGNATURE_ALGORITHM: ${JSON.stringify(algorithm.slice(0, 100))} is not ECDSA, nor empty for RSA`)
  return {
    socket: secretSocket,
    authority: authorityAddress(features, discoveryAddress),
    tokenFile: Object.hasOwn(tokenFiles, features.JWT_POLICY) ? tokenFiles[features.JWT_POLICY] : undefined,
    clusterId: features.MESH_META_CLUSTER_ID,
    identity: identityOf(features),
    key: { type: algorithm === 'ECDSA' ? 'ec' : 'rsa', format: features.PKCS8_KEY ? 'pkcs8' : 'traditional' },
    ttlSeconds: Math.ceil(features.SECRET_TTL / 1000),
    graceRatio: features.SECRET_GRACE_PERIOD_RATIO,
  }
}

/** The identity that is asked for. Where namespace or account are not known nothing is: the authority takes the caller's identity in any case. */
function identityOf(features: AgentFeatures): string | undefined {
  const { TRUST_DOMAIN: trustDomain, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: account } = features
  if (namespace === '' || account === '') return undefined
  try {
    return workloadId(trustDomain, { namespace, account })
  } catch (error) {
    throw new Error(`environment variables TRUST_DOMAIN, POD_NAMESPACE, SERVICE_ACCOUNT: ${(error as Error).message}`)
  }
}

function authorityAddress(features: AgentFeatures, discoveryAddress: string): AuthorityAddress {
  const { CA_ADDR: given, CA_ROOT_CA: pinned, PILOT_CERT_PROVIDER: provider } = features
  const address = given || discoveryAddress
  const [, host = '', digits] = /^(.+):(\d{1,5})$/.exec(address) ?? []
  const port = Number(digits)
  if (!(port >= 1 && port <= 65_535))
    throw new Error(`${given ? 'environment variable CA_ADDR' : 'discovery address'}: ${JSON.stringify(address.slice(0, 200))} is not <host>:<port>`)
  const name = host.replace(/^\[|\]$/g, '')
  const providerFile = Object.hasOwn(rootFiles, provider) ? rootFiles[provider] : undefined
  return {
    host: name,
    port,
    isPlain: port === plainPort,
    serverName: name.includes('localhost') ? discoveryName : name,
    rootsFile: pinned === 'SYSTEM' ? undefined : pinned || providerFile || defaultRootFile,
    isPinned: pinned !== '',
  }
}
