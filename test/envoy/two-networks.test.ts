/** Two networks on one machine, by the files and commands of the example. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const example = fileURLToPath(new URL('../../examples/two-networks', import.meta.url))
const host = 'stock.demo.svc.cluster.local'
const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`two networks on one machine, Envoy ${version}`, () => {
  const service = new Service()
  const backend = new HttpBackend('stock')
  const agents: Record<string, Agent> = {}
  const ports: Record<string, number> = {}
  const placed = (path: string) =>
    readFileSync(join(example, path), 'utf8').replace(/\b(9090|8443|8444|9080|9081|15443)\b/g, (port) => String(ports[port]))

  before(async () => {
    await backend.start()
    for (const port of ['9090', '8443', '8444', '9081', '15443', '15012']) ports[port] = await freePort()
    ports[9080] = backend.port
    for (const name of readdirSync(join(example, 'mesh'))) service.write(name, placed(`mesh/${name}`))
    const networks = join(service.dir, 'networks')
    writeFileSync(networks, placed('networks.yaml'))
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${ports[15012]}`, '--networksConfig', networks)
    await service.start()
    for (const [name, role] of [
      ['stock', 'sidecar'],
      ['eastwest', 'router'],
      ['shop', 'sidecar'],
    ] as const) {
      const agent = new Agent({
        binary,
        role,
        proxyConfig: { discoveryAddress: `localhost:${ports[15012]}` },
        env: { MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string, TERMINATION_DRAIN_DURATION_SECONDS: '1' },
      })
      cpSync(join(example, name), agent.dir, { recursive: true })
      agents[name] = agent
    }
    await Promise.all(Object.values(agents).map((agent) => agent.start()))
  })
  after(async () => {
    await Promise.all(Object.values(agents).map((agent) => agent.dispose()))
    await Promise.all([service.dispose(), backend.stop()])
  })

  const status = async () => (await call('127.0.0.11', ports[9090] as number, '/', { host }).catch(() => undefined))?.status ?? 0

  it('call each other by the gateway of the other network, over mutual TLS from end to end', async () => {
    await until('a call to arrive', async () => (await status()) === 200)
    expect(String(backend.seen.at(-1)?.headers['x-forwarded-client-cert'])).to.include('URI=spiffe://cluster.local/ns/demo/sa/shop')
    const { stdout } = await runCommand(['proxy-config', 'endpoints', 'shop.demo', '--name', host], service.env)
    expect(stdout).to.contain(`127.0.0.14:${ports[15443]}`).and.not.to.contain('127.0.0.12')
    expect(await service.rejections()).to.deep.equal([])
  })

  it('do not reach each other without it', async () => {
    await (agents.eastwest as Agent).stop()
    await until('calls to fail', async () => (await status()) === 503)
  })
})
