/**
 * TLS of the proxy to the peers in its bootstrap: transport sockets whose certificates come from the agent over SDS (docs/agent.md, B14).
 */
import type { TransportSocketJson } from '../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type { SdsSecretConfigJson } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import type { CommonTlsContextJson } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import { isIp } from '../config/addresses.ts'
import type { ProxyConfig } from './proxy-config.ts'
import { typed } from './typed.ts'

/** The TLS settings in a proxy's configuration. */
type TlsSettings = NonNullable<ProxyConfig['tracing']['tlsSettings']>

/** The peer of a TLS connection. */
export interface TlsPeer {
  /** The field of the configuration, for errors. */
  readonly field: string
  /** The SNI when the settings have none and mesh certificates are used. */
  readonly serverName: string
  readonly isHttp2: boolean
}

/** Client files from the node metadata. They take precedence over the configuration. */
export type ClientFiles = Readonly<Record<'TLS_CLIENT_KEY' | 'TLS_CLIENT_CERT_CHAIN' | 'TLS_CLIENT_ROOT_CERT', string | undefined>>

/** A secret that Envoy requests from the agent. */
export function agentSecret(name: string): SdsSecretConfigJson {
  return {
    name,
    sdsConfig: {
      resourceApiVersion: 'V3',
      initialFetchTimeout: '0s',
      apiConfigSource: {
        apiType: 'GRPC',
        transportApiVersion: 'V3',
        setNodeOnFirstMessageOnly: true,
        grpcServices: [{ envoyGrpc: { clusterName: 'sds-grpc' } }],
      },
    },
  }
}

/** Returns the transport socket for a peer. Undefined without TLS. Throws an Error that names the field of a missing file. */
export function peerTls(settings: TlsSettings | undefined, peer: TlsPeer, files: ClientFiles): TransportSocketJson | undefined {
  const mode = settings?.mode ?? 'DISABLE'
  if (!settings || mode === 'DISABLE') return undefined
  const isMesh = mode === 'MESH_MUTUAL'
  const { sni = isMesh ? peer.serverName : '' } = settings
  return tlsSocket(
    { ...(isMesh ? meshContext() : fileContext(settings, mode === 'MUTUAL', peer, files)), ...alpn(isMesh, peer) },
    sni,
    settings.subjectAltNames,
  )

  function meshContext(): CommonTlsContextJson {
    return {
      tlsCertificateSdsSecretConfigs: [agentSecret('default')],
      combinedValidationContext: { validationContextSdsSecretConfig: agentSecret('ROOTCA') },
    }
  }
}

function alpn(isMesh: boolean, { isHttp2 }: TlsPeer): CommonTlsContextJson {
  return isHttp2 ? { alpnProtocols: [...(isMesh ? ['mesh'] : []), 'h2'] } : {}
}

function fileContext(settings: TlsSettings, isMutual: boolean, { field }: TlsPeer, files: ClientFiles): CommonTlsContextJson {
  const root = files.TLS_CLIENT_ROOT_CERT || settings.caCertificates
  const chain = files.TLS_CLIENT_CERT_CHAIN || settings.clientCertificate
  const key = files.TLS_CLIENT_KEY || settings.privateKey
  if (!root) throw new Error(`proxy configuration: field ${field}.tlsSettings.caCertificates: required, but missing`)
  if (isMutual && !(chain && key)) throw new Error(`proxy configuration: field ${field}.tlsSettings: MUTUAL needs clientCertificate and privateKey`)
  return {
    ...(isMutual && { tlsCertificateSdsSecretConfigs: [agentSecret(`file-cert:${chain}~${key}`)] }),
    combinedValidationContext: { validationContextSdsSecretConfig: agentSecret(`file-root:${root}`) },
  }
}

const nameKind = (name: string): 'URI' | 'DNS' | 'IP_ADDRESS' => (name.includes('://') ? 'URI' : isIp(name) ? 'IP_ADDRESS' : 'DNS')

/**
 * Returns a TLS transport socket. The server's certificate must have one of `serverNames` as DNS name, URI or IP address. An IP address is
 * not sent as SNI (RFC 6066, section 3).
 */
export function tlsSocket(context: CommonTlsContextJson, sni: string, serverNames: readonly string[] = []): TransportSocketJson {
  const matchTypedSubjectAltNames = serverNames.map((exact) => ({ sanType: nameKind(exact), matcher: { exact } }))
  const { combinedValidationContext, validationContext, ...rest } = context
  const named = serverNames.length > 0 ? { matchTypedSubjectAltNames } : {}
  const validation = combinedValidationContext
    ? { combinedValidationContext: { ...combinedValidationContext, defaultValidationContext: named } }
    : { validationContext: { ...validationContext, ...named } }
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: typed('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', {
      ...(sni && !isIp(sni) && { sni }),
      commonTlsContext: { ...rest, ...validation },
    }),
  }
}
