/** The status server of an agent under test, with the servers that it calls. */
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo, Server as TcpServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { actor } from '../../actors/agent/status/status-server.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { StatusConfig, StatusState } from '../../protocols/messages/status.ts'
import { startActor } from './actor.ts'
import { labelText } from './metric-text.ts'

/** Answers of the proxy's admin interface to the query for its configuration, and to that for its state. */
export const configured = 'cluster_manager.cds.update_success: 1\nlistener_manager.lds.update_success: 1\n'
export const running = 'listener_manager.workers_started: 1\nserver.state: 0\n'

/** An answer that changes the protocol without a request. */
export const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: IncomingMessage['headers']
}

/** Starts status servers, and the servers of proxy and application. */
export class StatusFixture {
  readonly #servers: { close(): unknown; closeAllConnections?(): void }[] = []
  readonly #actors: Behaviour<never, HealthChanged>[] = []
  #logged: LogRecord[] = []
  #registry = new MetricRegistry()
  /** The questions to the supervisor. */
  readonly asked: string[] = []
  /** The answer to the question for the process of the proxy. */
  proxyPid: number | undefined
  /** Answers the question for the metrics of the agent. */
  agentMetrics: (page: unknown) => Promise<unknown> = async () => ({ text: 'agent 1\n', silent: 0 })

  /** Ends all servers. */
  async dispose(): Promise<void> {
    await Promise.all(this.#actors.splice(0).map((started) => started.drain?.()))
    for (const server of this.#servers.splice(0)) {
      server.close()
      server.closeAllConnections?.()
    }
  }

  /** Makes a server listen on a free port, and returns the port. */
  async listening(server: Server | TcpServer, host = '127.0.0.1'): Promise<number> {
    this.#servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    return (server.address() as AddressInfo).port
  }

  /** Starts an HTTP server and returns its port. */
  serve(listener: RequestListener, host?: string): Promise<number> {
    return this.listening(createServer(listener), host)
  }

  /** Starts an admin interface of a proxy that is ready, and returns its port. */
  serveReadyProxy(): Promise<number> {
    return this.serve((incoming, response) => response.end(incoming.url?.includes('server') ? running : configured))
  }

  /** Starts a status server. */
  async start(changes: Partial<StatusConfig> = {}) {
    const config: StatusConfig = {
      port: 0,
      adminPort: 1,
      prometheusPort: 1,
      isIpv6Only: false,
      application: undefined,
      probes: {},
      workloadProbe: undefined,
      ...changes,
    }
    const ask = async (question: string, page?: unknown) => {
      this.asked.push(question)
      return question === 'metrics' ? this.agentMetrics(page) : question === 'proxy' ? this.proxyPid : undefined
    }
    this.#registry = new MetricRegistry()
    const started = await startActor(actor, config, { logged: (record) => this.#logged.push(record), metrics: this.#registry, ask })
    this.#actors.push(started)
    const state = started.asks?.state as () => StatusState
    return { started, state, port: state().port ?? 0 }
  }

  /** The log lines of a level. */
  lines(level: string): string[] {
    return this.#logged.flatMap((record) => (record.level === level ? record.message : []))
  }

  /** The values of a metric of the last status server that was started, by labels. */
  counted(name: string): Record<string, number | undefined> {
    return Object.fromEntries(
      this.#registry
        .collect()
        .filter((family) => family.name === name)
        .flatMap(({ series }) => series.map(({ labels, values }) => [labelText(labels), values[0]])),
    )
  }
}

/** Sends a request to a port of this machine, on a connection of its own. */
export function send(port: number, path: string, options: { method?: string; headers?: Record<string, string | string[]>; host?: string } = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const outgoing = request({ host: '127.0.0.1', port, path, agent: false, ...options }, (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }), reject)
  })
  outgoing.on('error', reject)
  outgoing.end()
  return promise
}
