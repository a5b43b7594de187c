import { expect } from 'chai'
import { collected, Exposition } from '../../../actors/runtime/exposition.ts'
import { Counter, Gauge, Histogram, MetricRegistry } from '../../../actors/runtime/metrics.ts'
import { formatFor } from '../../../actors/runtime/metrics-format.ts'
import { metricsText } from '../../harness/metric-text.ts'
import { missingParser, parseMetrics } from '../../harness/metrics-parser.ts'

/** Values of labels that break lines, quotes or keys that are joined of them. */
const hostile = [
  'a"b\\c\nd',
  '} 1\nforged_total 9',
  '\\',
  '"',
  '\r\n# EOF\n',
  '1,b:2',
  '\u0000\u001b[2J\u202e',
  '\ud800',
  'ö'.repeat(300),
  '__proto__',
  '',
]

describe('a metrics page', () => {
  const sample = () => {
    const registry = new MetricRegistry()
    const registers = [registry]
    new Gauge({ name: 'rejects', help: 'a\\b\nc', labelNames: ['node', 'err'], registers }).set({ node: 'a"b\\c\nd', err: 'Internal' }, 1)
    new Counter({ name: 'plain_total', help: 'nothing yet', registers })
    new Counter({ name: 'csr_count', help: 'its name has another end', labelNames: ['type'], registers }).inc({ type: 'x' }, 2)
    new Counter({ name: 'labelled_total', help: 'no series before the first', labelNames: ['type'], registers })
    const time = new Histogram({ name: 'time', help: 'seconds', labelNames: ['type'], buckets: [0.1, 1], registers })
    for (const seconds of [0.1, 0.5, 0.5, 7]) time.observe({ type: 'cds' }, seconds)
    new Gauge({ name: 'most', help: 'infinite', registers }).set(Number.POSITIVE_INFINITY)
    return registry.collect()
  }

  it('has the names, types and labels of the metrics in the text format, histograms cumulative', async () => {
    expect(await metricsText(sample())).to.equal(`# HELP rejects a\\\\b\\nc
# TYPE rejects gauge
rejects{node="a\\"b\\\\c\\nd",err="Internal"} 1

# HELP plain_total nothing yet
# TYPE plain_total counter
plain_total 0

# HELP csr_count its name has another end
# TYPE csr_count counter
csr_count{type="x"} 2

# HELP labelled_total no series before the first
# TYPE labelled_total counter

# HELP time seconds
# TYPE time histogram
time_bucket{le="0.1",type="cds"} 1
time_bucket{le="1",type="cds"} 3
time_bucket{le="+Inf",type="cds"} 4
time_sum{type="cds"} 8.1
time_count{type="cds"} 4

# HELP most infinite
# TYPE most gauge
most +Inf
`)
  })

  it('has counters without `_total` under their own names in OpenMetrics, and the two formats do not disturb each other', async () => {
    const exposition = new Exposition(sample().map(collected))
    const both = async () => Promise.all([exposition.page('openmetrics'), exposition.page('text'), exposition.page('openmetrics', 'p_')])
    const [open, text, prefixed] = await both()
    expect(await both()).to.deep.equal([open, text, prefixed])
    expect(text).to.equal(await metricsText(sample()))
    expect(open).to.contain('# TYPE csr_count unknown\ncsr_count{type="x"} 2\n')
    expect(open).to.contain('# TYPE plain counter\nplain_total 0\n')
    expect(open.endsWith('most +Inf\n# EOF\n')).to.equal(true)
    expect(prefixed).to.contain('# TYPE p_plain counter\np_plain_total 0\n').and.to.contain('\np_time_bucket{le="0.1",type="cds"} 1\n')
  })

  it('is well formed with hostile labels, whose series stay apart, for independent parsers of both formats', async function () {
    const missing = await missingParser()
    if (missing !== undefined) this.skip()
    const registry = new MetricRegistry()
    const labelNames = ['a', 'b'] as const
    const counter = new Counter({ name: 'n_total', help: 'hostile "labels"\n\\', labelNames, registers: [registry] })
    const gauge = new Gauge({ name: 'g', help: 'h', labelNames, registers: [registry] })
    const time = new Histogram({ name: 't', help: 'h', labelNames, buckets: [0.5], registers: [registry] })
    for (const a of hostile)
      for (const b of ['x', a]) {
        counter.inc({ a, b })
        gauge.set({ a, b }, -1.5e-9)
        time.observe({ a, b }, 1)
      }
    // Joined as name:value these are one and the same.
    counter.inc({ a: '1,b:2', b: '' })
    const shown = (text: string) => text.slice(0, 256).toWellFormed()
    const expected = [...hostile.flatMap((a) => ['x', a].map((b) => [shown(a), shown(b)])), ['1,b:2', '']]
    for (const format of ['text', 'openmetrics'] as const) {
      const parsed = parseMetrics(await metricsText(registry.collect(), format), format)
      expect(
        parsed.map(({ name, type }) => `${name} ${type}`),
        format,
      ).to.deep.equal(['n counter', 'g gauge', 't histogram'])
      const [counted, gauged, timed] = parsed.map(({ samples }) => samples)
      expect(
        counted?.map(([, labels]) => [labels.a, labels.b]),
        format,
      ).to.deep.equal(expected)
      expect(gauged?.length, format).to.equal(2 * hostile.length)
      expect(timed?.length, format).to.equal(8 * hostile.length)
    }
  })

  it('is in OpenMetrics where the client prefers it to text', () => {
    const accept = (value?: string) => formatFor(value)
    // As Prometheus 2 and 3 ask, with and without its binary format.
    const two =
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    const three =
      'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
    for (const value of [two, three, 'Application/OpenMetrics-Text', 'application/openmetrics-text; version=1.0.0; q=0.9, */*; q=0.8'])
      expect(accept(value), value).to.equal('openmetrics')
    const texts = [
      undefined,
      '',
      '*/*',
      'text/html,*/*;q=0.8',
      'text/plain',
      'text/plain;version=0.0.4,application/openmetrics-text;q=0.5',
      'nonsense;;q=,,',
    ]
    for (const value of [
      ...texts,
      'application/openmetrics-text;q=0',
      'application/openmetrics-text;version=9.9.9',
      'application/openmetrics-text,text/*',
    ])
      expect(accept(value), value).to.equal('text')
  })
})
