import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { anyPorts } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

const entry = fileURLToPath(new URL('../../bin/pilot-discovery.js', import.meta.url))

describe('the log of pilot-discovery', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-log-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  /** Runs the service with an unread stdout until the log file reports readiness. Resolves to its exit status and log. */
  const run = async (flags: readonly string[], treat: (child: ReturnType<typeof spawn>) => Promise<void>) => {
    const file = join(dir, 'all.log')
    const child = spawn(
      process.execPath,
      [entry, 'discovery', '--registries', 'Mock', ...anyPorts, '--log_target', 'stdout', '--log_target', file, ...flags],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const log = () => readFileSync(file, 'utf8')
    const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)))
    try {
      await until('the service to be ready', () => log().includes('ready after'))
      const address = /HTTP ([^,\s]+)/.exec(log())?.[1] ?? ''
      await treat(child)
      expect((await fetch(`http://${address}/ready`)).status).to.equal(200)
    } finally {
      child.kill('SIGTERM')
    }
    return { status: await ended, log: log() }
  }

  it('continues when stdout and stderr are closed', async () => {
    const { status, log } = await run([], async (child) => {
      child.stdout?.destroy()
      child.stderr?.destroy()
      child.kill('SIGHUP')
      await until('the loss to be reported', () => readFileSync(join(dir, 'all.log'), 'utf8').includes('EPIPE'))
    })
    expect(log).to.contain('cannot write the log to --log_target stdout: EPIPE').and.to.contain('shutting down')
    expect(status).to.equal(0)
  })

  it('does not block the service while nobody reads its stdout', async () => {
    // One line for each document: more than the 64 KiB that a pipe holds.
    const documents = Array.from(
      { length: 1000 },
      (_, index) => `{kind: ServiceEntry, apiVersion: networking.mesh.io/v1, metadata: {name: s${index}}, spec: {}}`,
    )
    mkdirSync(join(dir, 'config'))
    writeFileSync(join(dir, 'config', 'many.yaml'), documents.join('\n---\n'))
    const { status, log } = await run(['--configDir', join(dir, 'config')], async () => {})
    expect(log.length).to.be.greaterThan(100_000)
    expect(log).to.contain('shutting down')
    expect(status).to.equal(0)
  })

  it('does not prevent the start if a directory is in the place of its files, and reports it', async () => {
    mkdirSync(join(dir, 'taken'))
    const taken = join(dir, 'taken')
    const { status, log } = await run(['--log_target', taken, '--log_rotate', taken], async () => {})
    expect(log)
      .to.contain(`cannot write the log to --log_target ${taken}: EISDIR`)
      .and.to.contain(`cannot write the log to --log_rotate ${taken}: EISDIR`)
    expect(status).to.equal(0)
  })
})
