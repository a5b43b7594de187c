/** Which addresses and names mean this machine and nobody else. */
import { isIP } from 'node:net'

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
