/**
 * The metrics page that Prometheus scrapes: metrics of the proxy, the application and the agent, in this order (docs/agent.md, H4 and H5).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AgentMetrics, AgentPage, StatusConfig } from '../../../protocols/messages/status.ts'
import { isMergeable, textFormats } from '../../../src/health/forwarded-headers.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { count } from '../../../src/model/counts.ts'
import { FairSlots } from '../../../src/model/fair-slots.ts'
import { reasonOf, within } from '../../http/single-request.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import { formatFor, mediaTypes } from '../../runtime/metrics-format.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import { copyLines } from './copy-lines.ts'
import { getLocally } from './local-request.ts'

/** The maximum number of concurrent scrapes, of all clients and of one, and the maximum duration of a scrape in milliseconds. */
const pages = { atOnce: 8, ofClient: 2, ms: 60_000 }
/** The default and the maximum scrape timeout, in seconds. The scraper gives its own in a header. */
const scrapeTimeouts = { given: 30, most: 55 }
/** The share of the scrape timeout after which a part is abandoned, so that the other parts arrive in time. */
const shares = { proxy: 0.8, application: 0.9 }

type Part = keyof typeof shares
/** Returns the agent's own metrics. */
type AskMetrics = (page: AgentPage) => Promise<AgentMetrics>

const timeoutHeader = 'x-prometheus-scrape-timeout-seconds'

/** Serves the metrics pages and counts failed parts. */
export class MetricsPage {
  readonly #config: StatusConfig
  readonly #log: ScopedLogger
  readonly #agent: AskMetrics
  readonly #scrapes: Counter
  readonly #failures: Counter<'type'>
  readonly #open = new FairSlots<ServerResponse>(pages.atOnce, pages.ofClient)

  constructor(config: StatusConfig, parts: { readonly log: ScopedLogger; readonly metrics: MetricRegistry; readonly agent: AskMetrics }) {
    this.#config = config
    this.#log = parts.log
    this.#agent = parts.agent
    const registers = [parts.metrics]
    this.#scrapes = new Counter({ name: 'scrapes_total', help: 'total scrapes', registers })
    const help = 'failed scrapes, by the part of the page that is missing or incomplete'
    this.#failures = new Counter({ name: 'scrape_failures_total', help, labelNames: ['type'], registers })
  }

  /**
   * Answers with the metrics of proxy, application and agent. The status is 200 even when parts are missing. Each part is streamed; a page
   * is never buffered as a whole.
   */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#admit(request, response, () => this.#write(request, response))
  }

  /** Answers with the agent's metrics alone, in the format that the client prefers. */
  serveOwn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#admit(request, response, async () => {
      this.#scrapes.inc()
      const format = formatFor(request.headers.accept)
      const page = await this.#own(format)
      if (page === undefined) response.writeHead(500).end()
      else response.writeHead(200, { 'Content-Type': mediaTypes[format] }).end(request.method === 'HEAD' ? undefined : page)
    })
  }

  /** Answers a scrape. Where there are too many, the oldest of the client with the most is ended. */
  async #admit(request: IncomingMessage, response: ServerResponse, answer: () => Promise<void>): Promise<void> {
    this.#open.take(clientKey(request.socket.remoteAddress), response)?.destroy()
    const limit = deadlineAfter(pages.ms, () => response.destroy())
    try {
      // Of many requests that arrive together, only those begin that are left when all have been received.
      await turn()
      if (!response.destroyed) await answer()
    } finally {
      limit.cancel()
      this.#open.release(response)
    }
  }

  async #write(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#scrapes.inc()
    response.writeHead(200, { 'Content-Type': mediaTypes.text })
    if (request.method === 'HEAD') return void response.end()
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const { application, prometheusPort } = this.#config
    const ms = 1000 * scrapeTimeoutOf(request.headers[timeoutHeader])
    const query = /\?.*$/.exec(request.url ?? '')?.[0] ?? ''
    const merge = async (part: Part, port: number, path: string) => {
      const headers = scrapeHeaders(request, port)
      const came = within(ms * shares[part], gone.signal, (signal) => this.#get({ port, path, headers }, signal, turns[part].promise, response))
      await came.catch((error: unknown) => this.#failed(part, reasonOf(error))).finally(() => turns[part].over())
    }
    // Both parts are requested at once. The application's response is read when the proxy's part has been written.
    const turns = { proxy: queued(), application: queued() }
    turns.proxy.begin()
    const merged = [merge('proxy', prometheusPort, `/stats/prometheus${query}`)]
    if (application) merged.push(merge('application', application.port, application.path))
    await turns.proxy.ended
    turns.application.begin()
    await Promise.all(merged)
    if (response.destroyed) return
    response.end(await this.#own('shared'))
  }

  async #get(
    { port, path, headers }: { readonly port: number; readonly path: string; readonly headers: string[] },
    signal: AbortSignal,
    turn: Promise<void>,
    response: ServerResponse,
  ): Promise<void> {
    const answer = await getLocally({ port, path, headers, isIpv6Only: this.#config.isIpv6Only }, signal)
    try {
      const { 'content-type': type, 'content-encoding': encoding } = answer.headers
      if (answer.statusCode !== 200) throw new Error(`HTTP status ${answer.statusCode}`)
      if (!isMergeable(type, encoding)) throw new Error(`the answer is not in a Prometheus text format: ${`${type} ${encoding ?? ''}`.slice(0, 200)}`)
      await turn
      await copyLines(answer, response)
    } finally {
      answer.destroy()
    }
  }

  async #own(page: AgentPage): Promise<string | undefined> {
    try {
      const { text, silent } = await this.#agent(page)
      if (silent > 0) this.#failed('agent', `${count(silent, 'actor')} did not answer`)
      return text
    } catch (error) {
      this.#failed('agent', reasonOf(error))
      return undefined
    }
  }

  #failed(type: Part | 'agent', reason: string): void {
    this.#failures.inc({ type })
    this.#log.warn(`metrics of the ${type} are missing in a scrape: ${reason}`)
  }
}

/** Resolves in the next turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Orders two parts: `promise` resolves with `begin`, `ended` with `over`. */
function queued(): { begin(): void; over(): void; readonly promise: Promise<void>; readonly ended: Promise<void> } {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  return { begin: begun.resolve, over: ended.resolve, promise: begun.promise, ended: ended.promise }
}

/** Returns the scrape timeout in seconds. */
function scrapeTimeoutOf(header: string | string[] | undefined): number {
  const seconds = Number(header)
  return seconds > 0 ? Math.min(seconds, scrapeTimeouts.most) : scrapeTimeouts.given
}

function scrapeHeaders({ headers }: IncomingMessage, port: number): string[] {
  const forwarded = (['user-agent', timeoutHeader] as const).flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [name, value] : []
  })
  const own = ['Host', `localhost:${port}`, 'Connection', 'close', 'Accept', textFormats(headers.accept), 'Accept-Encoding', 'identity']
  return [...own, ...forwarded]
}
