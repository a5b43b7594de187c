/**
 * Measures admissions: 50 a second over TLS at a server that has one core, beside the least that a webhook does on the same core; and what changes
 * of endpoints take with and without them. A real cluster has the configuration of injection.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { TestCluster } from '../../test/harness/cluster.ts'
import { establish, meshDefinitions } from '../../test/harness/mesh-definitions.ts'
import { meshPlurals } from '../cluster-config.ts'
import { addressOf, ClusterObjects, type PodPlace, podsPerService } from '../cluster-objects.ts'
import { admissionGoals, besideGoals } from '../goals.ts'
import { Load, median, percentile } from '../load.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import { rowByRow } from '../rows.ts'
import { DiscoveryServer, processUsage, spent } from '../server.ts'

const perSecond = 50
/**
 * Seconds for which code is warmed up before it is measured: so long V8 compiles it anew, on the same core, which the figures of the warm-up
 * show. Beside changes, less is enough.
 */
const warmUp = { alone: 30, beside: 10 } as const
/** Pairs of changes without and with admissions, at least: the push queue takes up to a third more or less from one pair to the next. */
const fewestPairs = 4
/** Changes of each half of a pair. */
const changesEach = 8
const [namespaces, nodes] = [10, 20]

/** What the set is run with. */
export interface WebhooksSettings {
  readonly writers: number
  readonly services: number
  readonly proxies: number
  readonly rounds: number
  readonly seconds: number
  /** The certificate of the port. */
  readonly tls: { readonly cert: string; readonly key: string }
}

/** Runs the set. */
export async function webhooks(settings: WebhooksSettings): Promise<Measure[]> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    progress('webhooks: left out: needs root on Linux, and Go, for a real cluster (test/cluster/README.md)')
    return []
  }
  const cluster = await TestCluster.start('n1=region1/zone1')
  const objects = new ClusterObjects(await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false), namespaces)
  try {
    const definitions = meshDefinitions()
    establish(cluster, ...meshPlurals.map((plural) => definitions.get(plural) ?? ''))
    cluster.stopControllers()
    await objects.addNamespace('mesh-system')
    cluster.apply(readFileSync(fileURLToPath(new URL('../../manifests/injection.yaml', import.meta.url)), 'utf8'))
    await objects.prepare(nodes)
    await objects.addServices(0, settings.services, nodes)
    return await rowByRow('webhooks', [
      { scenario: `${perSecond} admissions a second`, measure: () => admitted(cluster, settings) },
      { scenario: 'endpoint changes beside them', measure: () => beside(cluster, objects, settings) },
    ])
  } finally {
    objects.close()
    await cluster.dispose()
  }
}

const startServer = async (cluster: TestCluster, { writers, tls }: WebhooksSettings): Promise<readonly [DiscoveryServer, number]> => {
  const port = await freePort()
  const more = { files: [], orchconfig: cluster.adminConfig, certificates: tls, httpsPort: port, logLevel: 'all:error' }
  return [await DiscoveryServer.start({ writers, ...more }), port]
}

/** All threads of a process run on one core only: the first is that of the server, the second that of its clients. */
function onOneCore(pid: number, core: 0 | 1): void {
  execFileSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' })
}

/** A process of reviews, and what it has measured. */
class Reviews {
  readonly #child: ChildProcess
  #text = ''

  constructor(port: number) {
    const script = fileURLToPath(new URL('../admission-client.ts', import.meta.url))
    this.#child = spawn(process.execPath, [script, String(port), String(perSecond)], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#text += text))
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** Asks for some seconds. */
  async ask(seconds: number): Promise<{ readonly times: number[]; readonly bytes: number }> {
    this.#text = ''
    this.#child.stdin?.write(`${seconds}\n`)
    while (!this.#text.includes('\n')) {
      if (this.#child.exitCode !== null) throw new Error('the process of reviews ended')
      await pause(20)
    }
    return JSON.parse(this.#text)
  }

  end(): void {
    this.#child.kill()
  }
}

/** A minute of reviews after the code was warmed up, and the same at the bare webhook. */
async function admitted(cluster: TestCluster, settings: WebhooksSettings): Promise<Measure> {
  const { seconds, tls } = settings
  const [server, port] = await startServer(cluster, settings)
  const reviews = new Reviews(port)
  try {
    onOneCore(server.pid, 0)
    onOneCore(reviews.pid, 1)
    const before = processUsage(server.pid).rss
    const warming = await reviews.ask(warmUp.alone)
    const rss: number[] = []
    const then = await server.usage()
    const sampled = new AbortController()
    const sampling = sampleRss(server.pid, rss, sampled.signal)
    const { times, bytes } = await reviews.ask(seconds)
    sampled.abort()
    await sampling
    const { cpu, threads } = spent(await server.usage(), then)
    const bare = await bareAdmitted(seconds / 2, tls)
    const tenth = Math.max(1, Math.floor(rss.length / 10))
    const [first, last] = [Math.min(...rss.slice(0, tenth)), Math.min(...rss.slice(-tenth))]
    const p99 = percentile(times, 0.99)
    const ms = (value: number) => value.toFixed(1)
    return {
      ...{ scenario: `${perSecond} admissions a second`, variant: 'one core', cpu, mib: 0, rss: last, threads },
      figures: {
        ...{ seconds, admissions: times.length, 'bytes an answer': Math.round(bytes / times.length), load: loadavg()[0]?.toFixed(0) ?? '' },
        ...{ 'p50 ms': ms(percentile(times, 0.5)), 'p99 ms': ms(p99), 'slowest ms': ms(times.at(-1) ?? Number.NaN) },
        'p99, slowest ms of the warm-up, and bare': [warming.times, bare.warming]
          .map((each) => [0.99, 1].map((share) => ms(percentile(each, share))).join(', '))
          .join('; '),
        ...{ 'bare p50, p99, slowest ms': [0.5, 0.99, 1].map((share) => ms(percentile(bare.times, share))).join(', ') },
        ...{ 'CPU ms each': ms((cpu * 1000) / times.length), 'bare CPU ms each': ms((bare.cpu * 1000) / bare.times.length) },
        ...{ 'its thread, CPU ms each': ms(((threads.webhooks ?? Number.NaN) * 1000) / times.length) },
        'RSS MiB before, and least of the first and last tenth': [before, first, last].map((mib) => mib.toFixed(0)).join(', '),
      },
      goals: admissionGoals(p99, last - first),
    }
  } finally {
    reviews.end()
    await server.kill()
  }
}

async function sampleRss(pid: number, rss: number[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    rss.push(processUsage(pid).rss)
    await pause(500, undefined, { signal }).catch(() => undefined)
  }
}

/** The same reviews at `bench/bare-webhook.ts`. */
async function bareAdmitted(seconds: number, { cert, key }: WebhooksSettings['tls']): Promise<{ warming: number[]; times: number[]; cpu: number }> {
  const port = await freePort()
  const script = fileURLToPath(new URL('../bare-webhook.ts', import.meta.url))
  const child = spawn(process.execPath, [script, String(port), cert, key], { stdio: ['ignore', 'pipe', 'inherit'] })
  const reviews = new Reviews(port)
  try {
    await new Promise((resolve) => child.stdout?.once('data', resolve))
    onOneCore(child.pid as number, 0)
    onOneCore(reviews.pid, 1)
    const { times: warming } = await reviews.ask(warmUp.alone)
    const then = processUsage(child.pid as number).cpu
    const { times } = await reviews.ask(seconds)
    return { warming, times, cpu: processUsage(child.pid as number).cpu - then }
  } finally {
    reviews.end()
    child.kill()
  }
}

/** Changes of endpoints in pairs, without and with reviews at the same time, and the other way round in every other pair. */
async function beside(cluster: TestCluster, objects: ClusterObjects, settings: WebhooksSettings): Promise<Measure> {
  const { proxies, services } = settings
  const pairs = Math.max(settings.rounds, fewestPairs)
  const [server, port] = await startServer(cluster, settings)
  const [load, reviews] = [new Load(), new Reviews(port)]
  const pods = Array.from({ length: podsPerService }, (_, pod): PodPlace => ({ service: 0, pod, moves: 0 }))
  const queueMs = { without: [] as number[], with: [] as number[] }
  const last = { without: [] as number[], with: [] as number[] }
  /** Changes for about six seconds. */
  const change = async (into: 'without' | 'with') => {
    const then = await server.usage()
    for (let round = 0; round < changesEach; round++) {
      const moved = { ...(pods[0] as PodPlace), moves: (pods[0] as PodPlace).moves + 1 }
      pods[0] = moved
      const { times } = await load.mark(addressOf(moved), () => void objects.move(moved, [...pods]))
      last[into].push(times.at(-1) ?? Number.NaN)
      await pause(500)
    }
    const { threads } = spent(await server.usage(), then)
    queueMs[into].push(((threads['push-queue'] ?? Number.NaN) * 1000) / changesEach)
  }
  try {
    await load.connect(proxies, {
      ...{ port: server.securePort, tls: true, delta: true, hosts: true, namespaces, reads: 'all', own: false, misbehaving: 0 },
    })
    await reviews.ask(warmUp.beside)
    await change('without')
    for (const figures of [queueMs, last]) figures.without.length = 0
    for (let pair = 0; pair < pairs; pair++)
      for (const half of pair % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        // Reviews go on until the changes have ended.
        let isDone = half === 'without'
        const asking = (async () => {
          while (!isDone) await reviews.ask(2)
        })()
        await change(half)
        isDone = true
        await asking
      }
    const of = (figures: typeof last) => ({ without: median(figures.without), with: median(figures.with) })
    const [arrived, queue] = [of(last), of(queueMs)]
    return {
      ...{ scenario: 'endpoint changes beside them', variant: `${proxies} proxies, ${services} services`, cpu: Number.NaN, mib: 0 },
      ...{ rss: processUsage(server.pid).rss, threads: {} },
      figures: {
        ...{ 'changes each': pairs * changesEach, load: loadavg()[0]?.toFixed(0) ?? '' },
        'last proxy without, with, ms (median)': `${arrived.without.toFixed(0)}, ${arrived.with.toFixed(0)}`,
        'push queue without, with, CPU ms a change (median of pairs)': `${queue.without.toFixed(1)}, ${queue.with.toFixed(1)}`,
        'push queue, each pair': queueMs.without.map((ms, pair) => `${ms.toFixed(1)}/${queueMs.with[pair]?.toFixed(1)}`).join(' '),
      },
      goals: besideGoals(arrived, queue),
    }
  } finally {
    load.end()
    reviews.end()
    await server.kill()
  }
}
