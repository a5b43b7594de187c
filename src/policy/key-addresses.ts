/**
 * Which addresses the control plane may fetch key sets from on behalf of users. The control plane can reach the services of its own host
 * and the cloud's metadata service, which users cannot, and what it fetches is visible in the configuration of proxies.
 */
import ipaddr from 'ipaddr.js'

/**
 * Ranges that lead to the host itself, its link with the metadata service of the cloud, or its site, and ranges that are not unicast or not
 * assigned. Includes the ranges through which a gateway or relay reaches any IPv4 address (RFC 6052, 6145, 3056, 4380).
 */
const refusedRanges = new Set([
  'loopback',
  'linkLocal',
  'deprecatedSiteLocal',
  'unspecified',
  'broadcast',
  'multicast',
  'reserved',
  'discard',
  'rfc6052',
  'rfc6145',
  '6to4',
  'teredo',
])
/** IPv4-compatible IPv6 addresses (RFC 4291, section 2.5.5.1), for which the library has no range name. */
const compatible = ipaddr.parseCIDR('::/96')
/** Addresses of metadata services that lie in ordinary ranges: private ones, shared ones, and one public one. */
const metadataAddresses = [
  // Amazon: metadata, pod identity, names, time.
  'fd00:ec2::/64',
  // Google.
  'fd20:ce::254/128',
  // Oracle.
  '192.0.0.192/32',
  'fd00:c1::a9fe:a9fe/128',
  // Microsoft.
  '168.63.129.16/32',
  // Alibaba.
  '100.100.100.200/32',
  'fd00:100::100:200/128',
  // Akamai.
  'fd00:a9fe:a9fe::1/128',
  // Scaleway.
  'fd00:42::42/128',
  // Volcano Engine.
  '100.96.0.96/32',
].map((range) => ipaddr.parseCIDR(range))

/** Ranges that are allowed nonetheless. */
export type AllowedRanges = readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[]

/** Parses a comma-separated list of addresses and ranges. Throws an Error that names an invalid entry. */
export function readRanges(list: string): AllowedRanges {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry)
      if (ipaddr.isValid(entry)) return ipaddr.parseCIDR(`${entry}/${ipaddr.parse(entry).kind() === 'ipv4' ? 32 : 128}`)
      throw new Error(`${JSON.stringify(entry)} is not an IP address or range`)
    })
}

/** Returns the reason why an address must not be fetched from; undefined if it may be. */
export function refusal(address: string, allowed: AllowedRanges): string | undefined {
  if (!ipaddr.isValid(address)) return `${address} is not an IP address`
  // The library would parse this form as an IPv4-mapped address, which is a different one.
  if (/^::\d+\./.test(address)) return `${address} stands for an IPv4 address`
  // An IPv4-mapped IPv6 address is treated as the IPv4 address.
  const parsed = ipaddr.process(address)
  const within = (ranges: AllowedRanges) => ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base as never, bits))
  if (within(allowed)) return undefined
  const range = parsed.range()
  if (within(metadataAddresses)) return `${address} is a metadata service`
  if (refusedRanges.has(range)) return `${address} is a ${range} address`
  return within([compatible]) ? `${address} stands for an IPv4 address` : undefined
}
