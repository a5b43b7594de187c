/** IP addresses and CIDR blocks in the notation that Envoy accepts: four decimal parts, or IPv6 without a zone. */
import ipaddr from 'ipaddr.js'

/** The maximum length of a unix socket's path in bytes (`sun_path` of Linux, without the terminating NUL). */
const longestUnixPath = 107

const byte = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
/** An IPv4 address of four decimal parts without leading zeros. */
const fourParts = new RegExp(`^${byte}\\.${byte}\\.${byte}\\.${byte}$`)

/** Whether text is an IP address. */
export function isIp(text: string): boolean {
  return fourParts.test(text) || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))
}

/** Whether text is an IP address, with or without a prefix length. */
export function isIpOrCidr(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  if (more !== undefined || !isIp(address)) return false
  return bits === undefined || (/^(0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= (address.includes(':') ? 128 : 32))
}

/**
 * Returns an address or CIDR with its address in canonical form (RFC 5952), and other text unchanged. Envoy refuses two listeners with the
 * same address.
 */
export function canonicalAddress(text: string): string {
  if (!text.includes(':') || !isIpOrCidr(text)) return text
  const [address = '', bits] = text.split('/')
  const canonical = ipaddr.parse(address).toString()
  return bits === undefined ? canonical : `${canonical}/${bits}`
}

/** Returns why a unix socket address `unix://<path>` is not valid for proxies. Undefined when it is valid, and for other text. */
export function unixFault(text: string): string | undefined {
  if (!text.startsWith('unix://')) return undefined
  const bytes = Buffer.byteLength(text.slice('unix://'.length))
  return bytes >= 1 && bytes <= longestUnixPath ? undefined : `the path of the unix socket has ${bytes} bytes; 1 to ${longestUnixPath} are allowed`
}

/** Cloud metadata services with addresses outside of the link-local range. */
const metadataServices: ReadonlySet<string> = new Set(['100.100.100.200', '168.63.129.16', '192.0.0.192'])
const metadataServiceIpv6 = 'fd00:ec2::254'

/** Whether an IPv4 address is loopback, link-local, unspecified, multicast, broadcast, or that of a cloud metadata service. */
function leadsToCallerIpv4(address: string): boolean {
  const [first, second] = address.split('.', 2).map(Number) as [number, number]
  if (first === 0 || first === 127 || (first >= 224 && first <= 239) || address === '255.255.255.255') return true
  return (first === 169 && second === 254) || metadataServices.has(address)
}

const ipv6Ranges: ReadonlySet<string> = new Set(['loopback', 'linkLocal', 'unspecified', 'multicast'])
/**
 * IPv6 prefixes of addresses that contain an IPv4 address, with the index of its first byte: NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056),
 * IPv4-compatible and IPv4-translated (RFC 4291, RFC 2765).
 */
const embedding = (
  [
    ['64:ff9b::/96', 12],
    ['64:ff9b:1::/48', 12],
    ['2002::/16', 2],
    ['::/96', 12],
    ['::ffff:0:0:0/96', 12],
  ] as const
).map(([range, at]) => ({ range: ipaddr.parseCIDR(range) as [ipaddr.IPv6, number], at }))

function leadsToCallerIpv6(text: string): boolean {
  // Zones exist only for addresses of a link.
  if (text.includes('%')) return true
  if (!ipaddr.IPv6.isValid(text)) return false
  const address = ipaddr.IPv6.parse(text)
  if (address.isIPv4MappedAddress()) return leadsToCallerIpv4(address.toIPv4Address().toString())
  if (ipv6Ranges.has(address.range()) || address.toString() === metadataServiceIpv6) return true
  return embedding.some(
    ({ range, at }) =>
      address.match(range) &&
      leadsToCallerIpv4(
        address
          .toByteArray()
          .slice(at, at + 4)
          .join('.'),
      ),
  )
}

/**
 * Whether an endpoint address leads each caller to its own machine or link: a unix socket; a loopback, link-local, unspecified, multicast
 * or broadcast address, or that of a cloud metadata service, also as IPv6 with an embedded IPv4 address; a name of the machine itself (RFC
 * 6761); or a number that is not in the form of four decimal parts, which some resolvers accept as an address. Other names are not
 * resolved.
 */
export function leadsToCaller(address: string): boolean {
  if (address.startsWith('unix:')) return true
  if (address.includes(':')) return leadsToCallerIpv6(address)
  if (fourParts.test(address)) return leadsToCallerIpv4(address)
  return /^((.*\.)?localhost|ip6-(localhost|loopback)|localhost\.localdomain)\.?$/i.test(address) || /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(address)
}
