/**
 * HTTP requests to ports of this machine: the proxy's admin interface, its metrics, the application. Uses only `node:http`, which adds the
 * least memory and CPU to an agent.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { loopbackLookup } from '../../http/loopback.ts'
import { reasonOf, send } from '../../http/single-request.ts'
import { httpsClient } from '../../http/tls-client.ts'

/** One request. */
export interface LocalRequest {
  readonly port: number
  /** The path with its query. */
  readonly path: string
  /** Alternating names and values, `Host` included. */
  readonly headers: readonly string[]
  /** Whether to use TLS. The certificate is not verified. */
  readonly isSecure?: boolean
  /** The host to connect to. Defaults to this machine. */
  readonly host?: string
  readonly isIpv6Only: boolean
}

/**
 * Sends a GET request. Resolves with the response when its headers have arrived. Rejects with the reason, also when the signal is aborted.
 */
export async function getLocally(
  { port, path, headers, isSecure, host = 'localhost', isIpv6Only }: LocalRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const isHere = host === 'localhost'
  const address = { host, port, ...(isHere ? { lookup: loopbackLookup(isIpv6Only) } : {}) }
  const client = isSecure ? await httpsClient(address, { rejectUnauthorized: false, servername: serverName(headers) }) : {}
  return send({ ...address, path, headers, ...client }, signal).catch((error: unknown) => {
    throw new Error(reasonOf(error))
  })
}

/** Returns the name in the `Host` header; empty for an address or without the header. */
function serverName(headers: readonly string[]): string {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host')
  const name = URL.parse(`https://${headers[at + 1] ?? ''}`)?.hostname ?? ''
  return at < 0 || isIP(name.replace(/^\[|\]$/g, '')) ? '' : name
}
