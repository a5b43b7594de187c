/**
 * HTTP requests to ports of this machine: the proxy's admin interface, its metrics, the application. Uses only `node:http`, which adds the
 * least memory and CPU to an agent.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { loopbackLookup } from '../../http/loopback.ts'
import { refuseUpgrade } from '../../http/refused-upgrade.ts'
import { httpsClient } from '../../http/tls-client.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

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
  const { request, ...connection } = isSecure
    ? await httpsClient(address, { rejectUnauthorized: false, servername: serverName(headers) })
    : { request: httpRequest, agent: false }
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...address, path, headers, signal, ...connection }, resolve)
    outgoing.on('error', (error) => reject(new Error(reasonOf(error))))
    refuseUpgrade(outgoing, reject)
    outgoing.end()
  })
}

/** Returns the name in the `Host` header; empty for an address or without the header. */
function serverName(headers: readonly string[]): string {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host')
  const name = URL.parse(`https://${headers[at + 1] ?? ''}`)?.hostname ?? ''
  return at < 0 || isIP(name.replace(/^\[|\]$/g, '')) ? '' : name
}

/** Returns the message of an error. When both address families were tried, that of the first. */
export function reasonOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? error.errors : [error]
  return first instanceof Error ? first.message || first.name : String(first)
}

/**
 * Runs an operation with a signal that is aborted after `ms` milliseconds (never when infinite) and when `gone` is aborted. Rejects with
 * the reason of the abort.
 */
export async function within<T>(ms: number, gone: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController()
  const leave = () => end.abort(new Error('the caller no longer waits for the answer'))
  const timer = Number.isFinite(ms) ? deadlineAfter(ms, () => end.abort(new Error(`no answer within ${ms} ms`))) : undefined
  gone?.addEventListener('abort', leave)
  if (gone?.aborted) leave()
  try {
    return await run(end.signal)
  } catch (error) {
    throw end.signal.aborted ? end.signal.reason : error
  } finally {
    timer?.cancel()
    gone?.removeEventListener('abort', leave)
  }
}
