/** Selects the protocol of a port (docs/resources.md, S5), and the properties of protocols. */
import type { Protocol } from '../../protocols/data.ts'

const named: readonly Protocol[] = ['udp', 'tcp', 'tls', 'https', 'http', 'http2', 'grpc', 'grpc-web', 'mongo', 'redis', 'mysql', 'thrift']
const known: ReadonlyMap<string, Protocol> = new Map(named.map((protocol) => [protocol, protocol]))

/** Well-known ports of protocols in which the server sends first. Sniffing there would wait for a client that waits for the server. */
const serverFirstPorts = new Set([25, 53, 3306, 27_017])

/** Selects the protocol of a port by its declared protocol if any, otherwise by its name, otherwise by its number. */
export function selectProtocol(declared: string | undefined, name: string, number: number): Protocol {
  const explicit = known.get((declared ?? '').toLowerCase())
  if (explicit) return explicit
  const lower = name.toLowerCase()
  const prefix = lower.startsWith('grpc-web') ? 'grpc-web' : (lower.split('-')[0] as string)
  const byName = known.get(prefix)
  if (byName) return byName
  return serverFirstPorts.has(number) ? 'tcp' : 'unknown'
}

/** Whether requests of the protocol are routed as HTTP. */
export function isHttp(protocol: Protocol): boolean {
  return protocol === 'http' || protocol === 'http2' || protocol === 'grpc' || protocol === 'grpc-web'
}

/** Whether the protocol is HTTP/2 on the wire. */
export function isHttp2(protocol: Protocol): boolean {
  return protocol === 'http2' || protocol === 'grpc' || protocol === 'grpc-web'
}

/** Whether the protocol is TLS that the proxy does not terminate. */
export function isOpaqueTls(protocol: Protocol): boolean {
  return protocol === 'tls' || protocol === 'https'
}

/** Whether the server may send first. Such a port cannot share a listener with a sniffed one. */
export function isServerFirst(protocol: Protocol): boolean {
  return protocol === 'mongo' || protocol === 'mysql'
}

const plainHttp: ReadonlySet<string> = new Set(['HTTP', 'HTTP2', 'GRPC', 'GRPC-WEB'])

/** Whether a Gateway server with this protocol accepts plaintext HTTP. */
export const isPlainHttp = (protocol: string): boolean => plainHttp.has(protocol.toUpperCase())
