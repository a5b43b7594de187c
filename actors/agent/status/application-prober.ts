/** Probes the application on behalf of the orchestrator (docs/agent.md, H7): by HTTP, by a TCP connection, or by a gRPC call. */
import type { IncomingMessage } from 'node:http'
import type { ApplicationProbe, HttpProbe } from '../../../protocols/messages/status.ts'
import { probeHeaders } from '../../../src/health/forwarded-headers.ts'
import { isLoopbackHost } from '../../http/loopback.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import { canConnect } from './connect-probe.ts'
import { getLocally, reasonOf, within } from './local-request.ts'

/** The maximum number of followed redirects, and the maximum bytes and milliseconds for reading the rest of a response. */
const limits = { redirects: 10, bodyBytes: 65_536, bodyMs: 1000 }

/** Executes the probes of the application. */
export class ApplicationProber {
  readonly #probes: ReadonlyMap<string, ApplicationProbe>
  readonly #isIpv6Only: boolean
  readonly #log: ScopedLogger
  /** Paths whose last probe failed to execute. Only the first of consecutive failures is logged. */
  readonly #failing = new Set<string>()

  constructor(config: { readonly probes: Readonly<Record<string, ApplicationProbe>>; readonly isIpv6Only: boolean }, log: ScopedLogger) {
    this.#probes = new Map(Object.entries(config.probes))
    this.#isIpv6Only = config.isIpv6Only
    this.#log = log
  }

  /** Whether a probe is configured for a path. */
  has(path: string): boolean {
    return this.#probes.has(path)
  }

  /**
   * Executes the probe of a path. Resolves with the HTTP status for the prober: the application's own, or 500 when the application could
   * not be probed. `gone` aborts when the prober disconnects.
   */
  async answer(path: string, request: IncomingMessage, gone: AbortSignal): Promise<number> {
    const probe = this.#probes.get(path)
    if (!probe) return 400
    const ms = probe.timeoutSeconds ? probe.timeoutSeconds * 1000 : Number.POSITIVE_INFINITY
    try {
      const status = await within(ms, gone, (signal) => this.#probe(probe, request, signal))
      this.#failing.delete(path)
      return status
    } catch (error) {
      if (!this.#failing.has(path)) this.#log.warn(`probe ${path} of the application failed: ${reasonOf(error)}`)
      this.#failing.add(path)
      return 500
    }
  }

  async #probe({ httpGet, tcpSocket, grpc }: ApplicationProbe, request: IncomingMessage, signal: AbortSignal): Promise<number> {
    if (httpGet) return this.#get(httpGet, request, signal)
    if (tcpSocket) return canConnect({ port: tcpSocket.port, isIpv6Only: this.#isIpv6Only }, signal).then(() => 200)
    // Imported only when such a probe is configured, because it needs an HTTP/2 client.
    const { checkHealth } = await import('./grpc-probe.ts')
    const { port = 0, service = '' } = grpc ?? {}
    const userAgent = request.headers['user-agent']
    return (await checkHealth({ port, service, userAgent, isIpv6Only: this.#isIpv6Only }, signal)) ? 200 : 500
  }

  async #get(probe: HttpProbe, request: IncomingMessage, signal: AbortSignal): Promise<number> {
    const path = probe.path ?? ''
    const first = URL.parse(`${probe.scheme?.toLowerCase() || 'http'}://localhost:${probe.port}${path.startsWith('/') ? '' : '/'}${path}`)
    if (!first) throw new Error(`${JSON.stringify(path)} is no path`)
    let url = first
    for (let hop = 0; hop <= limits.redirects; hop++) {
      const isSecure = url.protocol === 'https:'
      const port = Number(url.port || (isSecure ? 443 : 80))
      const headers = probeHeaders(request.rawHeaders, probe.httpHeaders ?? [], url.host)
      const answer = await getLocally({ port, path: url.pathname + url.search, headers, isSecure, isIpv6Only: this.#isIpv6Only }, signal)
      letGo(answer)
      const { statusCode: status = 500, headers: answered } = answer
      if (![301, 302, 303, 307, 308].includes(status) || answered.location === undefined) return status
      const next = URL.parse(answered.location, url.href)
      // A redirect to another host shows that the application responds. Its status cannot be passed on without the `Location` header, so
      // the probe succeeds.
      if (!next || !/^https?:$/.test(next.protocol) || !isLoopbackHost(next.host)) return 200
      url = next
    }
    throw new Error(`more than ${limits.redirects} redirects`)
  }
}

/** Reads the rest of a response within limits, so that the application can finish sending it. */
function letGo(answer: IncomingMessage): void {
  let length = 0
  const timer = deadlineAfter(limits.bodyMs, () => answer.destroy()).unref()
  answer.on('data', (chunk: Buffer) => {
    if ((length += chunk.length) > limits.bodyBytes) answer.destroy()
  })
  answer.on('error', () => undefined)
  answer.on('close', () => timer.cancel())
}
