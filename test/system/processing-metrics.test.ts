/** Metrics of the way from events to pushes (`galley_runtime_*`, docs/metrics.md). */
import { expect } from 'chai'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('metrics of what is processed', () => {
  const service = new Service()
  let client: XdsClient | undefined
  before(async () => {
    await service.start()
    // A snapshot that concerns no proxy is not published.
    client = new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'one', 'ns'), true)
    await client.connect().ready()
  })
  after(async () => {
    client?.close()
    await service.dispose()
  })

  /** The values of all these metrics, by name with labels. */
  const values = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      [...(await service.metrics()).matchAll(/^galley_runtime_(\w+(?:\{[^}]*\})?) (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]),
    )
  const entries = 'state_type_instances_total{collection="networking.mesh.io/ServiceEntry"}'

  it('count objects in force, events, snapshots, and what began a push', async () => {
    const before = await values()
    expect(before[entries]).to.equal(0)
    let after = before
    for (const [count, name] of ['a', 'b'].entries()) {
      const { processor_snapshots_published_total: published = 0 } = after
      service.write(`${name}.yaml`, serviceEntry(name))
      await until(`the push of ${name}`, async () => {
        after = await values()
        return after[entries] === count + 1 && (after.processor_snapshots_published_total ?? 0) > published
      })
    }
    const grown = (name: string) => (after[name] ?? Number.NaN) - (before[name] ?? Number.NaN)
    expect(grown('processor_events_processed_total')).to.be.at.least(2)
    expect(grown('processor_event_span_duration_milliseconds_count')).to.be.at.least(1)
    expect(grown('processor_snapshot_lifetime_duration_milliseconds_count')).to.be.at.least(1)
    expect(grown('processor_snapshot_events_total_count')).to.be.at.least(2)
    expect(grown('processor_snapshot_events_total_sum')).to.be.at.least(2)
    expect(grown('strategy_on_change_total')).to.be.at.least(2)
    expect(grown('strategy_timer_quiesce_reached_total') + grown('strategy_timer_max_time_reached_total')).to.be.at.least(2)
    service.remove('a.yaml')
    await until('one object again', async () => (await values())[entries] === 1)
  })

  it('count changes that begin the quiet period again, and pushes that do not wait for its end', async () => {
    const of = new Service({ env: { PILOT_DEBOUNCE_AFTER: '2s', PILOT_DEBOUNCE_MAX: '3s' } })
    try {
      await of.start()
      const value = async (name: string) =>
        Number(new RegExp(`^galley_runtime_strategy_timer_${name} (\\S+)$`, 'm').exec(await of.metrics())?.[1] ?? Number.NaN)
      let count = 0
      await until('a push after the longest time', async () => {
        of.write('a.yaml', serviceEntry('a', `10.0.0.${++count % 250}`))
        return (await value('max_time_reached_total')) > 0
      })
      expect(await value('resets_total')).to.be.above(0)
    } finally {
      await of.dispose()
    }
  })
})
