/** Measures the start: CPU until ready and resident memory at rest with the Mock registry, beside an empty Node process in the same run. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { withPackage } from '../package.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import { cpuOfRuns, processUsage, startCommand } from '../server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The delay from readiness to the memory measurement, in milliseconds: configuration is prepared for the first proxy meanwhile. */
const restMs = 2500
/** The number of empty processes per figure, because the CPU clock in /proc has a resolution of 10 ms. */
const emptyRuns = 10

/** A start: milliseconds and CPU seconds until ready, MiB resident at rest, and the CPU seconds of an empty Node process. */
export interface Start {
  readonly ms: number
  readonly cpu: number
  readonly rss: number
  readonly empty: number
  readonly threads: Readonly<Record<string, number>>
}

/** Measures the installed package and the source, each as the median of `rounds` starts. */
export async function start(rounds: number): Promise<Measure[]> {
  return withPackage(async (command) => {
    const variants = [
      ['package', command('pilot-discovery')],
      ['source', join(root, 'bin/pilot-discovery.js')],
    ] as const
    const measures: Measure[] = []
    for (const [variant, script] of variants) {
      await startOnce(script)
      const starts: Start[] = []
      while (starts.length < rounds) starts.push(await startOnce(script))
      const of = (value: (start: Start) => number) => starts.map(value).sort((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0
      const empty = of((one) => one.empty)
      const names = Object.keys(starts[0]?.threads ?? {})
      measures.push({
        scenario: 'start',
        variant,
        last: of((one) => one.ms),
        cpu: of((one) => one.cpu),
        mib: 0,
        rss: of((one) => one.rss),
        threads: Object.fromEntries(names.map((name) => [name, of((one) => one.threads[name] ?? 0)])),
        notes: `${(of((one) => one.cpu) / empty).toFixed(1)} times the ${empty.toFixed(3)} CPU seconds of an empty Node process`,
      })
      progress(`start, ${variant}: ${measures.at(-1)?.notes}`)
    }
    return measures
  })
}

/** Starts `pilot-discovery` once. */
export async function startOnce(script: string): Promise<Start> {
  const empty = cpuOfRuns(['-e', '0'], emptyRuns)
  const port = await freePort()
  const free = ['--grpcAddr', '127.0.0.1:0', '--secureGRPCAddr', '127.0.0.1:0', '--monitoringAddr', '127.0.0.1:0', '--ctrlz_port', '0']
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-ca-'))
  const began = performance.now()
  const args = [script, 'discovery', '--registries', 'Mock', '--httpAddr', `127.0.0.1:${port}`, ...free]
  const child = startCommand(args, 'ignore', { MESHD_CA_STATE_DIR: dir, MESHD_ADMIN_SOCKET: join(dir, 'run/admin.sock') })
  const ended = new Promise((resolve) => child.on('exit', resolve))
  const pid = child.pid as number
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/ready`).then(
      ({ status }) => status === 200,
      () => false,
    )
  while (child.exitCode === null && !(await isReady())) await pause(10)
  const ms = performance.now() - began
  const { cpu } = processUsage(pid)
  const threads = threadsOf(pid)
  await pause(restMs)
  const { rss } = processUsage(pid)
  child.kill()
  await ended
  rmSync(dir, { recursive: true, force: true })
  return { ms, cpu, rss, empty, threads }
}

/** Returns the CPU seconds of threads by name. Threads of the same name are added. */
function threadsOf(pid: number): Record<string, number> {
  const found: Record<string, number> = {}
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [, name = '', rest = ''] = /\((.*)\) (.*)/s.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')) ?? []
    const fields = rest.split(' ')
    const cpu = (Number(fields[11]) + Number(fields[12])) / 100
    if (cpu > 0 || name in found) found[name] = (found[name] ?? 0) + cpu
  }
  return found
}
