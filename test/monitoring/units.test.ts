/** The units of examples/operating/systemd, as systemd reads them, and the command of discovery in them (docs/running.md). */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePorts } from '../../bench/ports.ts'
import { agentScript, discoveryScript } from '../harness/commands.ts'
import { Output } from '../harness/output.ts'
import { runCommand } from '../harness/service.ts'

const units = fileURLToPath(new URL('../../examples/operating/systemd', import.meta.url))
const names = readdirSync(units)
const textOf = (name: string) => readFileSync(join(units, name), 'utf8')

describe('the units for systemd', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-units-'))
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('are read without a complaint, and shut the services in', function () {
    if (spawnSync('systemd-analyze', ['--version']).error) return this.skip()
    const programs = join(dir, 'bin')
    mkdirSync(programs)
    for (const name of ['pilot-discovery', 'pilot-agent']) writeFileSync(join(programs, name), '#!/bin/sh\n', { mode: 0o755 })
    const placed = names.map((name) => join(dir, name))
    for (const name of names) writeFileSync(join(dir, name), textOf(name).replaceAll('/opt/mesh/node_modules/.bin/', `${programs}/`))
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['--man=no', 'verify', ...placed], { encoding: 'utf8' })
    expect([status, stdout, stderr]).to.deep.equal([0, '', ''])
    for (const name of ['pilot-discovery.service', 'pilot-agent.service']) {
      const judged = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=40', join(dir, name)], { encoding: 'utf8' })
      expect(judged.status, judged.stdout).to.equal(0)
    }
  })

  it('start a discovery that becomes ready, answers its operator and ends, with the settings of the unit', async () => {
    const text = textOf('pilot-discovery.service')
    const settings = (key: string) => [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
    const places = { '%S/': `${dir}/state/`, '%t/': `${dir}/run/`, '/etc/mesh/': `${dir}/etc/` }
    const placed = (value: string) => Object.entries(places).reduce((all, [from, to]) => all.replaceAll(from, to), value)
    const directory = (path: string) => mkdirSync(path, { recursive: true, mode: 0o700 })
    for (const name of settings('StateDirectory')) directory(join(dir, 'state', name))
    for (const name of settings('RuntimeDirectory')) directory(join(dir, 'run', name))
    cpSync(fileURLToPath(new URL('../../examples/traffic-split/mesh', import.meta.url)), join(dir, 'etc/config'), { recursive: true })
    const environment = settings('Environment').flatMap((line) => line.split(' ').map((one) => one.split('=') as [string, string]))
    const env = Object.fromEntries(environment.filter(([name]) => name !== 'PATH').map(([name, value]) => [name, placed(value)]))
    const [, ...words] = placed(settings('ExecStart')[0] ?? '').split(' ')
    const first = await freePorts(5)
    const ports = ['--grpcAddr', '--secureGRPCAddr', '--httpAddr', '--monitoringAddr'].flatMap((flag, index) => [flag, `127.0.0.1:${first + index}`])
    const [cwd = ''] = settings('WorkingDirectory').map(placed)
    const child = spawn(process.execPath, [discoveryScript, ...words, ...ports, '--ctrlz_port', String(first + 4)], {
      cwd,
      env: { ...process.env, ...env },
    })
    const output = new Output()
    output.follow(child)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    try {
      await output.says('ready after')
      await output.says(/\d+ objects from 1 file/)
      const { status, stdout } = spawnSync(process.execPath, [discoveryScript, 'proxy-status', '--json'], {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      })
      expect(status, stdout).to.equal(0)
      expect(readdirSync(join(dir, 'state/mesh-discovery/ca'))).to.include('state.json')
      output.lacks(/\t(warn|error|fatal)\t/)
    } finally {
      child.kill('SIGTERM')
    }
    expect(await ended).to.equal(0)
  })

  it('redirect with flags that the agent knows', async () => {
    const command = /^ExecStart=\S+\/pilot-agent (.*)$/m.exec(textOf('pilot-agent-redirect.service'))?.[1] ?? ''
    const { code, stdout, stderr } = await runCommand([...command.split(' '), '--dry-run'], {}, agentScript)
    expect(code, stderr).to.equal(0)
    for (const port of [15090, 15021, 15020, 22]) expect(stdout).to.match(new RegExp(`--dport ${port} -j RETURN`))
  })
})
