import { expect } from 'chai'
import { MetricsLedger, writeExposition } from '../../../actors/runtime/exposition.ts'
import { Counter, Gauge, Histogram, Registry } from '../../../actors/runtime/metrics.ts'

describe('metrics of an actor', () => {
  it('are written in the format of Prometheus: escaped, with types, histograms cumulative', () => {
    const registry = new Registry()
    const registers = [registry]
    const rejects = new Gauge({ name: 'rejects', help: 'a\\b\nc', labelNames: ['node', 'err'], registers })
    rejects.set({ node: 'a"b\\c\nd', err: 'Internal' }, 1)
    new Counter({ name: 'plain_total', help: 'nothing yet', registers })
    new Counter({ name: 'labelled_total', help: 'no series before the first', labelNames: ['type'], registers })
    const time = new Histogram({ name: 'time', help: 'seconds', labelNames: ['type'], buckets: [0.1, 1], registers })
    for (const seconds of [0.1, 0.5, 0.5, 7]) time.observe({ type: 'cds' }, seconds)
    const sizes = new Histogram({ name: 'sizes', help: 'bytes', buckets: [1], registers })
    sizes.observe(1)
    expect(writeExposition(registry.collect())).to.equal(`# HELP rejects a\\\\b\\nc
# TYPE rejects gauge
rejects{node="a\\"b\\\\c\\nd",err="Internal"} 1
# HELP plain_total nothing yet
# TYPE plain_total counter
plain_total 0
# HELP labelled_total no series before the first
# TYPE labelled_total counter
# HELP time seconds
# TYPE time histogram
time_bucket{type="cds",le="0.1"} 1
time_bucket{type="cds",le="1"} 3
time_bucket{type="cds",le="+Inf"} 4
time_sum{type="cds"} 8.1
time_count{type="cds"} 4
# HELP sizes bytes
# TYPE sizes histogram
sizes_bucket{le="1"} 1
sizes_bucket{le="+Inf"} 1
sizes_sum 1
sizes_count 1
`)
  })

  it('ignore values that are not finite or negative increments, and reject a duplicate name', () => {
    const registry = new Registry()
    const counter = new Counter({ name: 'n', help: '', registers: [registry] })
    counter.inc()
    for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) counter.inc(wrong)
    counter.inc({}, 2)
    const time = new Histogram({ name: 't', help: '', buckets: [1], registers: [registry] })
    time.observe(Number.NaN)
    expect(registry.collect().map((family) => family.series)).to.deep.equal([[{ labels: '', values: [3] }], [{ labels: '', values: [0, 0, 0] }]])
    expect(() => new Gauge({ name: 'n', help: '', registers: [registry] })).to.throw('metric n is declared twice')
  })

  it('are limited in the number of series and the length of labels', () => {
    const registry = new Registry()
    const counter = new Counter({ name: 'n', help: '', labelNames: ['a', 'b'], registers: [registry] })
    for (let at = 0; at < 6000; at++) counter.inc({ a: `${at}`, b: 'x' })
    for (const end of ['1', '2']) counter.inc({ a: `${'y'.repeat(300)}${end}`, b: '' })
    const series = registry.collect()[0]?.series ?? []
    expect(series.length).to.equal(5001)
    expect(series.at(-1)).to.deep.equal({ labels: 'a="other",b="other"', values: [1002] })
    const long = new Counter({ name: 'l', help: '', labelNames: ['a'], registers: [registry] })
    for (const end of ['1', '2']) long.inc({ a: `${'y'.repeat(300)}${end}` })
    expect(registry.collect()[1]?.series).to.deep.equal([{ labels: `a="${'y'.repeat(256)}"`, values: [2] }])
  })

  it('of a gauge are computed at collection, and removed or reset series disappear', () => {
    let now = 1
    const registry = new Registry()
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
    expect(registry.collect()[0]?.series).to.deep.equal([{ labels: 'version="1"', values: [2] }])
    now = 2
    expect(registry.collect()[0]?.series).to.deep.equal([{ labels: 'version="2"', values: [2] }])
  })
})

describe('merged metrics', () => {
  const families = (count: number, gauge: number) => {
    const registry = new Registry()
    new Counter({ name: 'c', help: '', labelNames: ['type'], registers: [registry] }).inc({ type: 'cds' }, count)
    new Gauge({ name: 'g', help: '', registers: [registry] }).set(gauge)
    const time = new Histogram({ name: 'h', help: '', buckets: [1], registers: [registry] })
    for (let index = 0; index < count; index++) time.observe(0.5)
    return registry.collect()
  }
  const lines = (ledger: MetricsLedger, running = (_: string) => true) =>
    writeExposition(ledger.merged(running))
      .split('\n')
      .filter((line) => /^(c|g|h_count|h_sum)\b/.test(line))

  it('are summed over actors, and keep the counts of actors that died', () => {
    const ledger = new MetricsLedger()
    ledger.take('w/0', { incarnation: '1', families: families(5, 2) })
    ledger.take('w/1', { incarnation: '2', families: families(1, 3) })
    expect(lines(ledger)).to.deep.equal(['c{type="cds"} 6', 'g 5', 'h_sum 3', 'h_count 6'])
    // w/1 does not answer this time. w/0 was restarted and has counted again since.
    ledger.take('w/0', { incarnation: '3', families: families(2, 1) })
    expect(lines(ledger)).to.deep.equal(['c{type="cds"} 8', 'g 4', 'h_sum 4', 'h_count 8'])
    // Neither runs: their counts stay, their gauges are removed.
    expect(lines(ledger, () => false)).to.deep.equal(['c{type="cds"} 8', 'h_sum 4', 'h_count 8'])
    ledger.take('w/1', { incarnation: '4', families: families(1, 7) })
    expect(lines(ledger)).to.deep.equal(['c{type="cds"} 9', 'g 7', 'h_sum 4.5', 'h_count 9'])
  })
})
