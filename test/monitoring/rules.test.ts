/** The rules, scrape configurations and dashboard of examples/operating, read by promtool and held against the metrics that there are. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { documentedMetrics } from '../harness/documented-metrics.ts'
import { missingParser, parseMetrics } from '../harness/metrics-parser.ts'
import { groupedBy, selectedBy } from '../harness/promql.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'
import { buildPromtool } from './promtool.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const operating = join(root, 'examples/operating')
const fileOf = (name: string) => join(operating, 'prometheus', name)
const ruleFiles = [fileOf('recording.yaml'), fileOf('alerts.yaml')]

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
}

const rules = ruleFiles.flatMap((file) =>
  (parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules),
)
const alerts = rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert]))

interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const { panels } = JSON.parse(readFileSync(join(operating, 'grafana/dashboard.json'), 'utf8')) as { panels: Panel[] }
const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })))

/** Runs promtool. Returns its status and output. */
function promtool(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(buildPromtool(), args, { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

/** What scrapes add to each series. */
const added = ['job', 'instance']

/** The labels of every series that rules and queries may select, by its name. */
function known(): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>([['up', added]])
  for (const { name, type, labels, section } of documentedMetrics()) {
    const seen = section === 'Of the agent' ? `mesh_agent_${name}` : name
    const all = [...labels, ...added]
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) found.set(`${seen}_${part}`, [...all, 'le'])
    else found.set(seen, all)
  }
  for (const { record, expr } of rules) if (record !== undefined) found.set(record, groupedBy(expr))
  return found
}

/** What an expression names that does not exist. */
function unknownIn(expression: string, names: ReadonlyMap<string, readonly string[]>): string[] {
  const selected = selectedBy(expression)
  const all = new Set(selected.flatMap(({ metric }) => names.get(metric) ?? []))
  return [
    ...selected.flatMap(({ metric, labels }) => {
      const there = names.get(metric)
      return there === undefined ? [metric] : labels.filter((label) => !there.includes(label)).map((label) => `${metric}{${label}}`)
    }),
    ...groupedBy(expression).filter((label) => !all.has(label)),
  ]
}

describe('the rules for Prometheus', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-rules-'))
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** Runs tests of rules. */
  const testRules = (tests: object) => {
    const file = join(dir, 'tests.yaml')
    writeFileSync(file, stringify({ ...tests, rule_files: ruleFiles }))
    return promtool('test', 'rules', file)
  }

  it('and the scrape configurations that load them are valid', () => {
    for (const file of ruleFiles) expect(promtool('check', 'rules', file)).to.deep.include({ status: 0 })
    for (const name of ['prometheus.yaml', 'kubernetes.yaml']) {
      const { status, output } = promtool('check', 'config', fileOf(name))
      expect(status, output).to.equal(0)
      expect(output).to.contain('2 rule files found')
    }
  })

  it('name metrics and labels that there are', () => {
    const names = known()
    expect(rules.flatMap(({ expr }) => unknownIn(expr, names))).to.deep.equal([])
    expect(unknownIn('sum by (nobody) (pilot_xds{err="a"}) + pilot_xsd', names)).to.deep.equal(['pilot_xds{err}', 'pilot_xsd', 'nobody'])
  })

  it('fire as alerts.yaml beside this file says, each alert in a case of its own', () => {
    const cases = parse(readFileSync(new URL('alerts.yaml', import.meta.url), 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[]
    }
    const fired = cases.tests.flatMap((one) => one.alert_rule_test.flatMap((rule) => (rule.exp_alerts.length > 0 ? [rule.alertname] : [])))
    expect(fired.sort()).to.deep.equal([...alerts].sort())
    const { status, output } = testRules(cases)
    expect(status, output).to.equal(0)
  })

  it('have a row in docs/running.md for each alert, which says why and what to do', () => {
    const page = readFileSync(join(root, 'docs/running.md'), 'utf8')
    expect([...page.matchAll(/^\| `(Mesh\w+)` \| .+ \| .+ \|$/gm)].map(([, name]) => name)).to.deep.equal(alerts)
  })

  it('are silent about a control plane that serves a proxy, and about its invalid document say so', async function () {
    if ((await missingParser()) !== undefined) this.skip()
    const service = new Service()
    try {
      await service.start()
      const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', 'pod', 'ns'), true).connect().ready()
      // An hour of the page as it is now.
      const series = async () =>
        parseMetrics(await service.metrics(), 'text').flatMap(({ samples }) =>
          samples.map(([name, labels, value]) => {
            const all = Object.entries({ ...labels, job: 'mesh-discovery', instance: 'a' }).map(([label, text]) => `${label}=${JSON.stringify(text)}`)
            return { series: `${name}{${all.join()}}`, values: `${Number(value)}x60` }
          }),
        )
      const silentBut = async (...loud: readonly string[]) => {
        const input = [{ series: 'up{job="mesh-discovery",instance="a"}', values: '1x60' }, ...(await series())]
        const silent = alerts.filter((alert) => !loud.includes(alert)).map((alertname) => ({ alertname, eval_time: '55m', exp_alerts: [] }))
        return testRules({ evaluation_interval: '1m', tests: [{ input_series: input, alert_rule_test: silent }] })
      }
      expect((await series()).length).to.be.greaterThan(200)
      const healthy = await silentBut()
      expect(healthy.status, healthy.output).to.equal(0)
      service.write('wrong.yaml', 'apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: ns}\nspec: {servers: []}\n')
      await until('the document to be counted', async () => /^pilot_config_documents_invalid 1$/m.test(await service.metrics()))
      expect((await silentBut()).output).to.contain('objects of configuration cannot be used at a')
      const others = await silentBut('MeshDocumentsInvalid')
      expect(others.status, others.output).to.equal(0)
      client.close()
    } finally {
      await service.dispose()
    }
  })
})

describe('the dashboard', () => {
  it('has panels for convergence, pushes, rejections, connections, certificates, threads and memory', () => {
    expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).to.include.members([
      ...['Convergence', 'Pushes', 'Rejections', 'Connections', 'Certificates', 'Threads and memory'],
    ])
    expect(queries.length).to.be.greaterThan(40)
  })

  it('asks for metrics and labels that there are, in expressions that Prometheus reads', () => {
    const names = known()
    expect(queries.flatMap(({ expr }) => unknownIn(expr, names))).to.deep.equal([])
    const legends = queries.flatMap(({ title, expr, legendFormat }) => {
      const there = /\bby\b/.test(expr) ? groupedBy(expr) : selectedBy(expr).flatMap(({ metric }) => names.get(metric) ?? [])
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
      return shown.filter((label) => !there.includes(label)).map((label) => `${title}: ${label}`)
    })
    expect(legends).to.deep.equal([])
    const file = join(mkdtempSync(join(tmpdir(), 'mesh-dashboard-')), 'queries.yaml')
    try {
      const asRules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr: expr.replaceAll('$__rate_interval', '5m') }))
      writeFileSync(file, stringify({ groups: [{ name: 'queries', rules: asRules }] }))
      const { status, output } = promtool('check', 'rules', file)
      expect(status, output).to.equal(0)
    } finally {
      rmSync(join(file, '..'), { recursive: true })
    }
  })
})
