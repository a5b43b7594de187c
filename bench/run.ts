/**
 * Push convergence: `npm run bench` starts the real command, connects simulated sidecars from processes of their own, changes
 * configuration, and measures how long each change takes to every proxy and what the server spends. Beside each figure
 * stands the limit: a bare `node:http2` server that writes as many bytes to as many connections, in the same run.
 *
 * npm run bench -- [--proxies 400] [--services 1000] [--rounds 5] [--modes sotw,delta] [--writers 2]
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { clusterType, endpointType, listenerType, routeType } from '../src/xds/type-urls.ts'
import type { BareCommand } from './bare.ts'
import type { LoadCommand, LoadReport } from './clients.ts'
import * as mesh from './mesh.ts'

const { values: given } = parseArgs({
  options: {
    proxies: { type: 'string', default: '400' },
    services: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    modes: { type: 'string', default: 'sotw,delta' },
    writers: { type: 'string', default: String(availableParallelism()) },
  },
})
const proxies = Number(given.proxies)
const services = Number(given.services)
const rounds = Number(given.rounds)
const writers = Number(given.writers)
const namespaces = 10
const loadProcesses = 2
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const progress = (text: string) => process.stderr.write(`${text}\n`)

/** One measured scenario. Times in milliseconds, CPU in seconds a round, sizes in MiB. */
interface Measure {
  readonly mode: string
  readonly scenario: string
  readonly p50: number
  readonly p99: number
  readonly last: number
  readonly cpu: number
  readonly bareLast: number
  readonly bareCpu: number
  readonly mib: number
  readonly rss: number
  readonly bareRss: number
  readonly threads: Readonly<Record<string, number>>
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })
}

/** User and system CPU seconds of a process, and its resident memory in MiB. */
function usage(pid: number): { cpu: number; rss: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, rss: Number(rss) / 1024 }
}

const once = <T>(child: ChildProcess, type: string): Promise<T> =>
  new Promise((resolve, reject) => {
    const listen = (message: { type: string } | string) => {
      if (message !== type && (message as { type: string }).type !== type) return
      child.off('message', listen)
      resolve(message as T)
    }
    child.on('message', listen)
    child.on('exit', (code) => reject(new Error(`a process of the bench ended with ${code}`)))
  })

/** The load in its processes: connects, then waits for markers. */
class Load {
  readonly #children: ChildProcess[]
  constructor() {
    this.#children = Array.from({ length: loadProcesses }, () => fork(here('./clients.ts')))
  }
  async connect(port: number, delta: boolean, bare: boolean): Promise<{ times: number[]; bytes: number }> {
    const share = Math.ceil(proxies / loadProcesses)
    return this.#all('connected', (index) => ({
      type: 'connect',
      port,
      count: Math.min(share, proxies - index * share),
      first: index * share,
      delta,
      namespaces,
      bare,
    }))
  }
  async mark(marker: string, change: () => void): Promise<{ times: number[]; bytes: number }> {
    const at = Date.now()
    const reports = this.#all('marked', () => ({ type: 'mark', marker, at }))
    change()
    return reports
  }
  end(): void {
    for (const child of this.#children) {
      child.removeAllListeners('exit')
      child.send({ type: 'end' } satisfies LoadCommand)
    }
  }
  async #all(type: LoadReport['type'], command: (index: number) => LoadCommand): Promise<{ times: number[]; bytes: number }> {
    const reports = await Promise.all(
      this.#children.map((child, index) => {
        const report = once<LoadReport>(child, type)
        child.send(command(index))
        return report
      }),
    )
    return {
      times: reports.flatMap((report) => [...report.times]).sort((one, other) => one - other),
      bytes: reports.reduce((sum, report) => sum + report.bytes, 0),
    }
  }
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.round(share * (sorted.length - 1)))] ?? 0
const median = (numbers: readonly number[]): number =>
  percentile(
    [...numbers].sort((one, other) => one - other),
    0.5,
  )

/** CPU seconds of each thread of the server, from its own metrics. */
async function threadCpu(port: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Object.fromEntries(
    [...text.matchAll(/^actor_cpu_seconds\{actor="([^"]+)"\} (\S+)$/gm)].map(([, actor, seconds]) => [actor as string, Number(seconds)]),
  )
}

interface Bare {
  readonly load: Load
  readonly child: ChildProcess
  readonly connect: { last: number; cpu: number }
}

/** Starts the bare server with responses of the given sizes and connects as many sidecars. */
async function startBare(sizes: Record<string, number>): Promise<Bare> {
  const port = await freePort()
  const child = fork(here('./bare.ts'))
  child.send({ type: 'start', port, threads: writers, sizes } satisfies BareCommand)
  await once(child, 'listening')
  const load = new Load()
  const before = usage(child.pid as number).cpu
  const { times } = await load.connect(port, false, true)
  await pause(500)
  return { load, child, connect: { last: percentile(times, 1), cpu: usage(child.pid as number).cpu - before } }
}

async function barePush(bare: Bare, mib: number): Promise<{ last: number; cpu: number }> {
  const size = Math.max(100, Math.round((mib * 1_048_576) / proxies))
  const before = usage(bare.child.pid as number).cpu
  const lasts: number[] = []
  for (let round = 0; round < rounds; round++) {
    const marker = `bare-${round}-${Date.now()}`
    const { times } = await bare.load.mark(marker, () => bare.child.send({ type: 'push', marker, size } satisfies BareCommand))
    lasts.push(percentile(times, 1))
    await pause(200)
  }
  return { last: median(lasts), cpu: (usage(bare.child.pid as number).cpu - before) / rounds }
}

async function measureMode(delta: boolean): Promise<Measure[]> {
  const mode = delta ? 'delta' : 'sotw'
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
  const put = (name: string, text: string) => {
    writeFileSync(join(dir, `.${name}`), text)
    renameSync(join(dir, `.${name}`), join(dir, name))
  }
  for (const [name, text] of mesh.files(services, namespaces)) put(name, text)
  const [grpc, http, monitoring] = [await freePort(), await freePort(), await freePort()]
  const address = (port: number) => `127.0.0.1:${port}`
  const args = [
    here('../bin/pilot-discovery.js'),
    'discovery',
    '--registries',
    'Mock',
    '--configDir',
    dir,
    '--grpcAddr',
    address(grpc),
    '--httpAddr',
    address(http),
    '--monitoringAddr',
    address(monitoring),
    '--writers',
    String(writers),
    '--log_output_level',
    'all:error',
  ]
  const server = spawn(process.execPath, args, { env: { ...process.env, PILOT_MOCK_SERVICES: '0' }, stdio: ['ignore', 'inherit', 'inherit'] })
  const pid = server.pid as number
  const measures: Measure[] = []
  const load = new Load()
  let bare: Bare | undefined
  try {
    progress(`${mode}: starting with ${services} services`)
    while (
      !(await fetch(`http://127.0.0.1:${http}/ready`).then(
        (answer) => answer.ok,
        () => false,
      ))
    )
      await pause(50)
    const start = usage(pid)
    const threads = await threadCpu(monitoring)
    progress(`${mode}: connecting ${proxies} sidecars`)
    const connected = await load.connect(grpc, delta, false)
    await pause(1000)
    const after = usage(pid)
    const each = connected.bytes / proxies
    bare = await startBare({ [clusterType]: each * 0.25, [endpointType]: each * 0.3, [listenerType]: each * 0.01, [routeType]: each * 0.44 })
    const mib = (bytes: number) => bytes / 1_048_576
    const spent = (now: Record<string, number>, then: Record<string, number>) =>
      Object.fromEntries(Object.entries(now).map(([name, seconds]) => [name, (seconds - (then[name] ?? 0)) / 1]))
    measures.push({
      mode,
      scenario: 'connect storm',
      p50: percentile(connected.times, 0.5),
      p99: percentile(connected.times, 0.99),
      last: percentile(connected.times, 1),
      cpu: after.cpu - start.cpu,
      bareLast: bare.connect.last,
      bareCpu: bare.connect.cpu,
      mib: mib(connected.bytes),
      rss: after.rss,
      bareRss: usage(bare.child.pid as number).rss,
      threads: spent(await threadCpu(monitoring), threads),
    })
    for (const scenario of ['endpoint change', 'route change', 'service added'] as const) {
      const then = await threadCpu(monitoring)
      const before = usage(pid)
      const all: number[] = []
      const lasts: number[] = []
      let bytes = 0
      for (let round = 0; round < rounds; round++) {
        progress(`${mode}: ${scenario} ${round + 1}/${rounds}`)
        const change = mesh.change(scenario, round, services, namespaces)
        const { times, bytes: came } = await load.mark(change.marker, () => put(change.file, change.text))
        all.push(...times)
        lasts.push(percentile(times, 1))
        await pause(1000)
        bytes += came
      }
      const now = usage(pid)
      all.sort((one, other) => one - other)
      const size = mib(bytes) / rounds
      const limit = await barePush(bare, size)
      const perRound = Object.fromEntries(Object.entries(spent(await threadCpu(monitoring), then)).map(([name, seconds]) => [name, seconds / rounds]))
      measures.push({
        mode,
        scenario,
        p50: percentile(all, 0.5),
        p99: percentile(all, 0.99),
        last: median(lasts),
        cpu: (now.cpu - before.cpu) / rounds,
        bareLast: limit.last,
        bareCpu: limit.cpu,
        mib: size,
        rss: now.rss,
        bareRss: usage(bare.child.pid as number).rss,
        threads: perRound,
      })
    }
  } finally {
    load.end()
    bare?.load.end()
    bare?.child.kill()
    server.kill()
    rmSync(dir, { recursive: true, force: true })
  }
  return measures
}

function table(measures: readonly Measure[]): string {
  const round = (value: number, digits = 0) => value.toFixed(digits)
  const rows = measures.map((m) => [
    m.mode,
    m.scenario,
    round(m.p50),
    round(m.p99),
    round(m.last),
    round(m.bareLast),
    round(m.cpu, 2),
    round(m.bareCpu, 2),
    m.bareCpu > 0 ? `${round(m.cpu / m.bareCpu, 1)}x` : '-',
    round(m.mib, 1),
    round(m.rss),
    round(m.bareRss),
  ])
  const head = ['mode', 'scenario', 'p50 ms', 'p99 ms', 'last ms', 'bare last ms', 'CPU s', 'bare CPU s', 'ratio', 'MiB', 'RSS MiB', 'bare RSS MiB']
  const threads = measures.map(
    (m) =>
      `- ${m.mode}, ${m.scenario}: ${Object.entries(m.threads)
        .map(([name, seconds]) => `${name} ${round(seconds, 2)}`)
        .join(', ')}`,
  )
  return [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => ' --- |').join('')}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
    'CPU seconds of each thread:',
    ...threads,
  ].join('\n')
}

const measures: Measure[] = []
for (const mode of given.modes.split(',')) measures.push(...(await measureMode(mode === 'delta')))
const out = here('./out')
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'bench.json'), JSON.stringify({ proxies, services, rounds, writers, measures }, null, 2))
console.log(table(measures))
process.exit(0)
