/** Names of generated resources (discovery behaviour 2.1, 2.7). */

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
