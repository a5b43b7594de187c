/** Recognizes addresses and names that refer to this machine only. */
import type { IncomingMessage } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'

/** Whether an address is a loopback address (127.0.0.0/8, ::1), including IPv4-mapped IPv6 addresses. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false
  const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  return bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}

/**
 * Whether the header `Host` names this machine: a loopback address, or `localhost` or a subdomain of it, which always resolve to loopback
 * addresses (RFC 6761, 6.3).
 */
export function isLoopbackHost(host: string): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase().replace(/\.$/, '')
  if (name === undefined) return false
  return name === 'localhost' || name.endsWith('.localhost') || isLoopbackAddress(name.replace(/^\[(.*)\]$/, '$1'))
}

/**
 * Resolves every name to the loopback addresses, without a resolver: IPv4 first, or IPv6 first on request. Node tries the second address
 * when the first refuses, so a server on either one is found.
 */
export const loopbackLookup =
  (isIpv6First: boolean): LookupFunction =>
  (_name, { all }, done) => {
    const both = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]
    const [first, second] = isIpv6First ? both.reverse() : both
    if (all) done(null, [first as (typeof both)[0], second as (typeof both)[0]])
    else done(null, (first as (typeof both)[0]).address, (first as (typeof both)[0]).family)
  }

/**
 * The source address that sidecars use for connections to their own workload on behalf of others (`upstreamBindConfig` of inbound
 * clusters).
 */
const passedOn = /^(127\.0\.0\.6|::ffff:127\.0\.0\.6|::6)$/i

/** Whether a connection was made by a sidecar on behalf of another client. */
export const isPassedOn = (remoteAddress: string | undefined): boolean => passedOn.test(remoteAddress ?? '')

/**
 * Whether a request can only come from a local program that intends to call this server: client address and `Host` are local, no sidecar
 * has forwarded it, and no page of another site made a browser send it.
 */
export function isOperator({ headers, socket }: IncomingMessage): boolean {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers
  if (!isLoopbackAddress(socket.remoteAddress) || isPassedOn(socket.remoteAddress) || !isLoopbackHost(host)) return false
  return (origin === undefined || isLoopbackHost(URL.parse(origin)?.host ?? '')) && (site === 'none' || site === 'same-origin')
}
