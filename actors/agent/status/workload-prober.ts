/** Probes the workload and reports when it becomes healthy or unhealthy (docs/agent.md, H9 to H11). */
import type { HealthChanged } from '../../../protocols/messages/health.ts'
import type { HttpProbe, WorkloadProbe } from '../../../protocols/messages/status.ts'
import { probeHeaders } from '../../../src/health/forwarded-headers.ts'
import { probeSettings, WorkloadHealth } from '../../../src/health/workload-health.ts'
import { reasonOf, within } from '../../http/single-request.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { canConnect } from './connect-probe.ts'
import { getLocally } from './local-request.ts'

/** The dependencies of {@link WorkloadProber}. */
export interface WorkloadParts {
  readonly probe: WorkloadProbe
  readonly isIpv6Only: boolean
  /** Resolves with the reason why the proxy is not ready, or with undefined when it is. */
  readonly proxy: () => Promise<string | undefined>
  readonly log: ScopedLogger
  readonly changed: (event: HealthChanged) => void
}

/** Probes the workload periodically until it is stopped. */
export class WorkloadProber {
  readonly #parts: WorkloadParts
  readonly #settings: ReturnType<typeof probeSettings>
  readonly #health: WorkloadHealth
  readonly #stopped = new AbortController()
  #timer: Timer

  constructor(parts: WorkloadParts) {
    this.#parts = parts
    this.#settings = probeSettings(parts.probe)
    this.#health = new WorkloadHealth(this.#settings)
    this.#timer = after(this.#settings.delayMs, () => void this.#check())
  }

  /** The last reported state. */
  get last(): HealthChanged | undefined {
    return this.#health.last
  }

  /** Aborts the current probe. Nothing is reported afterwards. */
  stop(): void {
    this.#stopped.abort()
    this.#timer.cancel()
  }

  async #check(): Promise<void> {
    const began = monotonicMs()
    const failure = (await this.#parts.proxy()) ?? (await this.#probe())
    if (this.#stopped.signal.aborted) return
    const event = this.#health.take(failure)
    if (event) {
      if (event.healthy) this.#parts.log.info('the workload is healthy')
      else this.#parts.log.warn(`the workload is unhealthy: ${event.message}`)
      this.#parts.changed(event)
    } else if (failure !== undefined) this.#parts.log.debug(`a probe of the workload failed: ${failure}`)
    this.#timer = after(Math.max(0, this.#settings.periodMs - (monotonicMs() - began)), () => void this.#check())
  }

  /** Executes one probe. Resolves with the reason of a failure, or with undefined. */
  async #probe(): Promise<string | undefined> {
    const { httpGet, tcpSocket, exec } = this.#parts.probe
    const { isIpv6Only } = this.#parts
    try {
      await within(this.#settings.timeoutMs, this.#stopped.signal, async (signal) => {
        if (httpGet) await this.#get(httpGet, signal)
        if (tcpSocket) await canConnect({ ...tcpSocket, host: tcpSocket.host || undefined, isIpv6Only }, signal)
        // Imported only when such a probe is configured.
        if (exec) await (await import('./command-probe.ts')).runCommand(exec.command, signal)
      })
      return undefined
    } catch (error) {
      return reasonOf(error)
    }
  }

  async #get({ host, port, path = '/', scheme, httpHeaders = [] }: HttpProbe, signal: AbortSignal): Promise<void> {
    const own = httpHeaders.some(({ name }) => name.toLowerCase() === 'user-agent') ? httpHeaders : [agent, ...httpHeaders]
    const at = host || 'localhost'
    const request = {
      host: at,
      port,
      path: path.startsWith('/') ? path : `/${path}`,
      headers: probeHeaders([], own, `${at.includes(':') ? `[${at}]` : at}:${port}`),
      isSecure: scheme?.toLowerCase() === 'https',
      isIpv6Only: this.#parts.isIpv6Only,
    }
    const answer = await getLocally(request, signal)
    answer.destroy()
    const { statusCode = 0 } = answer
    if (statusCode < 200 || statusCode >= 400) throw new Error(`HTTP status ${statusCode}`)
  }
}

/** The header of a probe that does not configure `User-Agent`. */
const agent = { name: 'User-Agent', value: 'mesh-probe/1.0' }
