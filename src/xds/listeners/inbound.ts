/** Inbound listeners and clusters of a sidecar (docs/resources.md, L8, C12, V11). */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type Cluster, Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import type { EndpointSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { HttpProtocolOptionsSchema } from '../../../protocols/gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js'
import type { SidecarSpec } from '../../config/kinds/sidecar.ts'
import { configKey } from '../../config/kinds.ts'
import { compare } from '../../model/order.ts'
import { isHttp, isHttp2, selectProtocol } from '../../model/protocol.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import { allPolicies, type WorkloadPolicies } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { View } from '../../snapshot/view.ts'
import { statName } from '../clusters/outbound.ts'
import {
  applyConnectionPool,
  applyPolicy,
  type ClusterInit,
  commonHttpOptions,
  http2Options,
  type PolicyInForce,
  policyFor,
} from '../clusters/traffic-policy.ts'
import type { Draft } from '../draft.ts'
import { isOwnPort, isOwnSocket } from '../endpoints/own-machine.ts'
import { durationOf, endpointAddress, pack, socketAddress } from '../message.ts'
import { inboundCluster, inboundPassthrough4, inboundPassthrough6 } from '../names.ts'
import { loopbacks } from '../routes/port-uses.ts'
import type { Traits } from '../traits.ts'
import { listenerAccessLogs } from './access-log.ts'
import { httpInspector, originalDst, originalSrc, tcpFilters, tlsInspector } from './filters.ts'
import { type Chain, type Guard, type GuardedWorkload, type InboundPort, passthroughChains, portChains, sniffs } from './inbound-chains.ts'
import { besideWildcard, isOwnListener, loopbackOf, otherLoopbackOf, virtualInboundPort, wildcardOf } from './own-addresses.ts'
import { type TcpLimits, tcpSettings } from './tcp-targets.ts'

/**
 * Source addresses of connections from the proxy to the workload. Connections to an address of the workload from any other source are
 * redirected to the proxy again.
 */
const unredirectedSources = { ipv4: '127.0.0.6', ipv6: '::6' }

/** The inbound ports of a workload, and the declarations that were not used. */
export interface InboundPorts {
  readonly ports: InboundPort[]
  /** Services that use one port with different protocols. */
  readonly conflicts: InboundConflict[]
  readonly refused: RefusedPort[]
}

/** A service whose protocol on a port of the workload is not used, because another service has the port with another one. */
interface InboundConflict {
  readonly key: string
  readonly listener: string
  readonly host: string
  /** Id of the object of the service. */
  readonly object: string
}

/** An inbound port that is left out. */
interface RefusedPort {
  /** The name of the listener that it is left out of. */
  readonly listener: string
  /** Ids of the objects that declare it. */
  readonly objects: string[]
  readonly reason: string
}

/**
 * Returns the inbound ports of a workload: those of its Sidecar, else those of its services, one for each port number. Ports that lead to
 * the proxy or its agent are left out: their servers trust callers on their own machine (docs/resources.md, E8). So are ports at which the
 * proxy itself listens (L8).
 */
export function inboundPorts(
  view: View,
  instances: readonly ServiceInstance[],
  traits: Traits,
  address: string,
  snapshot: MeshSnapshot,
): InboundPorts {
  const listed = view.sidecar?.spec.ingress
  const sidecar = view.sidecar && listed?.length ? [configKey(view.sidecar)] : undefined
  const { ports: declared, conflicts } = listed?.length
    ? portsOfIngress(listed, instances, traits, address)
    : portsOfServices(instances, traits, address)
  const ports: InboundPort[] = []
  const refused: RefusedPort[] = []
  for (const port of declared) {
    const reason = refusalOf(port, traits, snapshot)
    if (reason === undefined) ports.push(port)
    else refused.push({ listener: listenerOf(port), objects: sidecar ?? idOfService(port), reason })
  }
  return { ports, conflicts, refused }
}

const listenerOf = ({ bind, port }: InboundPort): string => (bind === '' ? 'virtualInbound' : `${bind}_${port}`)

/** Returns why a port is left out; undefined if it is not. */
function refusalOf({ bind, port, endpoint, endpointPort }: InboundPort, traits: Traits, snapshot: MeshSnapshot): string | undefined {
  const isOwn = bind === '' ? port === virtualInboundPort : isOwnListener(bind, port, true, snapshot, traits)
  if (isOwn) return `the proxy itself listens at ${bind || wildcardOf(traits)}:${port}`
  if (snapshot.settings.optOuts.has('endpoint-addresses')) return undefined
  const isUnix = endpoint.startsWith('unix://')
  if (!(isUnix ? isOwnSocket(endpoint) : isOwnPort(endpointPort, traits, snapshot))) return undefined
  return `inbound port ${port} leads to ${isUnix ? endpoint : `${endpoint}:${endpointPort}`}, a port or socket of the proxy or its agent`
}

type Ingress = NonNullable<SidecarSpec['ingress']>[number]

/** Returns the ports of a Sidecar. Of entries with one port number the last is used. */
function portsOfIngress(
  listed: readonly Ingress[],
  instances: readonly ServiceInstance[],
  traits: Traits,
  address: string,
): Pick<InboundPorts, 'ports' | 'conflicts'> {
  const ports = listed.map((entry) => portOfIngress(entry, instances, traits, address))
  return { ports: [...new Map(ports.map((port) => [port.port, port])).values()], conflicts: [] }
}

function portOfIngress(entry: Ingress, instances: readonly ServiceInstance[], traits: Traits, address: string): InboundPort {
  const port = entry.port.number as number
  const endpoint = entry.defaultEndpoint ?? `${loopbackOf(traits)}:${port}`
  const colon = endpoint.lastIndexOf(':')
  const unix = endpoint.startsWith('unix://')
  const own = entry.captureMode === 'NONE' || traits.interception === 'NONE' || (entry.bind ?? '') !== ''
  const given = endpoint.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  const instance = instances.find((known) => known.targetPort === port) ?? instances.find((known) => known.port.number === port)
  return {
    port,
    protocol: selectProtocol(entry.port.protocol, entry.port.name ?? '', port),
    servicePort: instance?.port.number ?? port,
    host: instance?.service.hostname ?? '',
    endpoint: unix ? endpoint : given === '0.0.0.0' || given === '::' ? address : given,
    otherEndpoint: entry.defaultEndpoint === undefined ? otherLoopbackOf(traits) : undefined,
    endpointPort: unix ? 0 : Number(endpoint.slice(colon + 1)),
    bind: own ? entry.bind || address : '',
    instance,
  }
}

function portsOfServices(instances: readonly ServiceInstance[], traits: Traits, address: string): Pick<InboundPorts, 'ports' | 'conflicts'> {
  const ports = new Map<number, InboundPort>()
  const conflicts: InboundConflict[] = []
  for (const instance of instances) {
    if (instance.port.protocol === 'udp') continue
    const there = ports.get(instance.targetPort)
    if (there) {
      const { service, port } = instance
      if (there.protocol !== port.protocol)
        conflicts.push({
          key: `${there.port} ${there.host} ${service.hostname}`,
          listener: listenerOf(there),
          host: service.hostname,
          object: serviceKey(service),
        })
      continue
    }
    ports.set(instance.targetPort, {
      port: instance.targetPort,
      protocol: instance.port.protocol,
      servicePort: instance.port.number,
      host: instance.service.hostname,
      endpoint: loopbackOf(traits),
      otherEndpoint: otherLoopbackOf(traits),
      endpointPort: instance.targetPort,
      bind: traits.interception === 'NONE' ? address : '',
      instance,
    })
  }
  return { ports: [...ports.values()].sort((one, other) => one.port - other.port), conflicts }
}

/** Returns the clusters that lead to the workload itself. */
export function inboundClusters(ports: readonly InboundPort[], view: View, snapshot: MeshSnapshot): Draft<Cluster>[] {
  return ports.map((port) => ({
    name: inboundCluster(port.port),
    objects: () => objectsOfPort(port, view),
    make: () => inboundClusterOf(port, view, snapshot),
  }))
}

/** Returns the clusters for undeclared ports of workloads; they are the same for all proxies with redirected connections. */
export const passthroughClusters = (snapshot: MeshSnapshot): Cluster[] => [
  inboundPassthrough(inboundPassthrough4, unredirectedSources.ipv4, snapshot),
  inboundPassthrough(inboundPassthrough6, unredirectedSources.ipv6, snapshot),
]

/** Returns the ids of the objects that declare a port of the workload. */
function objectsOfPort(port: InboundPort, view: View): string[] {
  return [...(view.sidecar ? [configKey(view.sidecar)] : []), ...idOfService(port)]
}

const idOfService = ({ instance }: InboundPort): string[] => (instance ? [serviceKey(instance.service)] : [])

function inboundClusterOf(port: InboundPort, view: View, snapshot: MeshSnapshot): Cluster {
  const name = inboundCluster(port.port)
  const cluster: ClusterInit = {
    name,
    altStatName: port.instance ? statName(snapshot.mesh.inboundClusterStatName, port.instance.service, port.instance.port, undefined) : '',
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: 'endpoint', value: endpointOf(port) } }] }],
    },
  }
  if (!loopbacks.has(port.endpoint) && !port.endpoint.startsWith('unix://'))
    cluster.upstreamBindConfig = bindTo(port.endpoint.includes(':') ? unredirectedSources.ipv6 : unredirectedSources.ipv4)
  const connectionPool = connectionPoolOf(port, view)
  applyPolicy(cluster, { connectionPool, loadBalancer: undefined, outlierDetection: undefined, tls: undefined }, snapshot)
  cluster.lbPolicy = Cluster_LbPolicy.ROUND_ROBIN
  const options = inboundHttpOptions(port, connectionPool)
  if (options) cluster.typedExtensionProtocolOptions = options
  if (port.instance)
    cluster.metadata = {
      filterMetadata: { istio: { services: [{ host: port.host, name: port.instance.service.name, namespace: port.instance.service.namespace }] } },
    }
  return create(ClusterSchema, cluster)
}

/**
 * Returns the endpoint of a port. Envoy tries the addresses one after the other: the workload may listen in one family, and with TPROXY a
 * connection reaches only an address of its caller's family.
 */
function endpointOf({ endpoint, otherEndpoint, endpointPort }: InboundPort): MessageInitShape<typeof EndpointSchema> {
  const address = endpointAddress(endpoint, endpointPort)
  return otherEndpoint === undefined ? { address } : { address, additionalAddresses: [{ address: endpointAddress(otherEndpoint, endpointPort) }] }
}

/**
 * Returns the connection pool of a port: from the Sidecar for the port, else from the Sidecar for all ports, else from the rule of the
 * service (docs/resources.md, C12).
 */
function connectionPoolOf(port: InboundPort, view: View): PolicyInForce['connectionPool'] {
  const { instance, servicePort } = port
  return poolOfSidecar(port, view) ?? (instance && policyFor(view.ruleFor(instance.service), undefined, servicePort).connectionPool)
}

function poolOfSidecar({ port }: InboundPort, view: View): PolicyInForce['connectionPool'] {
  const { ingress = [], inboundConnectionPool } = view.sidecar?.spec ?? {}
  return ingress.find((entry) => entry.port.number === port)?.connectionPool ?? inboundConnectionPool
}

/** Returns the limits of the connection pool of a port for TCP connections (docs/resources.md, R19). */
function tcpLimitsOf(port: InboundPort, view: View): TcpLimits | undefined {
  const { instance, servicePort } = port
  const own = poolOfSidecar(port, view)
  return own ? own.tcp : instance && tcpSettings(view, instance.service, servicePort)
}

const bindTo = (address: string): ClusterInit['upstreamBindConfig'] => ({
  sourceAddress: { address, portSpecifier: { case: 'portValue', value: 0 } },
})

type HttpOptions = MessageInitShape<typeof HttpProtocolOptionsSchema>

const httpOptions = (options: HttpOptions) => ({
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': pack(HttpProtocolOptionsSchema, options),
})

/**
 * Returns the HTTP options of an inbound cluster: the protocol towards the workload and the HTTP part of the connection pool; undefined for
 * plain HTTP/1.1 without settings.
 */
function inboundHttpOptions({ protocol }: InboundPort, pool: PolicyInForce['connectionPool']): ClusterInit['typedExtensionProtocolOptions'] {
  if (protocol !== 'unknown' && !isHttp(protocol)) return undefined
  const common = commonHttpOptions(pool)
  const isTuned = Object.keys(common).length > 0
  const http2ProtocolOptions = http2Options(pool)
  const commonOf = isTuned ? { commonHttpProtocolOptions: common } : {}
  if (protocol === 'unknown' || pool?.http?.useClientProtocol)
    return httpOptions({
      ...commonOf,
      upstreamProtocolOptions: { case: 'useDownstreamProtocolConfig', value: { httpProtocolOptions: {}, http2ProtocolOptions } },
    })
  const explicit = (protocolConfig: ExplicitProtocol) =>
    httpOptions({ ...commonOf, upstreamProtocolOptions: { case: 'explicitHttpConfig', value: { protocolConfig } } })
  if (isHttp2(protocol)) return explicit({ case: 'http2ProtocolOptions', value: http2ProtocolOptions })
  return isTuned ? explicit({ case: 'httpProtocolOptions', value: {} }) : undefined
}

type ExplicitProtocol = NonNullable<
  Extract<NonNullable<HttpOptions['upstreamProtocolOptions']>, { case: 'explicitHttpConfig' }>['value']['protocolConfig']
>

function inboundPassthrough(name: string, source: string, snapshot: MeshSnapshot): Cluster {
  const cluster: ClusterInit = {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST },
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
    upstreamBindConfig: bindTo(source),
    typedExtensionProtocolOptions: httpOptions({
      upstreamProtocolOptions: { case: 'useDownstreamProtocolConfig', value: { httpProtocolOptions: {}, http2ProtocolOptions: {} } },
    }),
  }
  applyConnectionPool(cluster, undefined, snapshot)
  return create(ClusterSchema, cluster)
}

/**
 * Returns the listeners of ports with their own address, and then the catch-all listener for redirected connections. `guard` is called when
 * a listener is made.
 */
export function inboundListeners(
  declared: readonly InboundPort[],
  policies: WorkloadPolicies,
  guard: () => GuardedWorkload,
  view: View,
  snapshot: MeshSnapshot,
  traits: Traits,
): Draft<Listener>[] {
  const ports = declared.map((port): InboundPort => ({ ...port, tcpLimits: tcpLimitsOf(port, view) }))
  const objectsOf = (of: readonly InboundPort[]) => [
    ...new Set([...of.flatMap((port) => objectsOfPort(port, view)), ...allPolicies(policies).map(configKey)]),
  ]
  const bound = ports
    .filter((port) => port.bind !== '')
    .map((port) => ({ name: listenerOf(port), objects: () => objectsOf([port]), make: () => boundListener(port, guard()) }))
  if (traits.interception === 'NONE' || snapshot.mesh.proxyListenPort === 0) return bound
  const redirected = ports.filter((port) => port.bind === '')
  return [...bound, { name: 'virtualInbound', objects: () => objectsOf(redirected), make: () => virtualInbound(redirected, guard()) }]
}

function boundListener(port: InboundPort, guard: Guard): Listener {
  const { snapshot } = guard
  const chains = portChains(port, guard, {})
  return create(ListenerSchema, {
    name: listenerOf(port),
    address: socketAddress(port.bind, port.port),
    filterChains: chains,
    listenerFilters: sniffs(port, guard) ? [tlsInspector(), httpInspector()] : guard.asks(port.port) ? [tlsInspector()] : [],
    ...detection(snapshot),
    trafficDirection: 1,
    bindToPort: true,
    accessLog: listenerAccessLogs(snapshot.mesh),
  })
}

const detection = (snapshot: MeshSnapshot) => ({
  listenerFiltersTimeout: durationOf(snapshot.settings.features.PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT),
  continueOnListenerFiltersTimeout: true,
})

function virtualInbound(ports: readonly InboundPort[], guard: GuardedWorkload): Listener {
  const { snapshot, traits } = guard
  const passthrough = passthroughChains(
    ports.map((port) => port.port),
    guard,
  )
  const blocker: Chain = {
    name: 'virtualInbound-blackhole',
    filterChainMatch: { destinationPort: virtualInboundPort },
    filters: tcpFilters('BlackHoleCluster', [{ cluster: 'BlackHoleCluster', weight: 1 }], undefined, snapshot, traits),
  }
  const own = ports.flatMap((port) => portChains(port, guard, { destinationPort: port.port })).sort((one, other) => compare(one.name, other.name))
  const quiet = ports.filter((port) => !sniffs(port, guard)).map((port) => port.port)
  return create(ListenerSchema, {
    name: 'virtualInbound',
    address: socketAddress(wildcardOf(traits), virtualInboundPort),
    additionalAddresses: besideWildcard(traits, virtualInboundPort),
    filterChains: [...(snapshot.settings.features.PILOT_ENABLE_LOOP_BLOCKER ? [blocker] : []), ...passthrough, ...own],
    listenerFilters: [
      originalDst(),
      ...(traits.interception === 'TPROXY' ? [originalSrc()] : []),
      tlsInspector(),
      { ...httpInspector(), ...disabledOn(quiet) },
    ],
    ...detection(snapshot),
    trafficDirection: 1,
    transparent: traits.interception === 'TPROXY' ? true : undefined,
    accessLog: listenerAccessLogs(snapshot.mesh),
  })
}

/**
 * Returns settings that disable an inspector for connections to these ports: they need no protocol detection, and their servers may speak
 * first.
 */
function disabledOn(ports: readonly number[]) {
  const range = (port: number) => ({ rule: { case: 'destinationPortRange' as const, value: { start: port, end: port + 1 } } })
  const [first] = ports
  if (first === undefined) return {}
  return { filterDisabled: ports.length === 1 ? range(first) : { rule: { case: 'orMatch' as const, value: { rules: ports.map(range) } } } }
}
