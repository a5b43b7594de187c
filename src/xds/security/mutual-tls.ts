/**
 * Mutual TLS between workloads: where a proxy has its certificate, and the TLS contexts of both sides (docs/resources.md, C9,
 * C10, L11).
 */
import { DownstreamTlsContextSchema, UpstreamTlsContextSchema } from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf, pack } from '../message.ts'

/** Certificate, key and the authorities of the other side, as files of the proxy's. */
export interface CertificateFiles {
  readonly chain: string
  readonly key: string
  readonly root: string
}

/** Where a proxy has its workload certificate. */
export interface Certificates {
  /** Files its metadata names for what it serves (`TLS_SERVER_*`) and for what it calls (`TLS_CLIENT_*`). */
  readonly server: CertificateFiles | undefined
  readonly client: CertificateFiles | undefined
  /** Whether an agent runs beside it, which serves certificates over SDS. */
  readonly agent: boolean
}

/** Reads where a proxy has its certificates; files count when all three of a side are named. Only what an agent starts has `PROXY_CONFIG` in its metadata. */
export function certificatesOf(metadata: Readonly<Record<string, unknown>>): Certificates {
  const files = (side: 'SERVER' | 'CLIENT'): CertificateFiles | undefined => {
    const named = (name: string) => metadata[`TLS_${side}_${name}`]
    const [chain, key, root] = [named('CERT_CHAIN'), named('KEY'), named('ROOT_CERT')]
    return isPath(chain) && isPath(key) && isPath(root) ? { chain, key, root } : undefined
  }
  return { server: files('SERVER'), client: files('CLIENT'), agent: metadata.PROXY_CONFIG !== undefined }
}

const isPath = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** ALPN by which a sidecar's listener tells mutual TLS of the mesh from TLS that is the workload's own. */
export const meshProtocols = {
  http: ['istio', 'istio-peer-exchange', 'istio-http/1.0', 'istio-http/1.1', 'istio-h2'],
  tcp: ['istio', 'istio-peer-exchange'],
  /** What says that HTTP is inside, where the port does not. */
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

/** Own certificate and what is asked of the other side's; from files, else from the agent, `fetchMs` as {@link agentSecret} has it. */
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

/** SPIFFE names of the own trust domain and its aliases. */
const ofTrustDomains = ({ mesh }: MeshSnapshot): SubjectNames =>
  [mesh.trustDomain, ...mesh.trustDomainAliases].map((domain) => ({
    sanType: uriName,
    matcher: { matchPattern: { case: 'prefix' as const, value: `spiffe://${domain}/` } },
  }))

/** The socket of a listener that asks for a certificate of the mesh. */
export function inboundSocket(certificates: Certificates, http: boolean, snapshot: MeshSnapshot) {
  const { features } = snapshot.settings
  const names = features.PILOT_SKIP_VALIDATE_TRUST_DOMAIN ? [] : ofTrustDomains(snapshot)
  return socket(
    pack(DownstreamTlsContextSchema, {
      requireClientCertificate: true,
      commonTlsContext: {
        tlsParams: features.PILOT_SIDECAR_ENABLE_INBOUND_TLS_V2 ? { tlsMinimumProtocolVersion: tls12, cipherSuites } : {},
        alpnProtocols: http ? ['h2', 'http/1.1'] : ['istio-peer-exchange', 'h2', 'http/1.1'],
        ...certificateContext(certificates.server, names),
      },
    }),
  )
}

/** What the socket to a service of the mesh is made from. */
export interface OutboundTls {
  readonly sni: string
  /** SPIFFE names that the service may have; with none, any of the trust domain. */
  readonly accounts: readonly string[]
  readonly protocol: 'http1' | 'http2' | 'other'
}

const outboundProtocols = { http1: ['istio-http/1.1', 'istio'], http2: ['istio-h2', 'istio', 'h2'], other: ['istio-peer-exchange', 'istio'] }

/** The socket to a service of the mesh. */
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

/** A secret that the agent serves over SDS (cluster `sds-grpc` of the bootstrap). Whatever needs it is put in force without it after `fetchMs`, 15 s unless given. */
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
