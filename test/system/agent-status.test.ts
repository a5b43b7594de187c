/** The status server through the real command, with a stand-in for the proxy. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { mediaTypes } from '../../actors/runtime/metrics-format.ts'
import { freePort } from '../../bench/ports.ts'
import { withoutSeries } from '../../src/agent/specified-metrics.ts'
import { Agent, type AgentOptions } from '../harness/agent.ts'
import { missingParser, parseMetrics } from '../harness/metrics-parser.ts'
import { specifiedForAgent } from '../harness/specified-metrics.ts'
import { standInProxy } from '../harness/stand-in-proxy.ts'
import { until } from '../harness/until.ts'

describe('the status server of pilot-agent', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-stand-in-'))
  const binary = join(folder, 'proxy')
  const agents: Agent[] = []
  const servers: { close(): unknown }[] = []

  before(() => writeFileSync(binary, standInProxy(), { mode: 0o755 }))
  after(() => rmSync(folder, { recursive: true, force: true }))
  afterEach(async () => {
    for (const one of agents.splice(0)) await one.dispose()
    for (const server of servers.splice(0)) server.close()
  })

  function agent(options: Partial<AgentOptions> = {}): Agent {
    const made = new Agent({ binary, ...options, proxyConfig: { customConfigFile: 'bootstrap.json', ...options.proxyConfig } })
    made.write('bootstrap.json', '{}')
    agents.push(made)
    return made
  }
  const ask = async (one: Agent, path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${one.statusPort}${path}`, init)

  it('reports readiness of the proxy, probes the application, and exposes metrics', async () => {
    const application = createServer((request, response) => response.writeHead(request.url === '/ok' ? 204 : 418).end())
    servers.push(application)
    await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve))
    const { port } = application.address() as AddressInfo
    const probes = { '/app-health/api/readyz': { httpGet: { path: '/ok', port } }, '/app-health/api/livez': { httpGet: { path: '/', port } } }
    const names = { MESH_META_DNS_CAPTURE: 'true', DNS_PROXY_ADDR: `127.0.0.1:${await freePort()}` }
    const settings = { MESH_ORCH_APP_PROBERS: JSON.stringify(probes), MESH_METRICS_ANNOTATIONS: JSON.stringify({ port: String(port) }) }
    const one = agent({ env: { ...names, ...settings } })
    await one.start()
    await until('the status server', async () => (await ask(one, '/healthz/ready')).status === 503)
    expect((await ask(one, '/app-health/api/readyz')).status).to.equal(204)
    expect((await ask(one, '/app-health/api/livez')).status).to.equal(418)
    await fetch(`http://127.0.0.1:${one.adminPort}/configure`, { method: 'POST' })
    expect((await ask(one, '/healthz/ready')).status).to.equal(200)
    const page = await (await ask(one, '/stats/prometheus')).text()
    expect(page).to.match(/^mesh_agent_startup_duration_seconds \d/m)
    expect(page).to.match(/^mesh_agent_scrapes_total 1$/m)
    expect(page).to.match(/^mesh_agent_scrape_failures_total\{type="application"\} 1$/m)
    expect(page).to.match(/^mesh_agent_process_cpu_seconds_total \d/m)
    expect(page).to.match(/^mesh_agent_mesh_build\{component="agent",tag="/m)
    const documented = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8').split('## Of the agent')[1] ?? ''
    const rows = [...documented.matchAll(/^\| `(\w+)` +\| (\w+) /gm)].map(([, name, type]) => `${name} ${type}`)
    const own = await (await ask(one, '/metrics')).text()
    const shown = [...own.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`)
    const all = [...rows, ...withoutSeries.map(({ name, type }) => `${name} ${type}`)]
    expect(shown.filter((metric) => !/^(actor|process|nodejs)_/.test(metric)).sort()).to.deep.equal(all.sort())
    expect(all).to.include.members(specifiedForAgent)
    if ((await missingParser()) !== undefined) return
    const accept = 'application/openmetrics-text'
    const open = await ask(one, '/metrics', { headers: { accept } })
    expect(open.headers.get('content-type')).to.equal(mediaTypes.openmetrics)
    expect(parseMetrics(await open.text(), 'openmetrics').length).to.equal(parseMetrics(own, 'text').length)
    expect(parseMetrics(page, 'text').length).to.equal(parseMetrics(own, 'text').length)
  })

  it('shuts the agent down on POST /quitquitquit, as SIGTERM does', async () => {
    const one = agent({ env: { TERMINATION_DRAIN_DURATION_SECONDS: '1' } })
    await one.start()
    await until('the status server', async () => (await ask(one, '/healthz/ready')).status === 503)
    expect((await ask(one, '/quitquitquit')).status).to.equal(405)
    expect(await (await ask(one, '/quitquitquit', { method: 'POST' })).text()).to.equal('OK')
    await until('the port to be closed', () =>
      ask(one, '/healthz/ready').then(
        () => false,
        () => true,
      ),
    )
    await until('the order to drain', async () => (await one.admin('/asked')).includes('drain_listeners'))
    expect(await one.ended()).to.equal(0)
    expect(one.output).to.contain('shutting down: asked by /quitquitquit')
  })

  it('is retried while its port is taken, and the proxy runs without it', async () => {
    const taken = createTcpServer()
    servers.push(taken)
    await new Promise<void>((resolve) => taken.listen(0, '::', resolve))
    const one = agent()
    one.statusPort = (taken.address() as AddressInfo).port
    await one.start()
    await until('the line', () => one.output.includes(`status server cannot listen on port ${one.statusPort}`))
    await new Promise((resolve) => taken.close(resolve))
    await until('the port to be had', async () => (await ask(one, '/healthz/ready')).status === 503)
  })

  it('rejects an invalid variable with its name before anything is started', async () => {
    const one = agent({ env: { MESH_ORCH_APP_PROBERS: '{"/readyz":{"httpGet":{"port":1}}}' } })
    await one.launch()
    expect(await one.ended()).to.equal(255)
    expect(one.output).to.contain('environment variable MESH_ORCH_APP_PROBERS: "/readyz" is not /app-health/<container>/livez')
    expect(one.output).not.to.contain('epoch')
  })
})
