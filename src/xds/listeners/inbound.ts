/** Listeners and clusters for what reaches a sidecar's own workload (discovery behaviour 2.1, 2.5). */
import { create } from '@bufbuild/protobuf'
import type { Protocol } from '../../../protocols/data.ts'
import { type Cluster, Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { HttpProtocolOptionsSchema } from '../../../protocols/gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js'
import { isHttp, isHttp2, selectProtocol } from '../../model/protocol.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import { compare } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { View } from '../../snapshot/view.ts'
import { applyPolicy, type ClusterInit, policyFor } from '../clusters/traffic-policy.ts'
import { durationOf, endpointAddress, pack, socketAddress } from '../message.ts'
import { inboundCluster, inboundPassthrough4, inboundPassthrough6 } from '../names.ts'
import type { Traits } from '../traits.ts'
import { listenerAccessLogs } from './access-log.ts'
import { type Filter, httpConnectionManager, httpInspector, originalDst, originalSrc, tcpFilters, tlsInspector } from './filters.ts'
import { wildcardOf } from './outbound.ts'

const virtualInboundPort = 15_006

/** One port of the workload, whichever way it was declared. */
export interface InboundPort {
  /** Port that clients reach. */
  readonly port: number
  readonly protocol: Protocol
  readonly servicePort: number
  readonly host: string
  /** Where the workload listens. */
  readonly endpoint: string
  readonly endpointPort: number
  /** Address of a listener of its own (Sidecar ingress, interception NONE), or empty: a chain of the catch-all listener. */
  readonly bind: string
  readonly instance: ServiceInstance | undefined
}

/** The ports of a workload: those a Sidecar lists, else those of the services it is behind; one for each port number. */
export function inboundPorts(view: View, instances: readonly ServiceInstance[], traits: Traits, address: string): InboundPort[] {
  const ports = new Map<number, InboundPort>()
  const ingress = view.sidecar?.spec.ingress
  if (ingress?.length) {
    for (const entry of ingress) {
      const port = entry.port.number as number
      const endpoint = entry.defaultEndpoint ?? `127.0.0.1:${port}`
      const colon = endpoint.lastIndexOf(':')
      const unix = endpoint.startsWith('unix://')
      const own = entry.captureMode === 'NONE' || traits.interception === 'NONE' || (entry.bind ?? '') !== ''
      const host = unix ? endpoint : endpoint.slice(0, colon) === '0.0.0.0' ? address : endpoint.slice(0, colon)
      const instance = instances.find((known) => known.targetPort === port || known.port.number === port)
      ports.set(port, {
        port,
        protocol: selectProtocol(entry.port.protocol, entry.port.name ?? '', port),
        servicePort: instance?.port.number ?? port,
        host: instance?.service.hostname ?? '',
        endpoint: host,
        endpointPort: unix ? 0 : Number(endpoint.slice(colon + 1)),
        bind: own ? entry.bind || address : '',
        instance,
      })
    }
    return [...ports.values()]
  }
  for (const instance of instances) {
    if (instance.port.protocol === 'udp' || ports.has(instance.targetPort)) continue
    ports.set(instance.targetPort, {
      port: instance.targetPort,
      protocol: instance.port.protocol,
      servicePort: instance.port.number,
      host: instance.service.hostname,
      endpoint: '127.0.0.1',
      endpointPort: instance.targetPort,
      bind: traits.interception === 'NONE' ? address : '',
      instance,
    })
  }
  return [...ports.values()].sort((one, other) => one.port - other.port)
}

/** Clusters that lead to the workload itself, and those for ports nobody declared. */
export function inboundClusters(ports: readonly InboundPort[], view: View, snapshot: MeshSnapshot, traits: Traits): Cluster[] {
  const clusters = ports.map((port): Cluster => {
    const name = inboundCluster(port.port)
    const cluster: ClusterInit = {
      name,
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.STATIC },
      loadAssignment: {
        clusterName: name,
        endpoints: [
          { lbEndpoints: [{ hostIdentifier: { case: 'endpoint', value: { address: endpointAddress(port.endpoint, port.endpointPort) } } }] },
        ],
      },
    }
    const { connectionPool } = port.instance ? policyFor(view.ruleFor(port.instance.service), undefined, port.servicePort) : {}
    applyPolicy(cluster, { connectionPool, loadBalancer: undefined, outlierDetection: undefined, tls: undefined }, snapshot)
    cluster.lbPolicy = Cluster_LbPolicy.ROUND_ROBIN
    if (isHttp2(port.protocol))
      cluster.typedExtensionProtocolOptions = httpOptions({
        case: 'explicitHttpConfig',
        value: { protocolConfig: { case: 'http2ProtocolOptions', value: {} } },
      })
    else if (port.protocol === 'unknown')
      cluster.typedExtensionProtocolOptions = httpOptions({
        case: 'useDownstreamProtocolConfig',
        value: { httpProtocolOptions: {}, http2ProtocolOptions: {} },
      })
    if (port.instance)
      cluster.metadata = {
        filterMetadata: { istio: { services: [{ host: port.host, name: port.instance.service.name, namespace: port.instance.service.namespace }] } },
      }
    return create(ClusterSchema, cluster)
  })
  if (traits.interception === 'NONE') return clusters
  return [...clusters, inboundPassthrough(inboundPassthrough4, '127.0.0.6', snapshot), inboundPassthrough(inboundPassthrough6, '::6', snapshot)]
}

const httpOptions = (value: NonNullable<Parameters<typeof pack<typeof HttpProtocolOptionsSchema>>[1]>['upstreamProtocolOptions']) => ({
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': pack(HttpProtocolOptionsSchema, { upstreamProtocolOptions: value }),
})

function inboundPassthrough(name: string, source: string, snapshot: MeshSnapshot): Cluster {
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.ORIGINAL_DST },
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
    connectTimeout: durationOf(snapshot.mesh.connectTimeout),
    upstreamBindConfig: { sourceAddress: { address: source, portSpecifier: { case: 'portValue', value: 0 } } },
    typedExtensionProtocolOptions: httpOptions({ case: 'useDownstreamProtocolConfig', value: { httpProtocolOptions: {}, http2ProtocolOptions: {} } }),
  })
}

/** Bound listeners of single ports, then the catch-all listener that redirected connections come to. */
export function inboundListeners(ports: readonly InboundPort[], snapshot: MeshSnapshot, traits: Traits): Listener[] {
  const bound = ports.filter((port) => port.bind !== '').map((port) => boundListener(port, snapshot, traits))
  if (traits.interception === 'NONE' || snapshot.mesh.proxyListenPort === 0) return bound
  return [
    ...bound,
    virtualInbound(
      ports.filter((port) => port.bind === ''),
      snapshot,
      traits,
    ),
  ]
}

interface Chain {
  readonly name: string
  readonly filterChainMatch: {
    destinationPort?: number
    transportProtocol?: string
    applicationProtocols?: string[]
    prefixRanges?: { addressPrefix: string; prefixLen: number }[]
  }
  readonly filters: Filter[]
}

const sniffs = (port: InboundPort, snapshot: MeshSnapshot): boolean =>
  port.protocol === 'unknown' && snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND

/** The chains of one port: by protocol, and by sniffing where the protocol is not known. */
function portChains(port: InboundPort, snapshot: MeshSnapshot, traits: Traits, match: Chain['filterChainMatch']): Chain[] {
  const name = `${wildcardOf(traits)}_${port.port}`
  const http = () => [
    httpConnectionManager({ side: 'inbound', statPrefix: `inbound_${name}`, routes: inboundRoutes(port), protocol: port.protocol }, snapshot, traits),
  ]
  const tcp = () => tcpFilters(inboundCluster(port.port), [{ cluster: inboundCluster(port.port), weight: 1 }], port.protocol, snapshot, traits)
  if (isHttp(port.protocol)) return [{ name, filterChainMatch: match, filters: http() }]
  if (!sniffs(port, snapshot)) return [{ name, filterChainMatch: match, filters: tcp() }]
  return [
    { name, filterChainMatch: { ...match, applicationProtocols: ['http/1.0', 'http/1.1', 'h2c'], transportProtocol: 'raw_buffer' }, filters: http() },
    { name, filterChainMatch: match, filters: tcp() },
  ]
}

function inboundRoutes(port: InboundPort) {
  const cluster = inboundCluster(port.port)
  return create(RouteConfigurationSchema, {
    name: cluster,
    validateClusters: false,
    virtualHosts: [
      {
        name: `inbound|http|${port.servicePort}`,
        domains: ['*'],
        routes: [
          {
            name: 'default',
            match: { pathSpecifier: { case: 'prefix', value: '/' } },
            decorator: { operation: `${port.host || cluster}:${port.servicePort}/*` },
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

function boundListener(port: InboundPort, snapshot: MeshSnapshot, traits: Traits): Listener {
  const chains = portChains(port, snapshot, traits, {})
  return create(ListenerSchema, {
    name: `${port.bind}_${port.port}`,
    address: socketAddress(port.bind, port.port),
    filterChains: chains,
    listenerFilters: sniffs(port, snapshot) ? [tlsInspector(), httpInspector()] : [],
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

function virtualInbound(ports: readonly InboundPort[], snapshot: MeshSnapshot, traits: Traits): Listener {
  const passthroughChains = [
    { cluster: inboundPassthrough4, addressPrefix: '0.0.0.0' },
    { cluster: inboundPassthrough6, addressPrefix: '::0' },
  ].map(
    ({ cluster, addressPrefix }): Chain => ({
      name: 'virtualInbound',
      filterChainMatch: { prefixRanges: [{ addressPrefix, prefixLen: 0 }] },
      filters: tcpFilters(cluster, [{ cluster, weight: 1 }], undefined, snapshot, traits),
    }),
  )
  const blocker: Chain = {
    name: 'virtualInbound-blackhole',
    filterChainMatch: { destinationPort: virtualInboundPort },
    filters: tcpFilters('BlackHoleCluster', [{ cluster: 'BlackHoleCluster', weight: 1 }], undefined, snapshot, traits),
  }
  const own = ports
    .flatMap((port) => portChains(port, snapshot, traits, { destinationPort: port.port }))
    .sort((one, other) => compare(one.name, other.name))
  const quiet = ports.filter((port) => !sniffs(port, snapshot)).map((port) => port.port)
  return create(ListenerSchema, {
    name: 'virtualInbound',
    address: socketAddress(wildcardOf(traits), virtualInboundPort),
    filterChains: [...(snapshot.settings.features.PILOT_ENABLE_LOOP_BLOCKER ? [blocker] : []), ...passthroughChains, ...own],
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

/** Keeps an inspector away from connections to these ports: they need no sniffing, and the server may speak first. */
function disabledOn(ports: readonly number[]) {
  const range = (port: number) => ({ rule: { case: 'destinationPortRange' as const, value: { start: port, end: port + 1 } } })
  const [first] = ports
  if (first === undefined) return {}
  return { filterDisabled: ports.length === 1 ? range(first) : { rule: { case: 'orMatch' as const, value: { rules: ports.map(range) } } } }
}
