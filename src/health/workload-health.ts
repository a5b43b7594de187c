/** When a workload is healthy: after so many probes in a row that succeeded, until so many in a row failed (docs/agent.md, H9). */
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { WorkloadProbe } from '../../protocols/messages/status.ts'

/** Longest reason in characters. */
const reasonLength = 1000

/** Times and thresholds of a probe, with the defaults where 0 or nothing is given; times in milliseconds. */
export function probeSettings(probe: WorkloadProbe): {
  readonly delayMs: number
  readonly periodMs: number
  readonly timeoutMs: number
  readonly successes: number
  readonly failures: number
} {
  return {
    delayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: (probe.periodSeconds || 10) * 1000,
    timeoutMs: (probe.timeoutSeconds || 1) * 1000,
    successes: probe.successThreshold || 1,
    failures: probe.failureThreshold || 1,
  }
}

/** The health of a workload, which is unhealthy at first: nothing is told before it was healthy once. */
export class WorkloadHealth {
  readonly #thresholds: { readonly successes: number; readonly failures: number }
  #inARow = 0
  #last: HealthChanged | undefined

  constructor(thresholds: { readonly successes: number; readonly failures: number }) {
    this.#thresholds = thresholds
  }

  /** What was told last. */
  get last(): HealthChanged | undefined {
    return this.#last
  }

  /** Takes the outcome of a probe: why it failed, or undefined. Returns what is to be told, if anything. */
  take(failure: string | undefined): HealthChanged | undefined {
    const isHealthy = this.#last?.healthy ?? false
    if ((failure === undefined) === isHealthy) {
      this.#inARow = 0
      return undefined
    }
    this.#inARow++
    if (this.#inARow < (isHealthy ? this.#thresholds.failures : this.#thresholds.successes)) return undefined
    this.#inARow = 0
    this.#last = { type: 'HealthChanged', healthy: !isHealthy, message: failure?.toWellFormed().slice(0, reasonLength) ?? '' }
    return this.#last
  }
}
