/**
 * Ranges of IP addresses in rules. An IPv4 address and its IPv6 form (`::ffff:a.b.c.d`, RFC 4291, section 2.5.5.2) are the same address.
 */
import ipaddr from 'ipaddr.js'

/** A range in the form of `envoy.config.core.v3.CidrRange`. */
export interface AddressRange {
  readonly addressPrefix: string
  readonly prefixLen: number
}

/**
 * Returns the ranges for a value of a rule. `isFromHeader`: they are compared with addresses from headers, so both forms of an IPv4 range
 * are returned. The addresses of connections are always in IPv4 form in Envoy.
 */
export function rangesOf(value: string, isFromHeader: boolean): AddressRange[] {
  const [addressPrefix = '', bits] = value.split('/')
  const address = ipaddr.parse(addressPrefix)
  const whole = address.kind() === 'ipv6' ? 128 : 32
  const prefixLen = bits === undefined ? whole : Number(bits)
  const own = { addressPrefix, prefixLen }
  if (address instanceof ipaddr.IPv6) {
    if (!address.isIPv4MappedAddress() || prefixLen < 96) return [own]
    return [own, { addressPrefix: address.toIPv4Address().toString(), prefixLen: prefixLen - 96 }]
  }
  return isFromHeader ? [own, { addressPrefix: `::ffff:${address.toString()}`, prefixLen: prefixLen + 96 }] : [own]
}

/** Returns the address of a connection as Envoy reports it. */
export function ofConnection(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : address
}

/** Whether an address is in the range of a rule's value. */
export function isInRange(value: string, address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  return rangesOf(value, true).some(({ addressPrefix, prefixLen }) => {
    const start = ipaddr.parse(addressPrefix)
    return start.kind() === parsed.kind() && parsed.match(start as never, prefixLen)
  })
}
