/** Probes the application on behalf of the orchestrator (docs/agent.md, H7): by HTTP, by a TCP connection, or by a gRPC call. */
import type { IncomingMessage } from 'node:http'
import type { ApplicationProbe, HttpProbe } from '../../../protocols/messages/status.ts'
import { probeHeaders } from '../../../src/health/forwarded-headers.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { FairSlots } from '../../../src/model/fair-slots.ts'
import { isLoopbackHost } from '../../http/loopback.ts'
import { reasonOf, within } from '../../http/single-request.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import { canConnect } from './connect-probe.ts'
import { getLocally } from './local-request.ts'

/**
 * The maximum number of followed redirects, and the maximum bytes and milliseconds for reading the rest of a response. Each piece of it
 * counts as at least `pieceBytes`, because it costs CPU however small it is.
 */
const limits = { redirects: 10, bodyBytes: 65_536, bodyMs: 1000, pieceBytes: 64 }

/** The timeout of a probe that sets none, as the orchestrator's own, in seconds. */
const defaultTimeoutSeconds = 1
/** The maximum number of calls of one probe that are under way, and of those for one client. */
const calls = { most: 32, ofClient: 4 }

/** A call of the application that is under way. */
interface Call {
  readonly status: Promise<number>
  /** Ends the call, which answers 500. */
  readonly end: () => void
  /** The number of requests that wait for it. */
  waiting: number
}

/** A probe with its calls: by client and the headers that are forwarded. Clients share them out fairly. */
interface Probed {
  readonly probe: ApplicationProbe
  readonly calls: Map<string, Call>
  readonly slots: FairSlots<Call>
}

/** Executes the probes of the application. */
export class ApplicationProber {
  readonly #probes: ReadonlyMap<string, Probed>
  readonly #isIpv6Only: boolean
  readonly #ownPort: () => number | undefined
  readonly #log: ScopedLogger
  /** Paths whose last probe failed to execute. Only the first of consecutive failures is logged. */
  readonly #failing = new Set<string>()

  /** `ownPort` returns the port of the status server, to which no redirect is followed. */
  constructor(
    config: { readonly probes: Readonly<Record<string, ApplicationProbe>>; readonly isIpv6Only: boolean },
    ownPort: () => number | undefined,
    log: ScopedLogger,
  ) {
    const probed = (probe: ApplicationProbe): Probed => ({ probe, calls: new Map(), slots: new FairSlots(calls.most, calls.ofClient) })
    this.#probes = new Map(Object.entries(config.probes).map(([path, probe]) => [path, probed(probe)]))
    this.#isIpv6Only = config.isIpv6Only
    this.#ownPort = ownPort
    this.#log = log
  }

  /** Whether a probe is configured for a path. */
  has(path: string): boolean {
    return this.#probes.has(path)
  }

  /**
   * Executes the probe of a path. Resolves with the HTTP status for the prober: the application's own, or 500 when the application could
   * not be probed. Requests of a client that forward the same headers share a call while it is under way. `gone` aborts when the prober disconnects; a
   * call ends when all its probers have.
   */
  async answer(path: string, request: IncomingMessage, gone: AbortSignal): Promise<number> {
    const probed = this.#probes.get(path)
    if (!probed) return 400
    const client = clientKey(request.socket.remoteAddress)
    const key = JSON.stringify([client, ...probeHeaders(request.rawHeaders, [], '')])
    const call = probed.calls.get(key) ?? this.#called(path, probed, { client, key, request })
    call.waiting++
    const leave = () => {
      if (--call.waiting === 0) call.end()
    }
    gone.addEventListener('abort', leave)
    return call.status.finally(() => gone.removeEventListener('abort', leave))
  }

  /** Begins a call. Where there are too many, the oldest call of the client with the most calls ends. */
  #called(path: string, probed: Probed, { client, key, request }: { client: string; key: string; request: IncomingMessage }): Call {
    const over = new AbortController()
    const ms = 1000 * (probed.probe.timeoutSeconds || defaultTimeoutSeconds)
    const running = within(ms, over.signal, (signal) => this.#probe(probed.probe, request, signal))
    const call: Call = { status: this.#outcome(path, running, over.signal), end: () => over.abort(), waiting: 0 }
    const leaving = probed.slots.take(client, call)
    leaving?.end()
    probed.calls.set(key, call)
    const ended = () => {
      probed.slots.release(call)
      if (probed.calls.get(key) === call) probed.calls.delete(key)
    }
    void call.status.finally(ended)
    over.signal.addEventListener('abort', ended)
    return call
  }

  async #outcome(path: string, running: Promise<number>, over: AbortSignal): Promise<number> {
    try {
      const status = await running
      this.#failing.delete(path)
      return status
    } catch (error) {
      if (over.aborted) return 500
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
    if (portOf(first) === this.#ownPort() && first.pathname.startsWith('/app-health/')) throw new Error('it leads to a probe of this server')
    let url = first
    for (let hop = 0; hop <= limits.redirects; hop++) {
      const isSecure = url.protocol === 'https:'
      const port = portOf(url)
      const headers = probeHeaders(request.rawHeaders, probe.httpHeaders ?? [], url.host)
      const answer = await getLocally({ port, path: url.pathname + url.search, headers, isSecure, isIpv6Only: this.#isIpv6Only }, signal)
      letGo(answer)
      const { statusCode: status = 500, headers: answered } = answer
      if (![301, 302, 303, 307, 308].includes(status) || answered.location === undefined) return status
      const next = URL.parse(answered.location, url.href)
      // A redirect to another host, or to this server, shows that the application responds. Its status cannot be passed on without the
      // `Location` header, so the probe succeeds.
      if (!next || !/^https?:$/.test(next.protocol) || !isLoopbackHost(next.host) || portOf(next) === this.#ownPort()) return 200
      url = next
    }
    throw new Error(`more than ${limits.redirects} redirects`)
  }
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/** Reads the rest of a response within limits, so that the application can finish sending it. */
function letGo(answer: IncomingMessage): void {
  let length = 0
  const timer = deadlineAfter(limits.bodyMs, () => answer.destroy()).unref()
  answer.on('data', (chunk: Buffer) => {
    if ((length += Math.max(chunk.length, limits.pieceBytes)) > limits.bodyBytes) answer.destroy()
  })
  answer.on('error', () => undefined)
  answer.on('close', () => timer.cancel())
}
