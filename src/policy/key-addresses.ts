/**
 * Which addresses the control plane may fetch from on a user's behalf: it stands where users do not, beside its host's own
 * services and the cloud's metadata service, and what it fetches can be read in proxies' configuration.
 */
import ipaddr from 'ipaddr.js'

/**
 * Ranges that lead to the host itself, its link, its site, its cloud's metadata, or nowhere in particular; those through which a gateway or a relay leads
 * to any IPv4 address (RFC 6052, 6145, 3056, 4380) are among them.
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
/** IPv6 addresses that stand for IPv4 ones (RFC 4291, section 2.5.5.1), a range without a name. */
const compatible = ipaddr.parseCIDR('::/96')
/** Metadata services that have addresses of an ordinary range. */
const metadataAddresses = ['fd00:ec2::254/128', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'].map((range) => ipaddr.parseCIDR(range))

/** Ranges that are allowed all the same. */
export type AllowedRanges = readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[]

/** Reads a list of addresses and ranges, separated by commas. Throws an Error that names what cannot be read. */
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

/** Why an address must not be fetched from, or undefined when it may be. */
export function refusal(address: string, allowed: AllowedRanges): string | undefined {
  if (!ipaddr.isValid(address)) return `${address} is not an IP address`
  // The library reads this form, which is another, as the next.
  if (/^::\d+\./.test(address)) return `${address} stands for an IPv4 address`
  // An IPv4 address in IPv6 clothes is the IPv4 address.
  const parsed = ipaddr.process(address)
  const within = (ranges: AllowedRanges) => ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base as never, bits))
  if (within(allowed)) return undefined
  const range = parsed.range()
  if (within(metadataAddresses)) return `${address} is a metadata service`
  if (refusedRanges.has(range)) return `${address} is a ${range} address`
  return within([compatible]) ? `${address} stands for an IPv4 address` : undefined
}
