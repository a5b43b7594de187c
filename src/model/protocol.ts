/** Which protocol a port speaks (docs/resources.md, S5), and what follows from it. */
import type { Protocol } from '../../protocols/data.ts'

const named: readonly Protocol[] = ['udp', 'tcp', 'tls', 'https', 'http', 'http2', 'grpc', 'grpc-web', 'mongo', 'redis', 'mysql', 'thrift']
const known: ReadonlyMap<string, Protocol> = new Map(named.map((protocol) => [protocol, protocol]))

/** Ports where the server speaks first: sniffing would wait for a client that waits too. */
const serverFirstPorts = new Set([25, 53, 3306, 27_017])

/** The protocol of a port, from its declared protocol if any, else from its name, else from its number. */
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

/** Whether the protocol is TLS that the proxy does not end. */
export function isOpaqueTls(protocol: Protocol): boolean {
  return protocol === 'tls' || protocol === 'https'
}

/** Whether the server may speak first, so that the port can share a listener with no sniffed one. */
export function isServerFirst(protocol: Protocol): boolean {
  return protocol === 'mongo' || protocol === 'mysql'
}

const plainHttp: ReadonlySet<string> = new Set(['HTTP', 'HTTP2', 'GRPC', 'GRPC-WEB'])

/** Whether a server of a Gateway with this protocol takes requests in plain text. */
export const isPlainHttp = (protocol: string): boolean => plainHttp.has(protocol.toUpperCase())
