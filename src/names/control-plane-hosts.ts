/** Hosts under which proxies know the control plane. */

import ipaddr from 'ipaddr.js'

/** Services of the control plane, each with the name that it had before the mesh domain (alias). */
const services = ['meshd', 'meshd-remote', 'mesh-pilot', 'istiod', 'istiod-remote', 'istio-pilot']

/** The DNS names of the services of the control plane in a namespace. */
export function controlPlaneHosts(namespace: string): string[] {
  return services.map((service) => `${service}.${namespace}.svc`)
}

/** Whether text is a DNS name (RFC 1123), the first label of which may be a wildcard, or an address: what a serving certificate may name. */
export function isHost(text: string): boolean {
  return (
    ipaddr.IPv4.isValidFourPartDecimal(text) ||
    ipaddr.IPv6.isValid(text) ||
    (text.length <= 253 && /^(\*\.)?[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_][a-z0-9_-]{0,62})*$/i.test(text))
  )
}
