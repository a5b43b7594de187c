/** Which addresses and names mean this machine and nobody else. */
import type { IncomingMessage } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'

/** Whether an address is a loopback address (127.0.0.0/8, ::1), also an IPv4 address as a socket of both families tells it. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false
  const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  return bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}

/** Whether the header `Host` names this machine: a loopback address, or `localhost` and what is below it, which resolve to nothing else (RFC 6761, 6.3). */
export function isLoopbackHost(host: string): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase().replace(/\.$/, '')
  if (name === undefined) return false
  return name === 'localhost' || name.endsWith('.localhost') || isLoopbackAddress(name.replace(/^\[(.*)\]$/, '$1'))
}

/**
 * Resolves any name to the addresses of this machine, without asking a resolver: IPv4 first, unless the machine has none. Node tries the
 * second where nobody listens on the first, so a server is found that listens on either.
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

/** Source address of connections that a sidecar makes to its own workload for others (`upstreamBindConfig` of its inbound clusters). */
const passedOn = /^(127\.0\.0\.6|::ffff:127\.0\.0\.6|::6)$/i

/** Whether a connection from an address was made by a sidecar for others. */
export const isPassedOn = (remoteAddress: string | undefined): boolean => passedOn.test(remoteAddress ?? '')

/**
 * Whether a request can only come from a program of this machine that means this server: its address and the name that it asks for are of
 * this machine, the sidecar has not passed it on, and no page of another site has made a browser send it.
 */
export function isOperator({ headers, socket }: IncomingMessage): boolean {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers
  if (!isLoopbackAddress(socket.remoteAddress) || isPassedOn(socket.remoteAddress) || !isLoopbackHost(host)) return false
  return (origin === undefined || isLoopbackHost(URL.parse(origin)?.host ?? '')) && (site === 'none' || site === 'same-origin')
}
