import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { anyPorts, Launched, launchers } from '../harness/launched.ts'

/** The directory for diagnostic reports and heap snapshots. */
const diagnostics = mkdtempSync(join(tmpdir(), 'mesh-diagnostics-'))

describe('process memory', () => {
  if (process.platform !== 'linux') return
  const command = [...launchers['the pinned Node'], 'discovery', '--registries', 'Mock', '--secureGRPCAddr', '', ...anyPorts]
  // `ulimit` sets the hard limit too. If that is zero already, there is nothing to lower.
  const unlimited = ['/bin/sh', '-c', 'ulimit -c unlimited 2>/dev/null; exec "$@"', 'sh', ...command]
  const started: Launched[] = []
  const launch = async (env: Record<string, string>) => {
    const launched = new Launched(unlimited, env)
    started.push(launched)
    await launched.output.says('ready after')
    return launched
  }
  after(() => {
    for (const launched of started) launched.dispose()
    rmSync(diagnostics, { recursive: true, force: true })
  })

  it('is excluded from core dumps, whose size limit is zero', async () => {
    const { pid } = await launch({})
    expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).to.match(/^Max core file size +0 +\S+ +bytes/m)
    expect(Number.parseInt(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), 16)).to.equal(0)
  })

  it('is excluded from core dumps without prlimit too, with a log line', async () => {
    const launched = await launch({ PATH: '/nowhere' })
    await launched.output.says('core dumps could not be disabled: the program prlimit is not installed; they contain no memory')
  })

  it('is written to no report or heap snapshot on signals, and other ways to reveal it are logged', async () => {
    const launched = await launch({
      NODE_OPTIONS: `--diagnostic-dir=${diagnostics} --report-on-signal --report-signal=SIGURG --heapsnapshot-signal=SIGUSR2 --inspect=127.0.0.1:0`,
    })
    await launched.output.says('--inspect=127.0.0.1:0 is set: keys and tokens of this process can be read')
    for (const signal of ['SIGURG', 'SIGUSR2', 'SIGUSR1', 'SIGTERM'] as const) launched.signal(signal)
    expect((await launched.ended).code).to.equal(0)
    expect(readdirSync(diagnostics)).to.deep.equal([])
  })
})
