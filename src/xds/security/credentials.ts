/**
 * Certificates of a `credentialName` in TLS contexts (`envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig`; docs/resources.md, K1,
 * K2).
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CertificateValidationContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf, overAds } from '../message.ts'
import { authoritiesName } from '../secrets/secret-names.ts'
import { agentSecret } from './mutual-tls.ts'

/** How long a listener or cluster waits for a secret before it is activated without it, in milliseconds. */
export const fetchMs = 5000

/** Returns the config of a secret by name: fetched over ADS, or from the proxy's agent if `MESHD_ENABLE_SDS_SERVER=false`. */
export function gatewaySecret(name: string, { settings }: MeshSnapshot) {
  if (!settings.features.MESHD_ENABLE_SDS_SERVER) return agentSecret(name)
  return { name, sdsConfig: { ...overAds, initialFetchTimeout: durationOf(fetchMs) } }
}

/** Returns the validation of the peer's certificate with the certificate authorities of a `credentialName`. */
export function authoritiesContext(
  credentialName: string,
  checks: MessageInitShape<typeof CertificateValidationContextSchema>,
  snapshot: MeshSnapshot,
) {
  return {
    validationContextType: {
      case: 'combinedValidationContext' as const,
      value: {
        defaultValidationContext: checks,
        validationContextSdsSecretConfig: gatewaySecret(authoritiesName(credentialName), snapshot),
      },
    },
  }
}
