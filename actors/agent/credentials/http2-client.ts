/** HTTP/2 connections to discovery and to the certificate authority: URL, TLS options, and error texts. */
import type { SecureClientSessionOptions } from 'node:http2'
import { isIP } from 'node:net'
import { getCACertificates } from 'node:tls'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { PairText } from './credential-file.ts'

/** The client certificate of a connection and the roots that verify the server; PEM. */
export interface ConnectionCredentials {
  readonly pair: PairText | undefined
  /** Undefined for the roots of the system. */
  readonly roots: readonly string[] | undefined
}

/** Returns the URL of a server for `connect` of `node:http2`. */
export function urlOf({ host, port, isPlain }: ServerAddress): string {
  return `${isPlain ? 'http' : 'https'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}

/**
 * Returns the TLS options of a connection: TLS 1.2 or newer, the server's name and roots, the client certificate. Empty for a server
 * without TLS.
 */
export function tlsOptions({ serverName, isPlain }: ServerAddress, { pair, roots }: ConnectionCredentials): SecureClientSessionOptions {
  if (isPlain) return {}
  return {
    minVersion: 'TLSv1.2',
    // An IP address is compared with the addresses in the certificate and is not sent as SNI (RFC 6066, 3).
    ...(isIP(serverName) ? {} : { servername: serverName }),
    ca: roots ? [...roots] : getCACertificates('system'),
    ...(pair ? { cert: pair.chain, key: pair.key } : {}),
  }
}

/** Returns why a connection or a stream failed. For a stream that never began this is the error of its connection, its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, name } = error.cause instanceof Error ? error.cause : error
  return message || name
}
