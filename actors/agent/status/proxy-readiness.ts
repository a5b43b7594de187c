/** Determines the readiness of the proxy from its admin interface (docs/agent.md, H1). */
import type { StatusConfig } from '../../../protocols/messages/status.ts'
import { Readiness } from '../../../src/health/readiness.ts'
import { boundedBody } from '../../http/bounded-body.ts'
import { reasonOf, within } from '../../http/single-request.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Gauge, type MetricRegistry } from '../../runtime/metrics.ts'
import { getLocally } from './local-request.ts'

/** The maximum size of a response with statistics, in bytes. */
const answerBytes = 65_536
/** The interval after which a repeated failure with the same reason is logged again, in milliseconds. */
const repeatMs = 1000
/** How long a proxy may take to become ready before its failures are warnings, in milliseconds. */
const startMs = 30_000

/** Dependencies of a {@link ProxyReadiness}. */
export interface ProxyReadinessParts {
  readonly log: ScopedLogger
  readonly metrics: MetricRegistry
  /** The monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Queries the proxy until it has been ready once. */
export class ProxyReadiness {
  readonly #config: Pick<StatusConfig, 'adminPort' | 'isIpv6Only'>
  readonly #log: ScopedLogger
  readonly #metrics: MetricRegistry
  readonly #rule = new Readiness()
  #running: Promise<string | undefined> | undefined
  #reason = ''
  readonly #now: () => number
  readonly #startedAt: number
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(config: Pick<StatusConfig, 'adminPort' | 'isIpv6Only'>, { log, metrics, now = monotonicMs }: ProxyReadinessParts) {
    this.#config = config
    this.#log = log
    this.#metrics = metrics
    this.#now = now
    this.#startedAt = now()
  }

  /** Whether the proxy has been ready once. */
  get ready(): boolean {
    return this.#rule.question === undefined
  }

  /** Why the proxy was not ready at the last check. Empty when it was, or before the first check. */
  get reason(): string {
    return this.#reason
  }

  /**
   * Checks the proxy. Resolves with the reason why it is not ready, or with undefined when it is. Concurrent calls share one check. Never
   * rejects.
   */
  check(): Promise<string | undefined> {
    if (this.ready) return Promise.resolve(undefined)
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #check(): Promise<string | undefined> {
    const reason = await this.#ask().catch((error: unknown) => `the admin interface of the proxy does not answer: ${reasonOf(error)}`)
    if (reason === undefined) this.#becomeReady()
    else this.#fail(reason)
    return reason
  }

  async #ask(): Promise<string | undefined> {
    const { adminPort, isIpv6Only } = this.#config
    for (let question = this.#rule.question; question; question = this.#rule.question) {
      const { path, timeoutMs } = question
      const request = { port: adminPort, path, headers: ['Host', `localhost:${adminPort}`, 'Connection', 'close'], isIpv6Only }
      const answer = await within(timeoutMs, undefined, async (signal) => {
        const response = await getLocally(request, signal)
        if (response.statusCode === 200) return boundedBody(response, answerBytes)
        response.destroy()
        throw new Error(`HTTP status ${response.statusCode}`)
      })
      const fault = this.#rule.take(answer)
      if (fault !== undefined) return fault
    }
    return undefined
  }

  #becomeReady(): void {
    const seconds = process.uptime()
    const help = 'seconds from process start to being marked ready'
    new Gauge({ name: 'startup_duration_seconds', help, registers: [this.#metrics] }).set(seconds)
    this.#reason = ''
    this.#log.info(`the proxy is ready, ${seconds.toFixed(1)} s after the agent started`)
  }

  #fail(reason: string): void {
    const now = this.#now()
    if (reason !== this.#reason || now - this.#loggedAt >= repeatMs) {
      const isStarting = now - this.#startedAt < startMs
      this.#log[isStarting ? 'info' : 'warn'](`the proxy is NOT ready: ${reason}`)
      this.#loggedAt = now
    }
    this.#reason = reason
  }
}
