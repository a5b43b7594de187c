/**
 * The agent's status server as an actor: readiness of the proxy, merged metrics, probes of the application, and shutdown of the agent on
 * request (docs/agent.md, "Status"). Emits `HealthChanged` to the relay. Asks: `state`, {@link StatusState}; `stopListening`, called when
 * the agent begins to shut down. Asks its supervisor for what {@link statusAsks} names. Uses only `node:http`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HealthChanged } from '../../../protocols/messages/health.ts'
import { type AgentMetrics, type StatusConfig, type StatusState, statusAsks } from '../../../protocols/messages/status.ts'
import { HttpServer } from '../../http/http-server.ts'
import { isOperator } from '../../http/loopback.ts'
import { PeerPrograms } from '../../http/peer-programs.ts'
import { reasonOf } from '../../http/single-request.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import type { Peer } from '../../runtime/link.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { ApplicationProber } from './application-prober.ts'
import { MetricsPage } from './metrics-page.ts'
import { ProxyReadiness } from './proxy-readiness.ts'
import { WorkloadProber } from './workload-prober.ts'

/** The maximum number of connections, and the timeout for receiving a request, in milliseconds. */
const limits = { connections: 512, requestMs: 10_000 }
/** The delay before another attempt to listen, in milliseconds. */
const listenAgainMs = 1000

class StatusServer implements Behaviour<never, HealthChanged> {
  readonly asks = { state: () => this.#state(), stopListening: () => this.#stopListening() }
  readonly #context: ActorContext<StatusConfig>
  readonly #log: ScopedLogger
  readonly #server: HttpServer
  readonly #readiness: ProxyReadiness
  readonly #prober: ApplicationProber
  readonly #page: MetricsPage
  readonly #workload: WorkloadProber | undefined
  readonly #peers: PeerPrograms
  readonly #relays = new Set<Peer<HealthChanged>>()
  #listenAgain: Timer | undefined
  #isEnding = false

  constructor(context: ActorContext<StatusConfig>) {
    const { config, metrics } = context
    this.#context = context
    this.#log = context.log('healthcheck')
    this.#readiness = new ProxyReadiness(config, { log: this.#log, metrics })
    this.#prober = new ApplicationProber(config, () => this.#server.port, this.#log)
    this.#page = new MetricsPage(config, { log: this.#log, metrics, agent: (page) => context.ask<AgentMetrics>(statusAsks.metrics, page) })
    this.#server = new HttpServer((request, response) => this.#serve(request, response), limits)
    this.#peers = new PeerPrograms({ startedBy: () => context.ask<number | undefined>(statusAsks.proxy) })
    const { workloadProbe: probe, isIpv6Only } = config
    this.#workload =
      probe &&
      new WorkloadProber({
        probe,
        isIpv6Only,
        proxy: () => this.#readiness.check(),
        log: this.#log,
        changed: (event) => {
          for (const relay of this.#relays) relay.tell(event, 'health')
        },
      })
  }

  /** Starts to listen. A failure is logged as an error and retried, because the agent can serve its proxy without this server. */
  async listen(): Promise<this> {
    const { port } = this.#context.config
    if (port === undefined || this.#isEnding) return this
    try {
      await this.#server.listen(undefined, port)
      this.#log.info(`status server listens on port ${this.#server.port}`)
    } catch (error) {
      if (!this.#listenAgain) this.#log.error(`status server cannot listen on port ${port}, retrying: ${reasonOf(error)}`)
      this.#listenAgain = after(listenAgainMs, () => void this.listen())
    }
    return this
  }

  receive(): void {}

  linked(peer: Peer<HealthChanged>): void {
    this.#relays.add(peer)
    if (this.#workload?.last) peer.tell(this.#workload.last, 'health')
  }

  unlinked(peer: Peer<HealthChanged>): void {
    this.#relays.delete(peer)
  }

  async drain(): Promise<void> {
    this.#workload?.stop()
    this.#stopListening()
    await this.#server.close()
  }

  /** Stops accepting connections. Requests on open connections are still answered. */
  #stopListening(): void {
    this.#isEnding = true
    this.#listenAgain?.cancel()
    this.#server.stopListening()
  }

  #state(): StatusState {
    const { ready, reason } = this.#readiness
    return { port: this.#server.port, ready, reason, healthy: this.#workload?.last?.healthy }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // Request bodies are discarded.
    request.resume()
    this.#answer(request, response).catch((error: unknown) => {
      this.#log.warn(`answering a ${request.method} request failed: ${reasonOf(error)}`)
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = URL.parse(request.url ?? '', 'http://localhost')?.pathname
    if (path === '/healthz/ready') {
      const reason = await this.#readiness.check()
      response.writeHead(reason === undefined ? 200 : 503).end()
    } else if (path === '/stats/prometheus') await this.#page.serve(request, response)
    else if (path === '/metrics') await this.#page.serveOwn(request, response)
    else if (path === '/quitquitquit') await this.#quit(request, response)
    else if (path?.startsWith('/app-health/')) await this.#probe(path, request, response)
    else response.writeHead(404).end(path?.startsWith('/debug/pprof') ? 'profiles are not served here' : undefined)
  }

  async #probe(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#prober.has(path)) return void response.writeHead(400, plain).end('there is no probe of the application at this path')
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    response.writeHead(await this.#prober.answer(path, request, gone.signal)).end()
  }

  async #quit(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refuse = (status: number, reason: string) => void response.writeHead(status, plain).end(reason)
    if (!isOperator(request)) return refuse(403, onlyLocal)
    if (request.method !== 'POST') return void response.writeHead(405, { ...plain, Allow: 'POST' }).end('ending the agent needs the method POST')
    const peer = await this.#peers.of(request.socket)
    if (peer === 'elsewhere') return refuse(403, onlyLocal)
    if (peer === 'suspect') {
      this.#log.warn('/quitquitquit refused to the proxy, which passes requests of others on')
      return refuse(403, 'the proxy may not end the agent, because it passes requests of others on')
    }
    if (peer === 'busy') return refuse(503, 'which program asks was not found out in time: ask again, or send the agent SIGTERM')
    response.writeHead(200, plain).end('OK')
    this.#context
      .ask(statusAsks.quit, 'asked by /quitquitquit')
      .catch((error: unknown) => this.#log.error(`the agent cannot be ended by /quitquitquit: ${reasonOf(error)}`))
  }
}

const onlyLocal = 'only clients on this machine may end the agent'
const plain = { 'Content-Type': 'text/plain; charset=utf-8' }

/** Definition of the actor. */
export const actor: ActorDefinition<StatusConfig, never, HealthChanged> = {
  kind: 'status',
  start: (context) => new StatusServer(context).listen(),
}
