import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { anyPorts } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const entry = file('bin/pilot-discovery.js')

describe('the log of pilot-discovery', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-log-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const start = (flags: readonly string[], env: NodeJS.ProcessEnv = process.env) =>
    spawn(process.execPath, [entry, 'discovery', '--registries', 'Mock', ...anyPorts, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env })

  /** Runs the service with an unread stdout until the log file reports readiness. Resolves to its exit status and log. */
  const run = async (flags: readonly string[], treat: (child: ReturnType<typeof spawn>) => Promise<void>) => {
    const path = join(dir, 'all.log')
    const child = start(['--log_target', 'stdout', '--log_target', path, ...flags])
    const log = () => readFileSync(path, 'utf8')
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

  it('is read by pino-pretty, with the documented options', async () => {
    const [, options = ''] = /--log_as_json \| npx pino-pretty (.*)$/m.exec(readFileSync(file('docs/operation.md'), 'utf8')) ?? []
    const child = start(['--log_as_json', '--log_output_level', 'ads:debug', '--log_caller', 'default', '--log_stacktrace_level', 'default:info'])
    const pretty = spawn('bash', ['-c', `exec "$0" "$1" ${options}`, process.execPath, fileURLToPath(import.meta.resolve('pino-pretty/bin.js'))])
    child.stdout.pipe(pretty.stdin)
    let shown = ''
    pretty.stdout.on('data', (bytes) => (shown += bytes))
    const ended = new Promise((resolve) => pretty.on('close', resolve))
    try {
      await until('the service to be ready', () => shown.includes('ready after'))
    } finally {
      child.kill('SIGTERM')
    }
    await ended
    const lines = shown.trimEnd().split('\n')
    expect(lines.filter((line) => !/^\[\d\d:\d\d:\d\d\.\d{3}\] (DEBUG|INFO|WARN)( <\w+\/[\w-]+\.ts:\d+>)?: \S|^ *at /.test(line))).to.deep.equal([])
    expect(lines.filter((line) => line.includes('ready after'))).to.have.length(1)
    expect(shown).to.match(/INFO <discovery\/[\w-]+\.ts:\d+>: shutting down: SIGTERM\n *at .*\n *at /)
  })

  it('has the error that ends the process as its last line', async () => {
    const path = join(dir, 'all.log')
    const env = { ...process.env, NODE_OPTIONS: `--require ${file('test/harness/throw-on-signal.cjs')}` }
    const child = start(['--log_target', path], env)
    const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)))
    await until('the service to be ready', () => readFileSync(path, 'utf8').includes('ready after'))
    child.kill('SIGUSR2')
    expect(await ended).to.equal(1)
    expect(readFileSync(path, 'utf8')).to.match(/\tfatal\ta bug\nTypeError: a bug\n( +at .*\n)+$/)
  })
})
