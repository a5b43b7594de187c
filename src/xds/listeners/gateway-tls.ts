/** TLS of gateway servers: `envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext` (docs/resources.md, G6, G7, K1). */
import { DownstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { GatewayServer } from '../../config/kinds/gateway.ts'
import { cipherSuites } from '../../config/shapes/tls.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { pack } from '../message.ts'
import { certificateName } from '../secrets/secret-names.ts'
import { authoritiesContext, fetchMs, gatewaySecret } from '../security/credentials.ts'
import { fileCertificates } from '../security/file-certificates.ts'
import { type Certificates, certificateContext } from '../security/mutual-tls.ts'

type ServerTls = NonNullable<GatewayServer['tls']>

const tlsVersions: Readonly<Record<string, number>> = { TLS_AUTO: 0, TLSV1_0: 1, TLSV1_1: 2, TLSV1_2: 3, TLSV1_3: 4 }
/** Whether a server terminates TLS. */
export const terminates = ({ tls }: GatewayServer): boolean =>
  tls?.mode !== undefined && tls.mode !== 'PASSTHROUGH' && tls.mode !== 'AUTO_PASSTHROUGH'

/**
 * Returns the reason why a proxy cannot serve a server because it lacks a certificate; undefined if it has one. Envoy would wait for the
 * certificate, and would hold back all listeners until it gives up.
 */
export function lacksCertificate({ tls }: GatewayServer, { server, agent }: Certificates): string | undefined {
  return tls?.mode === 'MESH_MUTUAL' && !server && !agent
    ? 'the proxy has no certificate of the mesh: it has neither an agent nor TLS_SERVER_* files'
    : undefined
}

/** Returns the transport socket of a server that terminates TLS. */
export function serverSocket({ tls = {} }: GatewayServer, certificates: Certificates, snapshot: MeshSnapshot) {
  const params = {
    ...(tls.minProtocolVersion ? { tlsMinimumProtocolVersion: tlsVersions[tls.minProtocolVersion] } : {}),
    ...(tls.maxProtocolVersion ? { tlsMaximumProtocolVersion: tlsVersions[tls.maxProtocolVersion] } : {}),
    cipherSuites: [...new Set(tls.cipherSuites)].filter((name) => cipherSuites.has(name)),
  }
  const requires = tls.mode === 'MUTUAL' || tls.mode === 'MESH_MUTUAL'
  const context = pack(DownstreamTlsContextSchema, {
    requireClientCertificate: requires,
    commonTlsContext: {
      tlsParams: params,
      alpnProtocols: ['h2', 'http/1.1'],
      ...ownCertificate(tls, requires || tls.mode === 'OPTIONAL_MUTUAL', certificates, snapshot),
    },
  })
  return { name: 'envoy.transport_sockets.tls', configType: { case: 'typedConfig' as const, value: context } }
}

/** Returns the certificates of the server and the validation of client certificates. */
function ownCertificate(tls: ServerTls, mutual: boolean, certificates: Certificates, snapshot: MeshSnapshot) {
  const checks = checksOf(tls)
  if (tls.mode === 'MESH_MUTUAL') return certificateContext(certificates.server, checks.matchTypedSubjectAltNames, fetchMs)
  const [first] = tls.credentialNames?.length ? tls.credentialNames : tls.credentialName ? [tls.credentialName] : []
  if (first === undefined) return { ...inFiles(tls, mutual, certificates), ...(mutual ? namedAuthorities(tls, snapshot) : {}) }
  const names = tls.credentialNames?.length ? tls.credentialNames : [first]
  return {
    tlsCertificateSdsSecretConfigs: names.map((name) => gatewaySecret(certificateName(name), snapshot)),
    ...(mutual ? authoritiesContext(tls.caCertCredentialName || first, checks, snapshot) : {}),
  }
}

/** Returns the validation context from the Secret `caCertCredentialName`, for a server with certificates in files. */
const namedAuthorities = (tls: ServerTls, snapshot: MeshSnapshot) =>
  tls.caCertCredentialName ? authoritiesContext(tls.caCertCredentialName, checksOf(tls), snapshot) : {}

const checksOf = (tls: ServerTls) => ({
  matchTypedSubjectAltNames: (tls.subjectAltNames ?? []).map((name) => ({
    sanType: name.includes('://') ? 3 : 2,
    matcher: { matchPattern: { case: 'exact' as const, value: name } },
  })),
  verifyCertificateHash: tls.verifyCertificateHash ?? [],
  verifyCertificateSpki: tls.verifyCertificateSpki ?? [],
})

/** Returns certificates from files on the proxy's machine. */
function inFiles(tls: ServerTls, mutual: boolean, certificates: Certificates) {
  const pairs = tls.tlsCertificates?.length ? tls.tlsCertificates : [tls]
  const authorities = (mutual && (pairs.map(({ caCertificates }) => caCertificates).find(Boolean) ?? tls.caCertificates)) || undefined
  return fileCertificates(
    {
      pairs: pairs.map(({ serverCertificate = '', privateKey = '' }) => ({ chain: serverCertificate, key: privateKey })),
      authorities,
      revocations: tls.caCrl || undefined,
      checks: checksOf(tls),
    },
    certificates,
  )
}
