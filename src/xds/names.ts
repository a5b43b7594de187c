/** Names of generated resources (docs/resources.md, C1, C2, C11, C12). */
import type { Destination } from '../config/shapes/hosts.ts'
import type { ServiceState } from '../registry/merged-services.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from './type-urls.ts'

/** The cluster that drops all traffic. */
export const blackHole = 'BlackHoleCluster'
/** The cluster that forwards outbound connections to their original destination. */
export const passthrough = 'PassthroughCluster'
/** The clusters for inbound connections to undeclared ports, over IPv4 and IPv6. */
export const inboundPassthrough4 = 'InboundPassthroughClusterIpv4'
export const inboundPassthrough6 = 'InboundPassthroughClusterIpv6'

/** `outbound|<port>|<subset>|<host>`. */
export function outboundCluster(port: number, subset: string, host: string): string {
  return `outbound|${port}|${subset}|${host}`
}

/** `inbound|<port>||`. */
export function inboundCluster(port: number): string {
  return `inbound|${port}||`
}

/** `outbound_.<port>_.<subset>_.<host>`: the form that fits into SNI. */
export function sniCluster(port: number, subset: string, host: string): string {
  return `outbound_.${port}_.${subset}_.${host}`
}

/** Whether a cluster or load assignment has an SNI name: traffic to it is mutual TLS of the mesh, forwarded without termination. */
export const isSniName = (name: string): boolean => name.startsWith('outbound_.')

/** The service of a cluster: its host, port and subset; empty: it is of none. */
interface ClusterParts {
  readonly port: string
  readonly subset: string
  readonly host: string
}

/** Reads the name of a cluster to other workloads. */
export function clusterParts(name: string): ClusterParts {
  const [, port = '', subset = '', host = ''] =
    (isSniName(name) ? /^outbound_\.(\d+)_\.(.*?)_\.(.*)$/ : /^outbound\|(\d+)\|([^|]*)\|(.*)$/).exec(name) ?? []
  return { port, subset, host }
}

/**
 * Returns the key by which a class hides a resource. For `outbound|80|v1|a.com` and `outbound_.80_.v1_.a.com` (clusters, load assignments)
 * and `80/a.com:80` (virtual hosts as resources) it is the host, `a.com`. For a listener or a route configuration it is the name of the
 * resource. Other resources have none: ''.
 */
export function hostOf(typeUrl: string, name: string): string {
  if (typeUrl === clusterType || typeUrl === endpointType) {
    if (name.startsWith('outbound|')) return name.slice(name.lastIndexOf('|') + 1)
    if (!name.startsWith('outbound_.')) return ''
    const subset = name.indexOf('_.', 'outbound_.'.length)
    const host = subset < 0 ? -1 : name.indexOf('_.', subset + 2)
    return host < 0 ? '' : name.slice(host + 2)
  }
  if (typeUrl === listenerType || typeUrl === routeType) return name
  if (typeUrl !== virtualHostType) return ''
  const host = name.slice(name.lastIndexOf('/') + 1)
  const port = host.lastIndexOf(':')
  return port < 0 ? host : host.slice(0, port)
}

/** Returns the port of a destination: the one that it names, else the only port of the service, else `port`, to which the request came. */
export function destinationPort(destination: Destination, port: number, service: (host: string) => ServiceState | undefined): number {
  if (destination.port) return destination.port.number
  const ports = service(destination.host)?.service.ports
  return ports?.length === 1 && ports[0] ? ports[0].number : port
}

/** Returns the cluster of a destination whose host is a fully qualified name. */
export function destinationCluster(destination: Destination, port: number, service: (host: string) => ServiceState | undefined): string {
  return outboundCluster(destinationPort(destination, port, service), destination.subset ?? '', destination.host)
}
