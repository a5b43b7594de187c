/** What the environment says of the workload's certificate. */
import { resolve } from 'node:path'
import type { CertificateConfig, SecretAgentConfig } from '../../protocols/messages/agent.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { workloadId } from '../identity/spiffe-id.ts'
import { authorityConnection, keptIn, mountedCertificates } from './connections.ts'

/** The socket on which Envoy asks for secrets. */
export const secretSocket = './etc/mesh/proxy/SDS'

/**
 * Reads the environment. Throws an Error that names the variable when an address, a name or an algorithm is none, and when variables contradict
 * each other. `discoveryAddress` is that of the proxy's configuration, `<host>:<port>`.
 */
export function secretAgentConfig(features: AgentFeatures, discoveryAddress: string): SecretAgentConfig {
  const { OUTPUT_CERTS: output, PROV_CERT: provisioned, FILE_MOUNTED_CERTS: areMounted } = features
  if (provisioned !== '' && areMounted)
    throw new Error(
      'environment variables PROV_CERT and FILE_MOUNTED_CERTS contradict each other: a certificate is provisioned for a call to the authority, or mounted in its place',
    )
  return {
    socket: secretSocket,
    certificate: areMounted ? undefined : certificateConfig(features, discoveryAddress),
    mounted: output !== '' && resolve(output) === resolve(mountedCertificates) ? undefined : mountedCertificates,
    output: output === '' ? undefined : { directory: output, isForAll: features.ORCHESTRATOR_SERVICE_HOST !== '' },
    fileQuietMs: features.FILE_DEBOUNCE_DURATION,
  }
}

function certificateConfig(features: AgentFeatures, discoveryAddress: string): CertificateConfig {
  const { ECC_SIGNATURE_ALGORITHM: algorithm } = features
  if (algorithm !== '' && algorithm !== 'ECDSA')
    throw new Error(`environment variable ECC_SIGNATURE_ALGORITHM: ${JSON.stringify(algorithm.slice(0, 100))} is not ECDSA, nor empty for RSA`)
  return {
    authority: authorityConnection(features, discoveryAddress),
    clusterId: features.MESH_META_CLUSTER_ID,
    identity: identityOf(features),
    key: { type: algorithm === 'ECDSA' ? 'ec' : 'rsa', format: features.PKCS8_KEY ? 'pkcs8' : 'traditional' },
    ttlSeconds: Math.ceil(features.SECRET_TTL / 1000),
    graceRatio: features.SECRET_GRACE_PERIOD_RATIO,
    keptIn: keptIn(features),
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
