/** Host names of the control plane. */

import ipaddr from 'ipaddr.js'

/** Names of the control plane's services, including the alias names. */
const services = ['meshd', 'meshd-remote', 'mesh-pilot', 'istiod', 'istiod-remote', 'istio-pilot']

/** Returns the DNS names of the control plane's services in a namespace. */
export function controlPlaneHosts(namespace: string): string[] {
  return services.map((service) => `${service}.${namespace}.svc`)
}

/**
 * Whether text is an IP address or a DNS name (RFC 1123), whose first label may be a wildcard. These are the names that a serving
 * certificate may contain.
 */
export function isHost(text: string): boolean {
  return (
    ipaddr.IPv4.isValidFourPartDecimal(text) ||
    ipaddr.IPv6.isValid(text) ||
    (text.length <= 253 && /^(\*\.)?[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_][a-z0-9_-]{0,62})*$/i.test(text))
  )
}
