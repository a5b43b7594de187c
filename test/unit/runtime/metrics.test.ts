import { expect } from 'chai'
import { MetricTotals } from '../../../actors/runtime/metric-totals.ts'
import { Counter, Gauge, Histogram, MetricRegistry } from '../../../actors/runtime/metrics.ts'
import { metricsText } from '../../harness/metric-text.ts'

describe('metrics of an actor', () => {
  it('ignore values that are not finite or negative increments, and reject a duplicate name', () => {
    const registry = new MetricRegistry()
    const counter = new Counter({ name: 'n', help: '', registers: [registry] })
    counter.inc()
    for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) counter.inc(wrong)
    counter.inc({}, 2)
    const time = new Histogram({ name: 't', help: '', buckets: [1], registers: [registry] })
    time.observe(Number.NaN)
    expect(registry.collect().map((family) => family.series)).to.deep.equal([[{ labels: {}, values: [3] }], [{ labels: {}, values: [0, 0, 0] }]])
    expect(() => new Gauge({ name: 'n', help: '', registers: [registry] })).to.throw('metric n is declared twice')
  })

  it('are limited in the number of series and the length of labels', () => {
    const registry = new MetricRegistry()
    const counter = new Counter({ name: 'n', help: '', labelNames: ['a', 'b'], registers: [registry] })
    for (let at = 0; at < 6000; at++) counter.inc({ a: `${at}`, b: 'x' })
    for (const end of ['1', '2']) counter.inc({ a: `${'y'.repeat(300)}${end}`, b: '' })
    const series = registry.collect()[0]?.series ?? []
    expect(series.length).to.equal(5001)
    expect(series.at(-1)).to.deep.equal({ labels: { a: 'other', b: 'other' }, values: [1002] })
    const long = new Counter({ name: 'l', help: '', labelNames: ['a'], registers: [registry] })
    for (const end of ['1', '2']) long.inc({ a: `${'y'.repeat(300)}${end}` })
    expect(registry.collect()[1]?.series).to.deep.equal([{ labels: { a: 'y'.repeat(256) }, values: [2] }])
  })

  it('of a gauge are computed at collection, and removed or reset series disappear', () => {
    let now = 1
    const registry = new MetricRegistry()
    new Gauge({
      name: 'g',
      help: '',
      labelNames: ['version'],
      registers: [registry],
      collect() {
        this.reset()
        this.inc({ version: `${now}` })
        this.inc({ version: `${now}` })
        this.set({ version: 'gone' }, 1)
        this.remove({ version: 'gone' })
      },
    })
    expect(registry.collect()[0]?.series).to.deep.equal([{ labels: { version: '1' }, values: [2] }])
    now = 2
    expect(registry.collect()[0]?.series).to.deep.equal([{ labels: { version: '2' }, values: [2] }])
  })
})

describe('merged metrics', () => {
  const families = (count: number, gauge: number) => {
    const registry = new MetricRegistry()
    new Counter({ name: 'c', help: '', labelNames: ['type'], registers: [registry] }).inc({ type: 'cds' }, count)
    new Gauge({ name: 'g', help: '', registers: [registry] }).set(gauge)
    const time = new Histogram({ name: 'h', help: '', buckets: [1], registers: [registry] })
    for (let index = 0; index < count; index++) time.observe(0.5)
    return registry.collect()
  }
  const lines = async (totals: MetricTotals, running = (_: string) => true, exists = (_: string) => true) =>
    (await metricsText(totals.merged(running, exists)))
      .split('\n')
      .filter((line) => /^(c|c_own|g|h_count|h_sum)\b/.test(line))
      .sort()

  it('are summed over actors, and keep the counts of actors that died', async () => {
    const totals = new MetricTotals()
    totals.take('w/0', { incarnation: '1', families: families(5, 2) })
    totals.take('w/1', { incarnation: '2', families: families(1, 3) })
    expect(await lines(totals)).to.deep.equal(['c{type="cds"} 6', 'g 5', 'h_count 6', 'h_sum 3'])
    // w/1 does not answer this time. w/0 was restarted and has counted again since.
    totals.take('w/0', { incarnation: '3', families: families(2, 1) })
    expect(await lines(totals)).to.deep.equal(['c{type="cds"} 8', 'g 4', 'h_count 8', 'h_sum 4'])
    // Neither runs: their counts stay, their gauges are removed.
    expect(await lines(totals, () => false)).to.deep.equal(['c{type="cds"} 8', 'h_count 8', 'h_sum 4'])
    totals.take('w/1', { incarnation: '4', families: families(1, 7) })
    expect(await lines(totals)).to.deep.equal(['c{type="cds"} 9', 'g 7', 'h_count 9', 'h_sum 4.5'])
  })

  it('end with an actor that is removed where they are of its own, and stay while it is to be started again', async () => {
    const counted = (count: number) => {
      const registry = new MetricRegistry()
      new Counter({ name: 'c', help: '', labelNames: ['type'], registers: [registry] }).inc({ type: 'cds' }, count)
      new Counter({ name: 'c_own', help: '', labelNames: ['actor'], isOwn: true, registers: [registry] }).inc({ actor: 'w/0' }, count)
      return registry.collect()
    }
    const totals = new MetricTotals()
    totals.take('w/0', { incarnation: '1', families: counted(2) })
    totals.take('w/0', { incarnation: '2', families: counted(3) })
    const both = ['c_own{actor="w/0"} 5', 'c{type="cds"} 5']
    expect(await lines(totals)).to.deep.equal(both)
    expect(await lines(totals, () => false), 'it starts again').to.deep.equal(both)
    expect(
      await lines(
        totals,
        () => false,
        () => false,
      ),
    ).to.deep.equal(['c{type="cds"} 5'])
    totals.take('w/0', { incarnation: '3', families: counted(1) })
    expect(await lines(totals), 'another of its name').to.deep.equal(['c_own{actor="w/0"} 1', 'c{type="cds"} 6'])
  })
})
