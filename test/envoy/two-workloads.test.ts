/** The example of the README: two workloads of one machine, from the files that users have, with ports that are free. */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { agentScript } from '../harness/agent.ts'
import { HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { send } from '../harness/raw-http.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const example = fileURLToPath(new URL('../../examples/two-workloads', import.meta.url))
const host = 'stock.demo.svc.cluster.local'

describe('two workloads of one machine', function () {
  this.timeout(60_000)
  const dir = mkdtempSync(join(tmpdir(), 'mesh-example-'))
  const application = new HttpBackend('stock')
  const service = new Service()
  const agents: ChildProcess[] = []
  let output = ''
  let outbound = 0
  let inbound = 0

  before(async () => {
    await application.start()
    const free = new Map([['9080', application.port]])
    cpSync(example, dir, { recursive: true })
    for (const file of readdirSync(dir, { recursive: true, withFileTypes: true }))
      if (file.isFile()) await exchangePorts(join(file.parentPath, file.name), free)
    outbound = free.get('9090') as number
    inbound = free.get('8443') as number
    cpSync(join(dir, 'mesh'), service.dir, { recursive: true })
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${free.get('15012')}`)
    await service.start()
    const path = `${dirname(envoyBinaries().at(-1)?.path as string)}:${process.env.PATH}`
    for (const workload of ['stock', 'shop']) {
      const env = { ...process.env, PATH: path, MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string }
      const agent = spawn(process.execPath, [agentScript, 'proxy'], { cwd: join(dir, workload), env })
      for (const stream of [agent.stdout, agent.stderr]) stream.on('data', (bytes) => (output += bytes))
      agents.push(agent)
    }
  })

  after(async () => {
    const ended = agents.map((agent) => agent.exitCode ?? new Promise((resolve) => agent.on('exit', resolve)))
    for (const agent of agents) for (const signal of ['SIGTERM', 'SIGTERM'] as const) agent.kill(signal)
    await Promise.all(ended)
    await service.dispose()
    await application.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  it('speak mutual TLS, and nobody else is let in', async () => {
    const call = () => send('127.0.0.11', outbound, { host: `${host}:${outbound}` })
    await until('a call to arrive', async () => (await call()) === 200, 40_000).catch((error) => expect.fail(`${error.message}: ${output}`))
    expect(application.seen.at(-1)?.headers['x-forwarded-client-cert']).to.include('URI=spiffe://cluster.local/ns/demo/sa/shop')
    expect(await send('127.0.0.12', inbound, { host }), 'plain text').to.equal(0)
  })
})

/** Exchanges each port of a file for a free one, the same for the same. */
async function exchangePorts(file: string, free: Map<string, number>): Promise<void> {
  const text = readFileSync(file, 'utf8')
  for (const [port] of text.matchAll(/\b(9\d{3}|8443|15\d{3})\b/g)) if (!free.has(port)) free.set(port, await freePort())
  writeFileSync(
    file,
    text.replace(/\b(9\d{3}|8443|15\d{3})\b/g, (port) => String(free.get(port))),
  )
}
