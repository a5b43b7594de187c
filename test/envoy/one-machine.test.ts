/** Two workloads on one machine without an orchestrator and redirection, started by the commands of its README. */
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const example = fileURLToPath(new URL('../../examples/two-workloads', import.meta.url))
const host = 'stock.demo.svc.cluster.local'
const addresses = { stock: '127.0.0.12', shop: '127.0.0.11' }
type Workload = keyof typeof addresses

const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`two workloads on one machine, Envoy ${version}`, () => {
  const service = new Service()
  const backend = new HttpBackend('stock')
  const ports = { http: 0, inbound: 0, secure: 0, gateway: 0, shop: 0, application: 0 }
  const agents = {} as Record<Workload, Agent>

  /** Writes the documents of the example with their ports replaced by free ones. */
  const write = () => {
    const free: Record<string, number> = {
      9090: ports.http,
      8443: ports.inbound,
      9080: backend.port,
      8000: ports.gateway,
      8444: ports.shop,
      9081: ports.application,
    }
    for (const name of readdirSync(join(example, 'mesh')))
      service.write(
        name,
        readFileSync(join(example, 'mesh', name), 'utf8').replace(/\b(9090|8443|9080|8000|8444|9081)\b/g, (port) => String(free[port])),
      )
  }

  const newAgent = (name: Workload) => {
    const agent = new Agent({
      binary,
      proxyConfig: { discoveryAddress: `localhost:${ports.secure}` },
      env: { MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string, TERMINATION_DRAIN_DURATION_SECONDS: '2' },
    })
    cpSync(join(example, name), agent.dir, { recursive: true })
    return agent
  }

  const request = async () => (await call(addresses.shop, ports.http, '/', { host }).catch(() => undefined))?.status ?? 0

  before(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    await backend.start()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${ports.secure}`)
    write()
    const started = service.start()
    // As in its README, nobody waits until the control plane is ready.
    await until('the admin socket', () => existsSync(service.env.MESHD_ADMIN_SOCKET as string))
    for (const name of ['stock', 'shop'] as const) agents[name] = newAgent(name)
    await Promise.all([started, ...Object.values(agents).map((agent) => agent.start())])
  })
  after(async () => {
    await Promise.all(Object.values(agents).map((agent) => agent.dispose()))
    await Promise.all([service.dispose(), backend.stop()])
  })

  it('call each other over mutual TLS with their own identities, from tokens that their agents fetched', async () => {
    for (const agent of Object.values(agents))
      await until('the proxy to be ready', async () => (await fetch(`http://127.0.0.1:${agent.readyPort}/healthz/ready`)).status === 200)
    await until('a call to arrive', async () => (await request()) === 200)
    expect(String(backend.seen.at(-1)?.headers['x-forwarded-client-cert'])).to.include('URI=spiffe://cluster.local/ns/demo/sa/shop')
    expect(await call(addresses.stock, ports.inbound, '/', { host }).catch(() => undefined), 'in plain text').to.equal(undefined)
    expect(await service.rejections()).to.deep.equal([])
  })

  it('start and work without a warning of the control plane, the agents or the proxies', async () => {
    const lines = [service.output.soFar(), ...Object.values(agents).map(({ output }) => output)].join('\n').split('\n')
    expect(lines.filter((line) => /\t(warn|warning|error|critical|fatal)\t/.test(line))).to.deep.equal([])
  })

  it('are distinguished by working directory: the commands request and wait address the proxy of their directory', async () => {
    const { stock } = agents
    const waited = await stock.run(['wait', '--url', `http://localhost:${stock.readyPort}/healthz/ready`])
    const asked = await stock.run(['request', 'GET', '/server_info'])
    expect([waited.code, asked.code]).to.deep.equal([0, 0])
    expect(asked.stdout).to.contain('sidecar~127.0.0.12~stock.demo~demo.svc.cluster.local')
  })

  it('complete active requests when they are stopped, exit with status 0, and serve again after a restart', async () => {
    const { stock } = agents
    const { promise, resolve } = Promise.withResolvers<void>()
    backend.until = promise
    const slow = call(addresses.shop, ports.http, '/slow', { host })
    await until('the call to arrive', () => backend.seen.at(-1)?.path === '/slow')
    const ended = stock.stop()
    await until('the drain to begin', () => stock.output.includes('drains its connections'))
    resolve()
    expect((await slow).status).to.equal(200)
    expect(await ended).to.equal(0)
    expect(stock.output).to.contain('the proxy ended in order')
    agents.stock = newAgent('stock')
    await stock.dispose()
    await agents.stock.start()
    await until('a call to arrive', async () => (await request()) === 200)
  })
})
