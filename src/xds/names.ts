/** Names of generated resources (discovery behaviour 2.1, 2.7). */
import type { Destination } from '../config/traffic-specs.ts'
import type { ServiceState } from '../snapshot/snapshot.ts'

export const blackHole = 'BlackHoleCluster'
export const passthrough = 'PassthroughCluster'
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

/** The port of a destination: the one it names, else the service's only one, else the one the request came to. */
export function destinationPort(destination: Destination, port: number, service: (host: string) => ServiceState | undefined): number {
  if (destination.port) return destination.port.number
  const ports = service(destination.host)?.service.ports
  return ports?.length === 1 && ports[0] ? ports[0].number : port
}

/** The cluster of a destination whose host is a full name. */
export function destinationCluster(destination: Destination, port: number, service: (host: string) => ServiceState | undefined): string {
  return outboundCluster(destinationPort(destination, port, service), destination.subset ?? '', destination.host)
}
