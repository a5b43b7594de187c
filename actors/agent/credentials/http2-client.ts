/** Connections of HTTP/2 to discovery and to the certificate authority: where to, how they are verified, why they fail. */
import type { SecureClientSessionOptions } from 'node:http2'
import { isIP } from 'node:net'
import { getCACertificates } from 'node:tls'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { PairText } from './credential-file.ts'

/** With what the agent shows who it is, and what it verifies a server with; PEM. */
export interface ConnectionCredentials {
  readonly pair: PairText | undefined
  /** Undefined for the roots of the system. */
  readonly roots: readonly string[] | undefined
}

/** The URL of a server, as `connect` of `node:http2` takes it. */
export function urlOf({ host, port, isPlain }: ServerAddress): string {
  return `${isPlain ? 'http' : 'https'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}

/** What `connect` is told of TLS: 1.2 or newer, name and roots of the server, the client's own certificate. Nothing for a server without TLS. */
export function tlsOptions({ serverName, isPlain }: ServerAddress, { pair, roots }: ConnectionCredentials): SecureClientSessionOptions {
  if (isPlain) return {}
  return {
    minVersion: 'TLSv1.2',
    // A name that is an address is compared with the addresses of the certificate, and not sent (RFC 6066, 3).
    ...(isIP(serverName) ? {} : { servername: serverName }),
    ca: roots ? [...roots] : getCACertificates('system'),
    ...(pair ? { cert: pair.chain, key: pair.key } : {}),
  }
}

/** Why a connection or a stream has failed. A stream that never began names the error of its connection as its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, name } = error.cause instanceof Error ? error.cause : error
  return message || name
}
