/** Which listener and filter chain of a proxy take a connection that its workload opens, or that a client opens to a gateway. */
import { fromBinary } from '@bufbuild/protobuf'
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type { FilterChain, FilterChainMatch } from '../../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import type { Listener } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { TcpProxySchema } from '../../../protocols/gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js'
import {
  type CommonTlsContext,
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
} from '../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js'
import { hostCovers } from '../../model/match.ts'
import { isAddress } from './asked-host.ts'

/** A connection as its client describes it. */
export interface AskedConnection {
  /** The host without the port, in lower case. */
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** In lower case; empty: none. */
  readonly serverName: string
}

/** A cluster and its share of what is sent. */
export interface WeightedCluster {
  readonly name: string
  readonly weight: number
}

/** What the last filter of a chain does with a connection. */
export type LeadsTo =
  | { readonly kind: 'http'; readonly manager: HttpConnectionManager }
  | { readonly kind: 'clusters'; readonly clusters: readonly WeightedCluster[] }
  | { readonly kind: 'unknown'; readonly filter: string }

/** A listener and the chain of it that takes a connection. */
export interface TakenConnection {
  readonly listener: Listener
  /** Undefined: no chain matches, and the connection is closed. */
  readonly chain: FilterChain | undefined
  readonly leadsTo: LeadsTo
}

/**
 * Finds the listener and the chain that take a connection; undefined: no listener has its port. The address behind a host is not known
 * here: of several listeners on the port the one counts that leads to the host (`knows`), else the one at all addresses. A connection to
 * another port goes to the listener for redirected connections, if the proxy has one.
 */
export function takenConnection(
  listeners: readonly Listener[],
  asked: AskedConnection,
  knows: (leadsTo: LeadsTo) => boolean,
): TakenConnection | undefined {
  const outbound = listeners.filter((each) => Number(each.trafficDirection) !== inbound && !isUnreached(each))
  const taken = outbound.filter((listener) => !isCatchAll(listener) && portOf(listener) === asked.port).map((each) => chosen(each, asked, knows))
  return (
    taken.find(({ listener }) => isAddress(asked.host) && addressOf(listener) === asked.host) ??
    taken.find(({ leadsTo }) => knows(leadsTo)) ??
    taken.find(({ listener }) => isWildcard(listener) || listener.bindToPort !== false) ??
    outbound.filter(isCatchAll).map((each) => chosen(each, asked, knows))[0]
  )
}

/** The ports of the listeners that take connections by their port. */
export const portsOf = (listeners: readonly Listener[]): number[] =>
  [
    ...new Set(
      listeners
        .filter((each) => Number(each.trafficDirection) !== inbound && !isCatchAll(each) && !isUnreached(each))
        .flatMap((each) => portOf(each) ?? []),
    ),
  ].sort((one, other) => one - other)

/** The listeners at a port that no connection reaches. */
export const unreachedAt = (listeners: readonly Listener[], port: number): Listener[] =>
  listeners.filter((each) => portOf(each) === port && isUnreached(each))

/** Whether no connection reaches a listener: it is not bound, and at a loopback address, to which nothing is redirected. */
const isUnreached = (listener: Listener): boolean => listener.bindToPort === false && /^(127\.|::1$)/.test(addressOf(listener) ?? '')

/** `INBOUND` of `envoy.config.core.v3.TrafficDirection`. */
const inbound = 1

/** Whether a listener takes all redirected connections that no other listener has. */
export const isCatchAll = ({ useOriginalDst }: Listener): boolean => useOriginalDst === true

/**
 * Whether connections to a listener have an original destination: redirection, which a proxy with a listener for all of it has, brings them to listeners
 * that are not bound, and to those at all addresses.
 */
export const isRedirected = (listener: Listener, listeners: readonly Listener[]): boolean =>
  isCatchAll(listener) || listener.bindToPort === false || (isWildcard(listener) && listeners.some(isCatchAll))

function socketOf({ address }: Listener) {
  return address?.address.case === 'socketAddress' ? address.address.value : undefined
}

const addressOf = (listener: Listener): string | undefined => socketOf(listener)?.address

function portOf(listener: Listener): number | undefined {
  const port = socketOf(listener)?.portSpecifier
  return port?.case === 'portValue' ? port.value : undefined
}

const isWildcard = (listener: Listener): boolean => addressOf(listener) === '0.0.0.0' || addressOf(listener) === '::'

function chosen(listener: Listener, asked: AskedConnection, knows: (leadsTo: LeadsTo) => boolean): TakenConnection {
  const chains = listener.filterChains.flatMap((chain) => {
    const leadsTo = leadsToOf(chain)
    const rank = rankOf(chain.filterChainMatch, asked, () => knows(leadsTo))
    return rank ? [{ chain, leadsTo, rank }] : []
  })
  chains.sort((one, other) => one.rank.map((part, at) => (other.rank[at] as number) - part).find((difference) => difference !== 0) ?? 0)
  const chain = chains[0]?.chain ?? listener.defaultFilterChain
  return { listener, chain, leadsTo: chains[0]?.leadsTo ?? (chain ? leadsToOf(chain) : { kind: 'clusters', clusters: [] }) }
}

/**
 * How specifically a chain matches a connection, by the properties in the order in which Envoy compares them; undefined: it does not.
 * Whether the destination is in a range of addresses is known where the host is an address, and else by what the chain leads to.
 */
function rankOf(
  match: FilterChainMatch | undefined,
  { host, port, isTls, serverName }: AskedConnection,
  isMeant: () => boolean,
): number[] | undefined {
  if (!match) return [0, 0, 0, 0, 0]
  const { destinationPort, prefixRanges, serverNames, transportProtocol, applicationProtocols } = match
  if (destinationPort !== undefined && destinationPort !== port) return undefined
  if (prefixRanges.length > 0 && !prefixRanges.some(({ addressPrefix }) => addressPrefix === host) && !isMeant()) return undefined
  const named = serverNames.filter((name) => isTls && (name === serverName || hostCovers(name, serverName)))
  if (serverNames.length > 0 && named.length === 0) return undefined
  if (transportProtocol !== '' && transportProtocol !== (isTls ? 'tls' : 'raw_buffer')) return undefined
  const offered = isTls ? ['h2', 'http/1.1'] : ['http/1.1', 'h2c']
  if (applicationProtocols.length > 0 && !applicationProtocols.some((protocol) => offered.includes(protocol))) return undefined
  const name = Math.max(0, ...named.map((each) => (each.startsWith('*') ? each.length : 1000 + each.length)))
  return [Number(destinationPort !== undefined), Number(prefixRanges.length > 0), name, Number(transportProtocol !== ''), applicationProtocols.length]
}

const packedIn = (socket: TransportSocket | undefined) => (socket?.configType.case === 'typedConfig' ? socket.configType.value : undefined)

/** Whether a filter chain takes bytes as they come: its connections have no TLS of the proxy. */
export function isPlain({ transportSocket }: FilterChain): boolean {
  const packed = packedIn(transportSocket)
  return !packed || packed.typeUrl.endsWith('.RawBuffer')
}

/** The TLS of a filter chain; undefined: it has none of its own. */
function tlsOfChain({ transportSocket }: FilterChain): DownstreamTlsContext | undefined {
  const packed = packedIn(transportSocket)
  return packed?.typeUrl.endsWith(`/${DownstreamTlsContextSchema.typeName}`) ? fromBinary(DownstreamTlsContextSchema, packed.value) : undefined
}

/** The secrets that the TLS of a filter chain needs, by name. */
export const secretsOfChain = (chain: FilterChain): string[] => secretsOf(tlsOfChain(chain)?.commonTlsContext)

/** Whether the TLS of a filter chain asks clients for a certificate, and closes the connections of those without one. */
export const needsClientCertificate = (chain: FilterChain): boolean => tlsOfChain(chain)?.requireClientCertificate ?? false

/** The secrets that TLS needs, by name. */
export function secretsOf({ tlsCertificateSdsSecretConfigs = [], validationContextType }: Partial<CommonTlsContext> = {}): string[] {
  const combined =
    validationContextType?.case === 'combinedValidationContext' ? validationContextType.value.validationContextSdsSecretConfig : undefined
  return [...tlsCertificateSdsSecretConfigs, combined].flatMap((config) => config?.name ?? [])
}

function leadsToOf({ filters }: FilterChain): LeadsTo {
  const filter = filters.at(-1)
  const packed = filter?.configType.case === 'typedConfig' ? filter.configType.value : undefined
  if (packed?.typeUrl.endsWith(`/${HttpConnectionManagerSchema.typeName}`))
    return { kind: 'http', manager: fromBinary(HttpConnectionManagerSchema, packed.value) }
  if (!packed?.typeUrl.endsWith(`/${TcpProxySchema.typeName}`)) return { kind: 'unknown', filter: filter?.name ?? '' }
  const { clusterSpecifier } = fromBinary(TcpProxySchema, packed.value)
  if (clusterSpecifier.case === 'cluster') return { kind: 'clusters', clusters: [{ name: clusterSpecifier.value, weight: 1 }] }
  const weighted = clusterSpecifier.case === 'weightedClusters' ? clusterSpecifier.value.clusters : []
  return { kind: 'clusters', clusters: weighted.map(({ name, weight }) => ({ name, weight })) }
}
