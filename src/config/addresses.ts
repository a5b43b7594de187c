/** IP addresses and CIDR blocks as Envoy reads them: four decimal parts, or IPv6 without a zone. */
import ipaddr from 'ipaddr.js'

/** Whether text is an IP address. */
export function isIp(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))
}

/** Whether text is an IP address, or one with a prefix length. */
export function isIpOrCidr(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  if (more !== undefined || !isIp(address)) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (address.includes(':') ? 128 : 32))
}
