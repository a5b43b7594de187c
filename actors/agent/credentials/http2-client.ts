/** HTTP/2 connections to discovery and to the certificate authority, and their error texts. */
import { type ClientHttp2Session, type ClientSessionOptions, connect } from 'node:http2'
import { isIP } from 'node:net'
import { type ConnectionOptions, getCACertificates } from 'node:tls'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { connectSoon } from '../../http/tcp-client.ts'
import { connectBounded } from '../../http/tls-client.ts'
import type { PairText } from './credential-file.ts'

/** The client certificate of a connection and the roots that verify the server; PEM. */
export interface ConnectionCredentials {
  readonly pair: PairText | undefined
  /** Undefined for the roots of the system. */
  readonly roots: readonly string[] | undefined
}

/**
 * Opens an HTTP/2 connection, which the server has to accept soon: over TLS 1.2 or newer with the server's name and roots and the client certificate, and with bounds on what
 * the server may send before the handshake is done; or in plain text.
 */
export function connectSession(address: ServerAddress, options: ClientSessionOptions, { pair, roots }: ConnectionCredentials): ClientHttp2Session {
  const { host, port, serverName, isPlain } = address
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  if (isPlain) return connect(`http://${authority}`, { ...options, createConnection: () => connectSoon({ host, port }) })
  const tls: ConnectionOptions = {
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2'],
    // An IP address is compared with the addresses in the certificate and is not sent as SNI (RFC 6066, 3).
    ...(isIP(serverName) ? {} : { servername: serverName }),
    ca: roots ? [...roots] : getCACertificates('system'),
    ...(pair ? { cert: pair.chain, key: pair.key } : {}),
  }
  return connect(`https://${authority}`, {
    ...options,
    createConnection: () => connectBounded({ host, port }, tls, { connection: connectSoon({ host, port }) }),
  })
}

/** Returns why a connection or a stream failed. For a stream that never began this is the error of its connection, its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, name } = error.cause instanceof Error ? error.cause : error
  return message || name
}
