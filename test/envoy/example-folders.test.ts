/** The examples that a bare Envoy runs, with their own documents and bootstrap. Each folder has a check here. */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const examples = fileURLToPath(new URL('../../examples', import.meta.url))
const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

/** What is asked of each example, by its folder: the gateway's port, and the applications at 9080 and 9081. */
const checks: Readonly<Record<string, (port: number, first: HttpBackend) => Promise<void>>> = {
  'bare-envoy': async (port) => {
    expect((await call('127.0.0.1', port, '/')).body).to.equal('first')
  },
  'traffic-split': async (port) => {
    const bodies = await Promise.all(Array.from({ length: 200 }, async () => (await call('127.0.0.1', port, '/')).body))
    expect(bodies.filter((body) => body === 'first').length).to.be.within(140, 199)
    for (let count = 0; count < 5; count++) expect((await call('127.0.0.1', port, '/', { headers: { 'x-tester': 'yes' } })).body).to.equal('second')
  },
  'external-service': async (port, first) => {
    first.failures.push(503, 503)
    expect((await call('127.0.0.1', port, '/api/things')).status).to.equal(200)
    expect([first.seen.at(-1)?.path, first.seen.at(-1)?.headers.host]).to.deep.equal(['/things', 'api.example.com'])
    expect((await call('127.0.0.1', port, '/')).status).to.equal(404)
  },
  tokens: async (port) => {
    const token = readFileSync(join(examples, 'tokens/token'), 'utf8').trim()
    const asked = async (path: string, bearer?: string) =>
      (await call('127.0.0.1', port, path, bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } })).status
    expect([await asked('/'), await asked('/api/'), await asked('/', token), await asked('/', token.replace(/[^.]+$/, 'AAAA'))]).to.deep.equal([
      403, 200, 200, 401,
    ])
  },
}

/** Folders with a check of their own elsewhere (examples/README.md). */
const elsewhere = ['networks', 'operating', 'rate-limits', 'two-networks', 'two-workloads']

describe(`the examples, Envoy ${version}`, () => {
  const applications = [new HttpBackend('first'), new HttpBackend('second')] as const
  const folder = mkdtempSync(join(tmpdir(), 'mesh-examples-'))
  const running: (() => Promise<unknown>)[] = []
  before(() => Promise.all(applications.map((one) => one.start())))
  afterEach(async () => {
    for (const end of running.splice(0)) await end()
  })
  after(async () => {
    await Promise.all(applications.map((one) => one.stop()))
    rmSync(folder, { recursive: true, force: true })
  })

  it('are all run', () => {
    const folders = readdirSync(examples, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(folders.map(({ name }) => name).sort()).to.deep.equal([...Object.keys(checks), ...elsewhere].sort())
  })

  for (const [name, check] of Object.entries(checks))
    it(name, async () => {
      const service = new Service()
      running.push(() => service.dispose())
      await service.start()
      const [first, second] = applications
      const ports: Record<string, number> = {
        8000: await freePort(),
        15000: await freePort(),
        15010: service.grpcPort,
        9080: first.port,
        9081: second.port,
      }
      const placed = (path: string) => readFileSync(path, 'utf8').replace(/\b(8000|15000|15010|9080|9081)\b/g, (port) => String(ports[port]))
      for (const path of globSync(join(examples, name, 'mesh/*.yaml'))) service.write(basename(path), placed(path))
      const bootstrap = join(folder, `${name}.yaml`)
      writeFileSync(bootstrap, placed(join(examples, 'bare-envoy/envoy.yaml')))
      const envoy = spawn(binary, ['-c', bootstrap, '--concurrency', '1', '--use-dynamic-base-id', '--log-level', 'error'], { stdio: 'inherit' })
      running.unshift(() => ended(envoy))
      const port = ports[8000] as number
      await until('the gateway to answer', async () => (await call('127.0.0.1', port, '/api/')).status === 200)
      await check(port, first)
      expect(await service.rejections()).to.deep.equal([])
    })
})

async function ended(child: ChildProcess): Promise<void> {
  const closed = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await closed
}
