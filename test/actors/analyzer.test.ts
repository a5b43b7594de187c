/** Analysis while the service runs: what comes and goes, by page, log and after a crash. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import type { FoundNow } from '../../protocols/messages/analysis.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { textOf } from '../harness/page-text.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'

const route = (host: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{route: [{destination: {host: ${host}}}]}]}\n`

describe('the analyzer', () => {
  const discovery = new LocalDiscovery({}, { PILOT_ENABLE_ANALYSIS: 'true' })
  const page = async (): Promise<FoundNow> => (await (await fetch(`http://127.0.0.1:${discovery.httpPort}/debug/analysisz`)).json()) as FoundNow
  const found = async () => (await page()).findings.map(({ code, kind, namespace, object, path }) => `${code} ${kind} ${namespace}/${object} ${path}`)
  const becomes = (...lines: string[]) => until(`the findings ${lines.join(', ')}`, async () => (await found()).join() === lines.join())
  const unknown = 'IST0101 VirtualService ns/a spec.http[0].route[0].destination.host'

  before(async () => {
    discovery.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    discovery.write('route.yaml', route('b'))
    await discovery.start({ registries: [] })
    await discovery.service.ready()
  })
  after(() => discovery.dispose())

  it('shows what is wrong, with what to do and where it stands', async () => {
    await becomes(unknown)
    const { findings, due, isComplete } = await page()
    expect([due, isComplete]).to.deep.equal([0, true])
    expect(findings[0]).to.include({ name: 'ReferencedResourceNotFound', level: 'error', place: 'route.yaml, document 1' })
    expect(findings[0]?.message).to.include('there is no service b.ns.svc.cluster.local')
  })

  it('shows no longer what was right by another object, and again when that is gone', async () => {
    discovery.write('b.yaml', serviceEntry('b', '10.0.0.2'))
    await becomes()
    discovery.remove('b.yaml')
    await becomes(unknown)
  })

  it('logs once what comes and goes', async () => {
    discovery.write('route.yaml', route('a'))
    await becomes()
    const lines = () =>
      discovery
        .log()
        .split('\n')
        .filter((line) => line.includes('\tanalysis\t'))
    await until('the last line', () => lines().length >= 4)
    const at = 'VirtualService ns/a: spec.http[0].route[0].destination.host'
    const has = `warn analysis error IST0101 ${at}: there is no service b.ns.svc.cluster.local, so requests are answered with an error (route.yaml, document 1)`
    const hasNot = `info analysis no longer: IST0101 ${at}`
    expect(lines().map((line) => line.split('\t').slice(1, 4).join(' '))).to.deep.equal([has, hasNot, has, hasNot])
  })

  it('shows fields without effect, which are logged as findings only', async () => {
    discovery.write(
      'rule.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: r, namespace: ns}\nspec: {host: a, trafficPolicy: {tunnel: {}}}\n',
    )
    await becomes('IST0133 DestinationRule ns/r spec.trafficPolicy.tunnel')
    const told = (line: string) => line.includes('spec.trafficPolicy.tunnel')
    await until('its line', () => discovery.log().split('\n').some(told))
    expect(discovery.log().split('\n').filter(told)).to.have.lengthOf(1)
    discovery.remove('rule.yaml')
    await becomes()
  })

  it('says how many of very many came, and that those have gone which it told of', async () => {
    const before = discovery.log().length
    const lines = (part: RegExp) => [...discovery.log().slice(before).matchAll(part)]
    const others = () => lines(/analysis\t(\d+) further findings came; all are on/g).reduce((sum, [, count]) => sum + Number(count), 0)
    const came = () => lines(/error IST0101 VirtualService ns\/many-/g).length
    const routes = Array.from({ length: 100 }, (_, index) =>
      route('nowhere').replace('name: a', `name: many-${index}`).replace('hosts: [a]', `hosts: [many-${index}.example]`),
    )
    discovery.write('many.yaml', routes.join('---\n'))
    await until('all to be told or counted', () => came() + others() === 100)
    expect(others()).to.be.greaterThan(0)
    const told = came()
    discovery.remove('many.yaml')
    await becomes()
    await until('the lines about those that were told', () => lines(/no longer: IST0101 VirtualService ns\/many-/g).length === told)
  })

  it('says how many of those that it told of have gone, beyond those with a line', async () => {
    const before = discovery.log().length
    const lines = (part: RegExp) => [...discovery.log().slice(before).matchAll(part)]
    const told = () => lines(/warning MESH0014 ServiceEntry ns\/e-/g).length
    const write = (count: number) =>
      discovery.write(
        'entries.yaml',
        Array.from({ length: count }, (_, at) => at + 1)
          .map(
            (index) =>
              `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: e-${index}, namespace: ns}\nspec: {hosts: [e-${index}.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]}`,
          )
          .join('\n---\n'),
      )
    write(5)
    await until('the first lines', () => told() === 5)
    // Five lines of a code are logged in ten seconds, by the clock of the service: no sooner are more of them told.
    await setTimeout(10_500)
    write(10)
    await until('all lines', () => told() === 10)
    // In one file, so that all go at once.
    discovery.remove('entries.yaml')
    const counted = () => lines(/info\tanalysis\tno longer: (\d+) further findings; /g).reduce((sum, [, count]) => sum + Number(count), 0)
    await until('all to be told or counted', () => lines(/no longer: MESH0014 ServiceEntry ns\/e-/g).length + counted() === 10)
    expect(counted()).to.equal(5)
    await becomes()
  })
})

describe('the analyzer of a service with a mesh configuration', () => {
  const discovery = new LocalDiscovery({}, { PILOT_ENABLE_ANALYSIS: 'true' })
  const meshConfig = join(discovery.dir, 'mesh')
  before(async () => {
    writeFileSync(meshConfig, 'accessLogEncodin: JSON')
    await discovery.start({ registries: [], meshConfig })
    await discovery.service.ready()
  })
  after(() => discovery.dispose())

  it('shows what is wrong with it, and no longer when it is mended', async () => {
    const lines = async () => {
      const { findings } = (await (await fetch(`http://127.0.0.1:${discovery.httpPort}/debug/analysisz`)).json()) as FoundNow
      return findings.map(({ code, message, place }) => `${code} ${place}: ${message}`).join()
    }
    const becomes = (line: string) => until(`the findings ${line}`, async () => (await lines()) === line)
    const at = `mesh configuration ${meshConfig}: field`
    await becomes(`IST0133 ${at} accessLogEncodin: unknown field, left out; did you mean "accessLogEncoding"?`)
    writeFileSync(meshConfig, 'enableAutoMtls: maybe')
    await becomes(`IST0106 ${at} enableAutoMtls: expected true or false, got string "maybe"`)
    writeFileSync(meshConfig, 'enableAutoMtls: true')
    await becomes('')
  })
})

describe('a service without PILOT_ENABLE_ANALYSIS', () => {
  it('says that it does not analyze', async () => {
    const discovery = new LocalDiscovery({})
    try {
      await discovery.start({ registries: [] })
      const answer = await fetch(`http://127.0.0.1:${discovery.httpPort}/debug/analysisz`)
      expect([answer.status, await textOf(answer)]).to.deep.equal([404, 'this server does not analyze configuration (PILOT_ENABLE_ANALYSIS)'])
    } finally {
      await discovery.dispose()
    }
  })
})
