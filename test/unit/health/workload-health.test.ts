import { expect } from 'chai'
import { probeSettings, WorkloadHealth } from '../../../src/health/workload-health.ts'

const outcomesOf = (successes: number, failures: number, outcomes: string) => {
  const health = new WorkloadHealth({ successes, failures })
  return [...outcomes].map((outcome) => health.take(outcome === '+' ? undefined : 'refused')?.healthy)
}

describe('the health of a workload', () => {
  it('starts as unhealthy, and is reported when it changes', () => {
    expect(outcomesOf(1, 1, '--++-+')).to.deep.equal([undefined, undefined, true, undefined, false, true])
  })

  it('changes after the configured number of consecutive successes or failures', () => {
    expect(outcomesOf(2, 3, '+-++-+---+++')).to.deep.equal([
      undefined,
      undefined,
      undefined,
      true,
      undefined,
      undefined,
      undefined,
      undefined,
      false,
      undefined,
      true,
      undefined,
    ])
  })

  it('is kept with a reason of limited length', () => {
    const health = new WorkloadHealth({ successes: 1, failures: 1 })
    expect(health.last).to.equal(undefined)
    health.take(undefined)
    expect(health.last).to.deep.equal({ type: 'HealthChanged', healthy: true, message: '' })
    health.take('x'.repeat(5000))
    expect(health.last?.healthy).to.equal(false)
    expect(health.last?.message).to.have.lengthOf(1000)
  })

  it('is probed every 10 s with a timeout of 1 s by default', () => {
    expect(probeSettings({})).to.deep.equal({ delayMs: 0, periodMs: 10_000, timeoutMs: 1000, successes: 1, failures: 1 })
    const given = { initialDelaySeconds: 3, periodSeconds: 2, timeoutSeconds: 4, successThreshold: 5, failureThreshold: 6 }
    expect(probeSettings(given)).to.deep.equal({ delayMs: 3000, periodMs: 2000, timeoutMs: 4000, successes: 5, failures: 6 })
    expect(probeSettings({ periodSeconds: 0, timeoutSeconds: 0, successThreshold: 0, failureThreshold: 0 })).to.deep.equal(probeSettings({}))
  })
})
