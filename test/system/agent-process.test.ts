import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Agent, type AgentOptions } from '../harness/agent.ts'
import { agentScript } from '../harness/commands.ts'
import { runCommand } from '../harness/service.ts'
import { until } from '../harness/until.ts'

describe('pilot-agent proxy', () => {
  const agents: Agent[] = []
  const agent = (options: AgentOptions = {}) => {
    const made = new Agent(options)
    agents.push(made)
    return made
  }
  afterEach(async () => {
    for (const one of agents.splice(0)) await one.dispose()
  })

  const isAlive = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }

  it('starts the proxy when its socket exists, drains it on SIGTERM, and exits with 0', async () => {
    const one = agent({ env: { TERMINATION_DRAIN_DURATION_SECONDS: '1' } })
    await one.start()
    expect((await one.admin('/args')).split('\n')).to.include.members(['-c', 'etc/mesh/proxy/envoy-rev0.json'])
    one.signal('SIGTERM')
    await until('the order to drain', async () => (await one.admin('/asked')).includes('drain'))
    expect(await one.admin('/asked')).to.contain('POST /drain_listeners?inboundonly&graceful')
    expect(await one.ended()).to.equal(0)
    expect(one.output).to.match(/drains its connections for 1 s/)
  })

  it('gives the proxy the variables for tags of spans, unless its own environment has them', async () => {
    const one = agent({ env: { POD_NAME: 'web-1', POD_NAMESPACE: 'shop', CANONICAL_REVISION: 'v9' } })
    one.write('etc/mesh/pod/labels', 'app="web"\nversion="v1"\n')
    await one.start()
    expect(JSON.parse(await one.admin('/env'))).to.include({ CANONICAL_SERVICE: 'web', CANONICAL_REVISION: 'v9', POD_NAMESPACE: 'shop' })
  })

  it('drains all listeners of a router, and serves no DNS for it', async () => {
    const one = agent({ role: 'router', env: { TERMINATION_DRAIN_DURATION_SECONDS: '1', MESH_META_DNS_CAPTURE: 'true' } })
    await one.start()
    expect(one.output).to.contain('MESH_META_DNS_CAPTURE has no effect')
    one.signal('SIGINT')
    await until('the order to drain', async () => (await one.admin('/asked')).includes('POST /drain_listeners?graceful'))
    expect(await one.ended()).to.equal(0)
  })

  it('stops waiting at a second signal, and kills a proxy that does not exit', async () => {
    const one = agent({ standIn: { stays: true, drainStatus: 503 }, env: { TERMINATION_DRAIN_DURATION_SECONDS: '3600' } })
    await one.start()
    const pid = Number(await one.admin('/pid'))
    one.signal('SIGTERM')
    await until('the order to drain', async () => (await one.admin('/asked')).includes('drain'))
    one.signal('SIGTERM')
    expect(await one.ended()).to.equal(0)
    expect(isAlive(pid)).to.equal(false)
    expect(one.output).to.contain('the proxy could not be drained: status 503').and.to.contain('ended by SIGKILL')
  })

  for (const [what, end, status, said] of [
    ['a proxy that ends in order', { status: 0 }, 0, /info\tthe proxy ended in order/],
    ['a proxy that ends with a status', { status: 3 }, 3, /error\tthe proxy ended with status 3/],
    ['a proxy that crashes', { signal: 'SIGSEGV' }, 139, /error\tthe proxy crashed or was ended: signal SIGSEGV/],
    ['a proxy that runs out of memory', { signal: 'SIGKILL' }, 137, /error\t.*when memory runs out/],
  ] as const)
    it(`exits after ${what} with status ${status}`, async () => {
      const one = agent({ standIn: end })
      await one.start()
      await one.admin('/end').catch(() => undefined)
      expect(await one.ended()).to.equal(status)
      expect(one.output).to.match(said)
    })

  it('logs an error that nothing catches, and exits with status 1', async () => {
    const preloaded = fileURLToPath(new URL('../harness/throw-on-signal.cjs', import.meta.url))
    const one = agent({ env: { NODE_OPTIONS: `--require ${preloaded}` } })
    await one.start()
    const pid = Number(await one.admin('/pid'))
    one.signal('SIGUSR2')
    expect(await one.ended()).to.equal(1)
    expect(one.output).to.match(/\tfatal\ta bug\nTypeError: a bug\n( +at .*\n)+$/)
    await until('the proxy to be gone', () => !isAlive(pid))
  })

  it('ends the proxy with it when it is killed', async function () {
    if (process.platform !== 'linux') return this.skip()
    const one = agent()
    await one.start()
    const pid = Number(await one.admin('/pid'))
    await one.stop('SIGKILL')
    await until('the proxy to be gone', () => !isAlive(pid))
  })

  it('starts the proxy although setpriv does not support the parent death signal', async () => {
    const one = agent({ flags: ['--log_output_level', 'default:debug'] })
    one.write('bin/setpriv', '#!/bin/sh\necho "unrecognized option: pdeathsig" >&2\nexit 1\n', 0o755)
    const { PATH } = process.env
    process.env.PATH = `${one.dir}/bin:${PATH}`
    try {
      await one.start()
    } finally {
      process.env.PATH = PATH
    }
    if (process.platform === 'linux')
      await until('it to be said', () => /debug\tif the agent is killed, the proxy keeps running: .*setpriv/.test(one.output))
  })

  it('exits with 0 when it gets a signal while it starts', async () => {
    const one = agent({ env: { TERMINATION_DRAIN_DURATION_SECONDS: '0' } })
    await one.launch()
    await until('its first line', () => one.output.includes('FLAG'))
    expect(await one.stop()).to.equal(0)
  })

  it('excludes memory from its own core dumps, but not from those of the proxy', async function () {
    if (process.platform !== 'linux') return this.skip()
    const one = agent()
    await one.start()
    const filter = (pid: number) => Number.parseInt(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), 16)
    await until('the filter to be set', () => filter(one.pid) === 0)
    expect(filter(Number(await one.admin('/pid')))).to.equal(filter(process.pid))
  })

  it('reports a proxy binary that does not exist or cannot be run', async () => {
    const file = agent().write('no-program', 'text')
    for (const [binary, reason] of [
      ['./missing', 'there is no such file'],
      [tmpdir(), 'it is no file'],
      [file, 'this user may not run it'],
      ['no-such-proxy', 'it is in no folder of PATH'],
    ] as const) {
      const one = agent({ binary })
      await one.launch()
      expect(await one.ended(), binary).to.equal(1)
      expect(one.output).to.contain(`Error: the program ${JSON.stringify(binary)} cannot be run: ${reason}`)
      expect(one.output).to.match(/^\S+\terror\tthe program/m)
    }
  })

  it('does not start the proxy if a socket cannot be created', async () => {
    const one = agent()
    one.write('etc/mesh/proxy', 'no directory')
    await one.launch()
    expect(await one.ended()).to.equal(1)
    expect(one.output)
      .to.match(/^Error: (secret-agent|xds-relay): .*etc\/mesh\/proxy/m)
      .and.not.to.contain('starting the proxy')
  })

  it('closes the directory of its sockets and bootstrap to others, and does not start below one that they may write to', async () => {
    const one = agent()
    const proxy = join(one.dir, 'etc/mesh/proxy')
    mkdirSync(proxy, { recursive: true })
    chmodSync(proxy, 0o777)
    await one.start()
    expect(statSync(proxy).mode & 0o777).to.equal(0o755)
    expect(['SDS', 'XDS', 'envoy-rev0.json'].map((name) => statSync(join(proxy, name)).mode & 0o777)).to.deep.equal([0o600, 0o600, 0o600])
    await one.stop()
    chmodSync(join(one.dir, 'etc'), 0o777)
    await one.launch()
    expect(await one.ended()).to.equal(1)
    expect(one.output).to.contain(`${join(one.dir, 'etc')} has mode 0777: other users could replace what is below it (chmod o-w, or chmod +t)`)
    const orchestrated = agent({ env: { ORCHESTRATOR_SERVICE_HOST: '10.0.0.1' } })
    mkdirSync(join(orchestrated.dir, 'etc/mesh/proxy'), { recursive: true })
    chmodSync(join(orchestrated.dir, 'etc'), 0o777)
    if (process.getuid?.() === 0) await orchestrated.start()
  })

  it('ignores unknown flags with one warning each, and rejects unknown roles', async () => {
    const one = agent({ flags: ['--old', 'value', '--older=value', 'extra', '-z'] })
    await one.start()
    expect(one.output).to.contain(`"proxyAdminPort":${one.adminPort}`)
    for (const said of ['--old value', '--older=value', 'extra', '-z'])
      expect(one.output).to.contain(`\twarn\t${said} is not known and has no effect`)
    expect(one.output)
      .to.contain('\tinfo\tFLAG: --concurrency="0"\n')
      .and.to.match(/\tinfo\tVersion \S+-\S+-\S+\n/)
    const refused = await runCommand(['proxy', 'gateway'], {}, agentScript)
    expect([refused.code, refused.stderr]).to.deep.equal([255, 'Error: invalid role type "gateway": expected sidecar or router\n'])
  })
})
