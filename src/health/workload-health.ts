/**
 * The health of a workload: healthy after a number of consecutive successful probes, unhealthy after a number of consecutive failures
 * (docs/agent.md, H9).
 */
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { WorkloadProbe } from '../../protocols/messages/status.ts'

/** The maximum length of a reason, in characters. */
const reasonLength = 1000

/** Returns the times and thresholds of a probe, with defaults for missing and zero values. Times are in milliseconds. */
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

/** The health of a workload. It begins as unhealthy, and nothing is reported before the workload was healthy once. */
export class WorkloadHealth {
  readonly #thresholds: { readonly successes: number; readonly failures: number }
  #inARow = 0
  #last: HealthChanged | undefined

  constructor(thresholds: { readonly successes: number; readonly failures: number }) {
    this.#thresholds = thresholds
  }

  /** The last reported event. */
  get last(): HealthChanged | undefined {
    return this.#last
  }

  /** Processes the outcome of a probe: the reason of its failure, or undefined. Returns the event to report when the health changes. */
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
