/**
 * Filter chains for inbound connections: by protocol, by protocol detection where the protocol is unknown, and by the mode of mutual TLS
 * (docs/resources.md, L8, L10, L11, A2).
 */
import { create } from '@bufbuild/protobuf'
import type { Protocol } from '../../../protocols/data.ts'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { isHttp } from '../../model/protocol.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import { type MutualTls, mutualTls, portsNamed, type WorkloadPolicies } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf } from '../message.ts'
import { inboundCluster, inboundPassthrough4, inboundPassthrough6 } from '../names.ts'
import { hasServerCertificate, inboundSocket, meshProtocols } from '../security/mutual-tls.ts'
import type { PolicyFilters } from '../security/policy-filters.ts'
import type { Traits } from '../traits.ts'
import { type Filter, httpConnectionManager, tcpFilters } from './filters.ts'
import { virtualInboundPort, wildcardOf } from './own-addresses.ts'
import type { TcpLimits } from './tcp-targets.ts'

/** A port of the workload, declared by a Sidecar or a service. */
export interface InboundPort {
  /** The port that clients connect to. */
  readonly port: number
  readonly protocol: Protocol
  readonly servicePort: number
  readonly host: string
  /** The address on which the workload listens. */
  readonly endpoint: string
  /** The address that is tried when the workload does not accept connections at `endpoint`: the loopback address of the other family. */
  readonly otherEndpoint: string | undefined
  readonly endpointPort: number
  /** The address of a separate listener (Sidecar ingress, interception NONE); empty for a chain of the catch-all listener. */
  readonly bind: string
  readonly instance: ServiceInstance | undefined
  /** Limits of TCP connections, from the connection pool of the port. */
  readonly tcpLimits?: TcpLimits | undefined
}

/** The enforcement of policies on the ports of a workload, made once for all of them. */
export interface Guard extends PolicyFilters {
  readonly snapshot: MeshSnapshot
  readonly traits: Traits
  /** Ports for which a policy sets a mode by number. */
  readonly named: readonly number[]
  mode(port: number): MutualTls
  /** Whether a port offers mutual TLS, whether it requires it or not. */
  asks(port: number): boolean
  /** The transport sockets of chains with mutual TLS. */
  readonly sockets: { readonly http: Socket; readonly tcp: Socket }
}

/** A guard with the chains for ports that are neither declared nor named by a policy. They depend on policies and traits only. */
export interface GuardedWorkload extends Guard {
  readonly undeclared: { readonly http: readonly Chain[]; readonly tcp: readonly Chain[] }
}

type Socket = ReturnType<typeof inboundSocket>

/** The initial fields of a filter chain. */
export interface Chain {
  readonly name: string
  readonly filterChainMatch: {
    destinationPort?: number
    transportProtocol?: string
    applicationProtocols?: string[]
    prefixRanges?: { addressPrefix: string; prefixLen: number }[]
  }
  readonly transportSocket?: ReturnType<typeof inboundSocket>
  readonly filters: Filter[]
}

/**
 * Creates the guard. A proxy without a certificate cannot offer mutual TLS: PERMISSIVE then means DISABLE, and with STRICT nothing gets
 * through.
 */
export function guardOf(policies: WorkloadPolicies, filters: PolicyFilters, snapshot: MeshSnapshot, traits: Traits): GuardedWorkload {
  const able = hasServerCertificate(traits.certificates)
  const mode = (port: number): MutualTls => {
    const asked = mutualTls(policies, port)
    return asked === 'PERMISSIVE' && !able ? 'DISABLE' : asked
  }
  const guard: Guard = {
    ...filters,
    snapshot,
    traits,
    named: portsNamed(policies),
    mode,
    asks: (port) => mode(port) !== 'DISABLE',
    sockets: { http: inboundSocket(traits.certificates, true, snapshot), tcp: inboundSocket(traits.certificates, false, snapshot) },
  }
  return { ...guard, undeclared: { http: undeclaredChains(true, undefined, guard), tcp: undeclaredChains(false, undefined, guard) } }
}

/**
 * Whether ports with unknown protocol accept HTTP: because protocols are detected, or, without detection, because policies apply to requests
 * (docs/resources.md, A11).
 */
const mayBeHttp = ({ needRequests, snapshot }: Guard): boolean =>
  needRequests || snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND

/**
 * Whether the protocol of a port is detected. If policies apply to requests, only HTTP is accepted and there is nothing to detect
 * (docs/resources.md, A11).
 */
export const sniffs = (port: InboundPort, guard: Guard): boolean => port.protocol === 'unknown' && mayBeHttp(guard) && !guard.needRequests

/**
 * If any chain matches the detected transport protocol, Envoy ignores chains that match no transport protocol: chains for plain text must
 * match it explicitly.
 */
const plainHttp = { applicationProtocols: ['http/1.0', 'http/1.1', 'h2c'], transportProtocol: 'raw_buffer' }

const plainText = { transportProtocol: 'raw_buffer' }
/** TLS that the workload terminates itself. */
const opaqueTls = { transportProtocol: 'tls' }

/** Returns the filter chains of a port. */
export function portChains(port: InboundPort, guard: Guard, match: Chain['filterChainMatch']): Chain[] {
  const { snapshot, traits } = guard
  const name = `${wildcardOf(traits)}_${port.port}`
  const cluster = inboundCluster(port.port)
  const http = () => [
    httpConnectionManager(
      { side: 'inbound', statPrefix: `inbound_${name}`, routes: routesOfPort(port), protocols: new Set([port.protocol]), policies: guard },
      snapshot,
      traits,
    ),
  ]
  const target = { cluster, weight: 1, settings: { ...port.tcpLimits, hashesSource: false } }
  const tcp = () => [...guard.tcp, ...tcpFilters(cluster, [target], port.protocol, snapshot, traits)]
  const chain = (filters: Filter[], more: Chain['filterChainMatch'] = {}): Chain => ({ name, filterChainMatch: { ...match, ...more }, filters })
  const secured = (isForHttp: boolean, more: Chain['filterChainMatch']): Chain => ({
    ...chain(isForHttp ? http() : tcp(), { transportProtocol: 'tls', ...more }),
    transportSocket: isForHttp ? guard.sockets.http : guard.sockets.tcp,
  })
  const mode = guard.mode(port.port)
  const mesh = (protocols: readonly string[]) => (mode === 'STRICT' ? {} : { applicationProtocols: [...protocols] })
  if (!sniffs(port, guard)) {
    const known = isHttp(port.protocol) || (port.protocol === 'unknown' && mayBeHttp(guard))
    // Callers whose own detection is on offer HTTP to a port without a protocol.
    const offered = known || port.protocol === 'unknown' ? meshProtocols.http : meshProtocols.tcp
    return [
      ...(mode === 'DISABLE' ? [] : [secured(known, mesh(offered))]),
      ...(mode === 'PERMISSIVE' && !known ? [chain(tcp(), opaqueTls)] : []),
      ...(mode === 'STRICT' ? [] : [chain(known ? http() : tcp())]),
    ]
  }
  return [
    ...(mode === 'DISABLE' ? [] : [secured(true, { applicationProtocols: [...meshProtocols.onlyHttp] }), secured(false, mesh(meshProtocols.tcp))]),
    ...(mode === 'STRICT' ? [] : [chain(http(), plainHttp), chain(tcp(), opaqueTls), chain(tcp(), plainText)]),
  ]
}

/**
 * Returns the filter chains for ports that are not declared, including those for which a policy sets a mode. Connections are passed through
 * as TCP, and detected HTTP as requests, so that policies on requests apply. If there are such policies, only requests are passed through.
 */
export function passthroughChains(declared: readonly number[], guard: GuardedWorkload): Chain[] {
  // Connections to the port of the listener itself are dropped; with chains of its own they would be passed through to the listener again.
  const named = guard.named.filter((port) => !declared.includes(port) && port !== virtualInboundPort)
  const { tcp, http } = guard.undeclared
  return [
    ...named.flatMap((port) => undeclaredChains(false, port, guard)),
    ...tcp,
    ...named.flatMap((port) => undeclaredChains(true, port, guard)),
    ...http,
  ]
}

/**
 * Returns the chains, for HTTP or for TCP, of one undeclared port or of all others (`port` undefined). Empty if undeclared ports do not
 * pass this kind of traffic.
 */
function undeclaredChains(asHttp: boolean, port: number | undefined, guard: Guard): Chain[] {
  const takesRequests = mayBeHttp(guard)
  if (asHttp ? !takesRequests : takesRequests && guard.needRequests) return []
  const mode = guard.mode(port ?? 0)
  const clusters = [
    { cluster: inboundPassthrough4, addressPrefix: '0.0.0.0' },
    { cluster: inboundPassthrough6, addressPrefix: '::0' },
  ]
  return clusters.flatMap(({ cluster, addressPrefix }) => {
    const match = { prefixRanges: [{ addressPrefix, prefixLen: 0 }], ...(port === undefined ? {} : { destinationPort: port }) }
    return asHttp ? httpPassthrough(cluster, match, mode, guard) : tcpPassthrough(cluster, match, mode, guard)
  })
}

function tcpPassthrough(cluster: string, match: Chain['filterChainMatch'], mode: MutualTls, guard: Guard): Chain[] {
  const { snapshot, traits } = guard
  const filters = [...guard.tcp, ...tcpFilters(cluster, [{ cluster, weight: 1 }], undefined, snapshot, traits)]
  const chain = (more: Chain['filterChainMatch']): Chain => ({ name: 'virtualInbound', filterChainMatch: { ...match, ...more }, filters })
  const protocols = mode === 'STRICT' ? {} : { applicationProtocols: [...(mayBeHttp(guard) ? meshProtocols.tcp : meshProtocols.http)] }
  const secured: Chain = { ...chain({ ...opaqueTls, ...protocols }), transportSocket: guard.sockets.tcp }
  return [...(mode === 'DISABLE' ? [] : [secured]), ...(mode === 'STRICT' ? [] : [chain(opaqueTls), chain(plainText)])]
}

function httpPassthrough(cluster: string, match: Chain['filterChainMatch'], mode: MutualTls, guard: Guard): Chain[] {
  const { snapshot, traits } = guard
  const routes = inboundRoutes(cluster, 'inbound|http|0', `${cluster}:0/*`)
  const filters = [httpConnectionManager({ side: 'inbound', statPrefix: cluster, routes, protocols: new Set(), policies: guard }, snapshot, traits)]
  const chain = (more: Chain['filterChainMatch']): Chain => ({
    name: 'virtualInbound-catchall-http',
    filterChainMatch: { ...match, ...more },
    filters,
  })
  const all = mode === 'STRICT' ? {} : { applicationProtocols: [...meshProtocols.http] }
  const protocols = guard.needRequests ? all : { applicationProtocols: [...meshProtocols.onlyHttp] }
  const secured: Chain = { ...chain({ ...opaqueTls, ...protocols }), transportSocket: guard.sockets.http }
  return [...(mode === 'DISABLE' ? [] : [secured]), ...(mode === 'STRICT' ? [] : [chain(guard.needRequests ? plainText : plainHttp)])]
}

const routesOfPort = ({ port, host, servicePort }: InboundPort) =>
  inboundRoutes(inboundCluster(port), `inbound|http|${servicePort}`, `${host || inboundCluster(port)}:${servicePort}/*`)

function inboundRoutes(cluster: string, virtualHost: string, operation: string) {
  return create(RouteConfigurationSchema, {
    name: cluster,
    validateClusters: false,
    virtualHosts: [
      {
        name: virtualHost,
        domains: ['*'],
        routes: [
          {
            name: 'default',
            match: { pathSpecifier: { case: 'prefix', value: '/' } },
            decorator: { operation },
            action: {
              case: 'route',
              value: {
                clusterSpecifier: { case: 'cluster', value: cluster },
                timeout: durationOf(0),
                maxStreamDuration: { maxStreamDuration: durationOf(0), grpcTimeoutHeaderMax: durationOf(0) },
              },
            },
          },
        ],
      },
    ],
  })
}
