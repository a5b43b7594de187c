/** HTTP requests to ports of this machine: to the proxy's admin interface, to its metrics, to the application. Over `node:http` alone, which costs an agent least. */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { loopbackLookup } from '../../http/loopback.ts'
import { refuseUpgrade } from '../../http/refused-upgrade.ts'
import { deadlineAfter } from '../../runtime/timers.ts'

/** One request. */
export interface LocalRequest {
  readonly port: number
  /** With its query. */
  readonly path: string
  /** Name and value by turns, `Host` among them. */
  readonly headers: readonly string[]
  /** Over TLS; the certificate is not verified. */
  readonly isSecure?: boolean
  /** Host that is connected to; this machine when it is left out. */
  readonly host?: string
  readonly isIpv6Only: boolean
}

/** Sends a GET. Resolves with the answer once its head is there. Rejects with the reason, also when the signal is aborted. */
export async function getLocally(
  { port, path, headers, isSecure, host = 'localhost', isIpv6Only }: LocalRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const isHere = host === 'localhost'
  const options: RequestOptions = { host, port, path, headers, signal, agent: false, ...(isHere ? { lookup: loopbackLookup(isIpv6Only) } : {}) }
  const { request, ...more } = isSecure ? { request: (await import('node:https')).request, rejectUnauthorized: false } : { request: httpRequest }
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...options, ...more }, resolve)
    outgoing.on('error', (error) => reject(new Error(reasonOf(error))))
    refuseUpgrade(outgoing, reject)
    outgoing.end()
  })
}

/** What went wrong; where both families were tried, for the first of them. */
export function reasonOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? error.errors : [error]
  return first instanceof Error ? first.message || first.name : String(first)
}

/** Runs something that is aborted after so many milliseconds (never when that is infinite), and when `gone` is aborted. */
export async function within<T>(ms: number, gone: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController()
  const leave = () => end.abort(new Error('nobody waits for the answer any more'))
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
