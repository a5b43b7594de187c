/**
 * Measures the installed agent: CPU from its start until it executes the proxy, of `wait` and of `request`, each as a multiple of an empty
 * Node process; and memory and CPU at rest, connected to a real control plane, beside bare Node with the same built-in modules.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Goal } from '../goals.ts'
import { withPackage } from '../package.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import { cpuOfRuns, startCommand } from '../server.ts'

/** The built-in modules of Node that the agent loads. */
const builtIns = ['http2', 'http', 'https', 'tls', 'dgram', 'dns', 'worker_threads', 'child_process', 'crypto', 'fs', 'async_hooks', 'vm']
/** The number of runs per figure, because the CPU clock of exited processes has a resolution of 10 ms. */
const runs = 10
const restSeconds = 60
/** The goals: `start` and `command` as multiples of an empty Node process, memory in MB, CPU in milliseconds per minute. */
const most = { start: 8, command: 5, anonymous: 35, resident: 70, cpu: 60 }

/** Returns the path of a command of a package. */
export type Command = (name: string) => string

/** Measures the installed package: the median of `rounds` starts, and one minute at rest after one minute. */
export function agent(rounds: number): Promise<Measure[]> {
  return withPackage(async (command) => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-agent-'))
    try {
      const empty = cpuOfRuns(['-e', '0'], runs)
      const measures = [await starts(command, dir, rounds, empty), ...(await commands(command, dir, empty)), await rest(command, dir)]
      for (const { scenario, variant, notes } of measures) progress(`${scenario}, ${variant}: ${notes}`)
      return measures
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
}

/** Returns a measure as a multiple of an empty Node process. */
function timesEmpty(scenario: string, variant: string, { cpu, empty, atMost }: { cpu: number; empty: number; atMost: number }): Measure {
  const goal: Goal = { what: 'CPU, times an empty Node process', seen: cpu / empty, most: atMost, unit: 'times bare' }
  const notes = `${(cpu / empty).toFixed(1)} times the ${empty.toFixed(3)} CPU seconds of an empty Node process`
  return { scenario, variant, cpu, mib: 0, rss: 0, threads: {}, notes, goals: [goal] }
}

/** Starts an agent in the directory `cwd` with the program `binaryPath` as its proxy. */
async function startAgent(command: Command, cwd: string, binaryPath: string, given: { config?: object; env?: Record<string, string> } = {}) {
  const config = { binaryPath, proxyAdminPort: await freePort(), statusPort: await freePort(), ...given.config }
  const ports = { PROXY_STATUS_PORT: String(await freePort()), PROXY_PROMETHEUS_PORT: String(await freePort()) }
  const env = { ...process.env, ...ports, MESH_WRAPPER: '', PROXY_CONFIG: JSON.stringify(config), ...given.env }
  return spawn(process.execPath, [command('pilot-agent'), 'proxy', 'sidecar'], { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] })
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.on('exit', resolve))
  if (child.exitCode !== null) return
  child.kill()
  child.kill()
  await ended
}

/** Starts the agent once in the directory `dir`. Resolves with its CPU seconds until it executes the proxy. */
export async function cpuUntilProxy(command: Command, dir: string): Promise<number> {
  const report = join(dir, 'cpu')
  const proxy = join(dir, 'reports-and-sleeps')
  writeFileSync(proxy, `#!/bin/sh\ncat /proc/$PPID/task/*/schedstat > ${report}.new; mv ${report}.new ${report}; exec sleep 1000\n`, { mode: 0o755 })
  rmSync(report, { force: true })
  const child = await startAgent(command, dir, proxy)
  while (!existsSync(report)) {
    if (child.exitCode !== null) throw new Error('the agent ended before it started the proxy')
    await pause(10)
  }
  const cpu = schedCpu(readFileSync(report, 'utf8'))
  await end(child)
  return cpu
}

async function starts(command: Command, dir: string, rounds: number, empty: number): Promise<Measure> {
  const figures: number[] = []
  // The first start fills the compile cache.
  for (let round = 0; round <= rounds; round++) figures.push(await cpuUntilProxy(command, dir))
  const [first = 0, ...others] = figures
  const cpu = others.sort((one, other) => one - other)[Math.floor(others.length / 2)] ?? first
  const measure = timesEmpty('agent start', 'until the proxy is executed', { cpu, empty, atMost: most.start })
  return { ...measure, notes: `${measure.notes}; ${(first / empty).toFixed(1)} times without the cache of compiled code` }
}

/** Returns the CPU seconds of threads from the lines of their `/proc/<pid>/task/<thread>/schedstat`. */
function schedCpu(lines: string): number {
  const nanoseconds = lines
    .trim()
    .split('\n')
    .map((line) => Number(line.split(' ')[0]))
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9
}

function cpuOf(pid: number): number {
  return schedCpu(
    readdirSync(`/proc/${pid}/task`)
      .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').trim())
      .join('\n'),
  )
}

/** Measures `wait` and `request`. */
async function commands(command: Command, dir: string, empty: number): Promise<Measure[]> {
  const cpus = await cpuOfCommands(command, dir, runs)
  return Object.entries(cpus).map(([name, cpu]) => timesEmpty('agent command', name, { cpu, empty, atMost: most.command }))
}

/** Resolves with the mean CPU seconds of `wait` and `request` against a server in a process of its own that responds at once. */
export async function cpuOfCommands(command: Command, dir: string, times: number): Promise<Record<'wait' | 'request', number>> {
  const port = await freePort()
  const server = spawn(process.execPath, ['-e', `require('http').createServer((_, answer) => answer.end('ok')).listen(${port})`])
  try {
    while (
      !(await fetch(`http://127.0.0.1:${port}`).then(
        () => true,
        () => false,
      ))
    )
      await pause(10)
    const env = { ...process.env, PROXY_CONFIG: JSON.stringify({ proxyAdminPort: port }) }
    const cpu = (...args: string[]) => {
      const run = (count: number) => cpuOfRuns([command('pilot-agent'), ...args], count, { cwd: dir, env })
      run(1)
      return run(times)
    }
    return { wait: cpu('wait', '--url', `http://localhost:${port}`), request: cpu('request', 'GET', '/stats') }
  } finally {
    server.kill()
  }
}

/** Measures memory and CPU of the agent at rest, and of bare Node. */
async function rest(command: Command, dir: string): Promise<Measure> {
  const load = builtIns.map((name) => `require('node:${name}')`).join()
  const bare = spawn(process.execPath, ['-e', `${load}; setInterval(() => {}, 1e6)`])
  try {
    const { cpu, ...own } = await atRest(command, dir)
    const other = memoryOf(bare.pid as number)
    const mb = (bytes: number) => bytes / 1e6
    const goals: Goal[] = [
      { what: 'anonymous memory', seen: mb(own.anonymous), most: most.anonymous, unit: 'MB' },
      { what: 'resident memory', seen: mb(own.resident), most: most.resident, unit: 'MB' },
      { what: 'CPU a minute', seen: cpu * 1000, most: most.cpu, unit: 'ms' },
    ]
    const figures = ({ anonymous, resident }: Memory) => `${mb(anonymous).toFixed(1)} MB anonymous, ${mb(resident).toFixed(1)} MB resident`
    const notes = `${figures(own)}, ${(cpu * 1000).toFixed(0)} ms of CPU a minute; bare Node with the same modules ${figures(other)}`
    return {
      scenario: 'agent at rest',
      variant: envoy() ? 'beside Envoy' : 'beside a program that sleeps',
      cpu,
      mib: 0,
      rss: own.resident / 2 ** 20,
      threads: {},
      notes,
      goals,
    }
  } finally {
    bare.kill()
  }
}

/**
 * Resolves with the memory of an agent after two minutes, and its CPU seconds in the second of them, beside a real control plane and an idle
 * Envoy, if one is available.
 */
export async function atRest(command: Command, dir: string): Promise<Memory & { cpu: number }> {
  const own = mkdtempSync(join(dir, 'rest-'))
  const control = await startControlPlane(command, join(own, 'control'))
  const child = await startAgent(command, workload(command, control, join(own, 'home')), envoy() ?? sleeper(own), {
    config: { discoveryAddress: `localhost:${control.port}` },
    env: {
      POD_NAME: 'bench',
      POD_NAMESPACE: 'bench',
      SERVICE_ACCOUNT: 'bench',
      MESH_META_DNS_CAPTURE: 'true',
      DNS_PROXY_ADDR: `localhost:${await freePort()}`,
    },
  })
  try {
    await pause(restSeconds * 1000)
    const before = cpuOf(child.pid as number)
    await pause(restSeconds * 1000)
    if (child.exitCode !== null) throw new Error('the agent ended')
    const cpu = ((cpuOf(child.pid as number) - before) * 60) / restSeconds
    return { cpu, ...memoryOf(child.pid as number) }
  } finally {
    await end(child)
    await end(control.child)
  }
}

/** Bytes. */
export interface Memory {
  readonly anonymous: number
  readonly resident: number
}

/** Returns the memory of a process in bytes. */
function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  return { anonymous: bytes('RssAnon'), resident: bytes('VmRSS') }
}

interface ControlPlane {
  readonly child: ChildProcess
  readonly port: number
  readonly env: Readonly<Record<string, string>>
}

async function startControlPlane(command: Command, state: string): Promise<ControlPlane> {
  const [port, http] = [await freePort(), await freePort()]
  const env = { MESHD_CA_STATE_DIR: state, MESHD_ADMIN_SOCKET: join(state, 'run/admin.sock') }
  const addresses = [
    '--grpcAddr',
    '127.0.0.1:0',
    '--secureGRPCAddr',
    `127.0.0.1:${port}`,
    '--monitoringAddr',
    '127.0.0.1:0',
    '--httpAddr',
    `127.0.0.1:${http}`,
  ]
  const child = startCommand([command('pilot-discovery'), 'discovery', '--registries', 'Mock', ...addresses], 'ignore', env)
  while (
    !(await fetch(`http://127.0.0.1:${http}/ready`).then(
      ({ status }) => status === 200,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error('the control plane ended')
    await pause(50)
  }
  return { child, port, env }
}

/** Creates a directory with the files of a workload: a token and the control plane's root. Returns its path. */
function workload(command: Command, { env }: ControlPlane, home: string): string {
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [command('pilot-discovery'), ...args], { env: { ...process.env, ...env }, stdio: 'ignore' })
  for (const folder of ['var/run/secrets/tokens', 'var/run/secrets/mesh']) mkdirSync(join(home, folder), { recursive: true })
  run('token', '-n', 'bench', '--service-account', 'bench', '-o', join(home, 'var/run/secrets/tokens/mesh-token'))
  run('ca', 'export', '--to', join(home, 'var/run/secrets/mesh'))
  return home
}

/** Returns an available Envoy: the one that `ENVOY_BIN` names, or the newest one that the tests installed. */
function envoy(): string | undefined {
  return [process.env.ENVOY_BIN, fileURLToPath(new URL('../../.cache/envoy/1.40/envoy', import.meta.url))].find((path) => path && existsSync(path))
}

function sleeper(dir: string): string {
  const path = join(dir, 'sleeps')
  writeFileSync(path, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 })
  return path
}
