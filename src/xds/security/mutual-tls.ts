/**
 * Mutual TLS between workloads: the source of a proxy's certificate, and the TLS contexts of both sides (docs/resources.md, C9, C10, L11).
 */
import { DownstreamTlsContextSchema, UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf, pack } from '../message.ts'

/** Files on the proxy's machine with certificate chain, key and certificate authorities of the peer. */
export interface CertificateFiles {
  readonly chain: string
  readonly key: string
  readonly root: string
}

/** The source of a proxy's workload certificate. */
export interface Certificates {
  /** Files that its metadata names for inbound (`TLS_SERVER_*`) and outbound (`TLS_CLIENT_*`) connections. */
  readonly server: CertificateFiles | undefined
  readonly client: CertificateFiles | undefined
  /** Whether the proxy has an agent, which serves certificates over SDS. */
  readonly agent: boolean
}

/**
 * Reads the source of certificates from the metadata of a proxy. The files of a side are used if all three are named. `PROXY_CONFIG` is
 * present only if an agent started the proxy.
 */
export function certificatesOf(metadata: Readonly<Record<string, unknown>>): Certificates {
  const files = (side: 'SERVER' | 'CLIENT'): CertificateFiles | undefined => {
    const named = (name: string) => metadata[`TLS_${side}_${name}`]
    const [chain, key, root] = [named('CERT_CHAIN'), named('KEY'), named('ROOT_CERT')]
    return isPath(chain) && isPath(key) && isPath(root) ? { chain, key, root } : undefined
  }
  return { server: files('SERVER'), client: files('CLIENT'), agent: metadata.PROXY_CONFIG !== undefined }
}

/** Whether a proxy has a certificate for connections to it. */
export const hasServerCertificate = ({ server, agent }: Certificates): boolean => server !== undefined || agent

const isPath = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** The ALPN protocols that identify mutual TLS of the mesh; other TLS belongs to the workload. */
export const meshProtocols = {
  http: ['istio', 'istio-peer-exchange', 'istio-http/1.0', 'istio-http/1.1', 'istio-h2'],
  tcp: ['istio', 'istio-peer-exchange'],
  /** ALPN protocols that also identify the content as HTTP. */
  onlyHttp: ['istio-http/1.0', 'istio-http/1.1', 'istio-h2'],
} as const

const cipherSuites = [
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
]
const tls12 = 3
const uriName = 3

const fileSource = (filename: string) => ({ specifier: { case: 'filename' as const, value: filename } })
const socket = (value: ReturnType<typeof pack>) => ({ name: 'envoy.transport_sockets.tls', configType: { case: 'typedConfig' as const, value } })

type SubjectNames = readonly { sanType: number; matcher: object }[]

/**
 * Returns the certificate and the validation of the peer's certificate, from files or else from the agent; `fetchMs` as for
 * {@link agentSecret}.
 */
export function certificateContext(files: CertificateFiles | undefined, names: SubjectNames, fetchMs?: number) {
  const matchTypedSubjectAltNames = names as never
  if (files)
    return {
      tlsCertificates: [{ certificateChain: fileSource(files.chain), privateKey: fileSource(files.key) }],
      validationContextType: { case: 'validationContext' as const, value: { trustedCa: fileSource(files.root), matchTypedSubjectAltNames } },
    }
  return {
    tlsCertificateSdsSecretConfigs: [agentSecret('default', fetchMs)],
    validationContextType: {
      case: 'combinedValidationContext' as const,
      value: { defaultValidationContext: { matchTypedSubjectAltNames }, validationContextSdsSecretConfig: agentSecret('ROOTCA', fetchMs) },
    },
  }
}

/** Returns SPIFFE id matchers for the mesh's trust domain and its aliases. */
const ofTrustDomains = ({ mesh }: MeshSnapshot): SubjectNames =>
  [mesh.trustDomain, ...mesh.trustDomainAliases].map((domain) => ({
    sanType: uriName,
    matcher: { matchPattern: { case: 'prefix' as const, value: `spiffe://${domain}/` } },
  }))

/**
 * Returns the transport socket of a filter chain that requires a certificate of the mesh. A proxy without a certificate refuses all
 * connections of such a chain. Its listener becomes active at once: while Envoy waits for secrets that nobody serves, it goes by the
 * policies of the listener's previous version.
 */
export function inboundSocket(certificates: Certificates, http: boolean, snapshot: MeshSnapshot) {
  const { features } = snapshot.settings
  const names = features.PILOT_SKIP_VALIDATE_TRUST_DOMAIN ? [] : ofTrustDomains(snapshot)
  return socket(
    pack(DownstreamTlsContextSchema, {
      requireClientCertificate: true,
      commonTlsContext: {
        tlsParams: features.PILOT_SIDECAR_ENABLE_INBOUND_TLS_V2 ? { tlsMinimumProtocolVersion: tls12, cipherSuites } : {},
        alpnProtocols: http ? ['h2', 'http/1.1'] : ['istio-peer-exchange', 'h2', 'http/1.1'],
        ...certificateContext(certificates.server, names, certificates.agent ? undefined : 1),
      },
    }),
  )
}

/** Parameters of the transport socket for a service of the mesh. */
export interface OutboundTls {
  readonly sni: string
  /** SPIFFE ids that the service may have; if empty, any of the mesh's trust domains. */
  readonly accounts: readonly string[]
  readonly protocol: 'http1' | 'http2' | 'other'
}

const outboundProtocols = { http1: ['istio-http/1.1', 'istio'], http2: ['istio-h2', 'istio', 'h2'], other: ['istio-peer-exchange', 'istio'] }

/** Returns the transport socket for a service of the mesh. */
export function outboundSocket(certificates: Certificates, { sni, accounts, protocol }: OutboundTls, snapshot: MeshSnapshot) {
  const names = accounts.map((name) => ({ sanType: uriName, matcher: { matchPattern: { case: 'exact' as const, value: name } } }))
  return socket(
    pack(UpstreamTlsContextSchema, {
      sni,
      commonTlsContext: {
        alpnProtocols: outboundProtocols[protocol],
        ...certificateContext(certificates.client, names.length > 0 ? names : ofTrustDomains(snapshot)),
      },
    }),
  )
}

/**
 * Returns the config of a secret that the agent serves over SDS (cluster `sds-grpc` of the bootstrap). The listener or cluster is activated
 * without the secret after `fetchMs` milliseconds, by default 15 s.
 */
export function agentSecret(name: string, fetchMs?: number) {
  return {
    name,
    sdsConfig: {
      ...(fetchMs === undefined ? {} : { initialFetchTimeout: durationOf(fetchMs) }),
      resourceApiVersion: 2,
      configSourceSpecifier: {
        case: 'apiConfigSource' as const,
        value: {
          apiType: 2,
          transportApiVersion: 2,
          setNodeOnFirstMessageOnly: true,
          grpcServices: [{ targetSpecifier: { case: 'envoyGrpc' as const, value: { clusterName: 'sds-grpc' } } }],
        },
      },
    },
  }
}
