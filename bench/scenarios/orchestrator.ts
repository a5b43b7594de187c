/**
 * Measures following a real cluster (docs/operation.md, C1 to C7): the CPU of a start beside a bare client that lists, watches and parses the same
 * objects, memory for each pod, the time until a pod that turns ready is an endpoint of all sidecars, and changes of pods at 100 a second. The
 * objects have no kubelet: the bench writes their status.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import type { ClusterAccess } from '../../protocols/messages/orchestrator.ts'
import { TestCluster } from '../../test/harness/cluster.ts'
import { HostileRelay } from '../../test/harness/hostile-relay.ts'
import { establish, meshDefinitions } from '../../test/harness/mesh-definitions.ts'
import { BareWatch, ownPaths, shown } from '../bare-client.ts'
import { meshPlurals } from '../cluster-config.ts'
import { addressOf, ClusterObjects, type PodPlace, podsPerService } from '../cluster-objects.ts'
import { clusterReadyGoal, podChurnGoal, podMemoryGoal, podReadyGoal } from '../goals.ts'
import { Load, type LoadOptions, median, percentile } from '../load.ts'
import { type Measure, progress } from '../report.ts'
import { rowByRow } from '../rows.ts'
import { DiscoveryServer, processUsage, spent, type Usage } from '../server.ts'
import { compareWithFresh } from './convergence.ts'

const namespaces = 10
const nodes = 100
const changesPerSecond = 100
/** How long a process rests before its memory is taken, in milliseconds: its threads collect their garbage meanwhile. */
const restMs = 30_000
/** The number of services with which memory is measured: 10,000 pods. */
const manyServices = 2000
/** The bytes of a KB. */
const kb = 1000

/** The most changes that are being written: a server that is slower than they come would be asked for more and more at once, and refuses that. */
const mostUnderWay = 64
const awayScenario = 'the API server is away'
/** The number of changes while the API server cannot be reached. */
const changesAway = 200

/** The number of mesh objects. */
const meshSize = 300

interface Settings {
  readonly writers: number
  readonly services: number
  readonly rounds: number
  readonly proxies: number
  readonly seconds: number
}

/** Why the set cannot be run on this machine; undefined: it can. */
function missing(): string | undefined {
  return process.platform === 'linux' && process.getuid?.() === 0
    ? undefined
    : 'needs root on Linux, and Go, for a real cluster (test/cluster/README.md)'
}

/** Runs the set. */
export async function orchestrator(settings: Settings): Promise<Measure[]> {
  const reason = missing()
  if (reason !== undefined) {
    progress(`orchestrator: left out: ${reason}`)
    return []
  }
  const cluster = await TestCluster.start('n1=region1/zone1')
  const access = await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false)
  const objects = new ClusterObjects(access, namespaces)
  try {
    const definitions = meshDefinitions()
    establish(cluster, ...meshPlurals.map((plural) => definitions.get(plural) ?? ''))
    cluster.stopControllers()
    const bench = new Bench(cluster, access, objects, settings)
    return await rowByRow('orchestrator', [
      { scenario: 'start until ready', measure: () => bench.start() },
      { scenario: 'a pod turns ready', measure: () => bench.ready() },
      { scenario: `${changesPerSecond} changes a second`, measure: () => bench.churn() },
      { scenario: awayScenario, measure: () => bench.away() },
      { scenario: 'memory', measure: () => bench.memory() },
    ])
  } finally {
    objects.close()
    await cluster.dispose()
  }
}

class Bench {
  readonly #cluster: TestCluster
  readonly #access: ClusterAccess
  readonly #objects: ClusterObjects
  readonly #settings: Settings
  #written = 0
  /** The resident memory of a process at rest without objects, in MiB. */
  #emptyRss = Number.NaN
  /** All workloads, by service. */
  readonly #pods: PodPlace[][] = []

  constructor(cluster: TestCluster, access: ClusterAccess, objects: ClusterObjects, settings: Settings) {
    this.#cluster = cluster
    this.#access = access
    this.#objects = objects
    this.#settings = settings
  }

  /** A start beside the cluster without and with the objects, and the bare client beside both. */
  async start(): Promise<Measure> {
    const { rounds, services } = this.#settings
    await this.#objects.addNamespace('mesh-system')
    const empty = await this.#starts(rounds)
    await this.#objects.prepare(nodes)
    await this.#write(services)
    const mesh = await this.#objects.addMeshObjects(meshSize, services)
    const full = await this.#starts(rounds)
    // The bare client without objects is a process that starts.
    const [own, bare] = [full.cpu - empty.cpu, full.bare - empty.bare]
    return this.#measure(
      'start until ready',
      own,
      {
        objects: full.objects,
        'mesh objects': mesh,
        'CPU s without objects': empty.cpu.toFixed(2),
        'with them': full.cpu.toFixed(2),
        'above it': own.toFixed(2),
        'bare, whole process': full.bare.toFixed(2),
        'bare, above it': bare.toFixed(2),
        'times bare': `${(own / bare).toFixed(1)} (${(own / full.bare).toFixed(1)} of the whole process)`,
        'of its threads': shown(full.threads),
        'without objects': shown(empty.threads),
        'ready after, s': full.ready.toFixed(2),
      },
      [clusterReadyGoal(own, full.bare)],
    )
  }

  /** 10,000 pods, and the process beside a cluster without them. */
  async memory(): Promise<Measure> {
    await this.#write(manyServices)
    const server = await this.#server()
    try {
      const rss = await restingRss(server)
      const pods = manyServices * podsPerService
      const each = ((rss - this.#emptyRss) * 1_048_576) / kb / pods
      return this.#measure(
        'memory',
        0,
        {
          pods,
          services: manyServices,
          'MiB without': this.#emptyRss.toFixed(0),
          'MiB with': rss.toFixed(0),
          'KB a pod': each.toFixed(1),
        },
        [podMemoryGoal(each)],
      )
    } finally {
      await server.kill()
    }
  }

  /** The time from the event of a watch to the last of the proxies. */
  async ready(): Promise<Measure> {
    return this.#withProxies(async (server, load) => {
      const watch = new BareWatch(this.#access, this.#cluster.dir, ownPaths)
      try {
        await watch.listed
        const lags: number[] = []
        const whole: number[] = []
        const then = await server.usage()
        for (let round = 0; round < this.#settings.rounds * 2; round++) {
          const { address, change } = this.#next(round * 7)
          const seen = watch.sees(address)
          let at = 0
          const { times } = await load.mark(address, () => {
            at = Date.now()
            void change()
          })
          lags.push((times.at(-1) ?? Number.NaN) + at - (await seen))
          whole.push(times.at(-1) ?? Number.NaN)
          await pause(500)
        }
        const used = spent(await server.usage(), then)
        const cpu = used.cpu / lags.length
        return this.#measure(
          'a pod turns ready',
          cpu,
          {
            proxies: this.#settings.proxies,
            rounds: lags.length,
            'last proxy after the event, ms (median)': median(lags),
            'slowest round': Math.max(...lags),
            'after the write, ms (median)': median(whole),
            'CPU s a change': cpu.toFixed(3),
            'of its threads, CPU s in all': shown(used.threads),
          },
          [podReadyGoal(median(lags))],
        )
      } finally {
        watch.end()
      }
    })
  }

  /** Changes for a while, one of which is marked about each second, and what the proxies hold at the end. */
  async churn(): Promise<Measure> {
    const { seconds } = this.#settings
    return this.#withProxies(async (server, load, client) => {
      const watch = new BareWatch(this.#access, this.#cluster.dir, ownPaths)
      await watch.listed
      const then = await server.usage()
      const until = performance.now() + seconds * 1000
      const lags: number[] = []
      /** From the write to the event of the watch. */
      const events: number[] = []
      const failed: string[] = []
      let [begun, underWay] = [0, 0]
      const change = ({ change: make }: Change) => {
        underWay++
        make().then(
          () => underWay--,
          (error: Error) => failed.push(error.message),
        )
      }
      const began = performance.now()
      let isDone = false
      const writer = async () => {
        while (!isDone) {
          const due = Math.floor(((performance.now() - began) / 1000) * changesPerSecond)
          for (; begun < due && underWay < mostUnderWay && !isDone; begun++) change(this.#next(begun))
          await pause(10)
        }
      }
      const writing = writer()
      while (performance.now() < until) {
        const marked = this.#next(begun++)
        const seen = watch.sees(marked.address)
        let at = 0
        const { times } = await load.mark(marked.address, () => {
          at = Date.now()
          change(marked)
        })
        const late = (await seen) - at
        events.push(late)
        lags.push(...times.map((time) => time - late))
        await pause(Math.max(0, 500))
      }
      isDone = true
      watch.end()
      await writing
      const took = (performance.now() - began) / 1000
      while (underWay > 0 && failed.length === 0) await pause(20)
      const { cpu, threads } = spent(await server.usage(), then)
      if (failed.length > 0) throw new Error(`${failed.length} changes could not be written, first: ${failed[0]}`)
      const same = await finallyAsFresh(load, client)
      lags.sort((one, other) => one - other)
      return this.#measure(
        `${changesPerSecond} changes a second`,
        cpu,
        {
          'changes a second': (begun / took).toFixed(0),
          seconds: took.toFixed(0),
          'write to event, ms (median)': median(events),
          'p50 after the event, ms': percentile(lags, 0.5),
          'p99 after the event, ms': percentile(lags, 0.99),
          'slowest, ms': lags.at(-1) ?? Number.NaN,
          'CPU s a second': (cpu / took).toFixed(2),
          'of its threads, CPU s': shown(threads),
          proxies: this.#settings.proxies,
          notes: same,
        },
        [podChurnGoal(percentile(lags, 0.99))],
      )
    })
  }

  /** Changes while the API server cannot be reached, what the proxies hold meanwhile, and when they have the changes afterwards. */
  async away(): Promise<Measure> {
    const { seconds, proxies } = this.#settings
    const relay = await HostileRelay.start(this.#cluster.server, this.#cluster.dir)
    this.#cluster.apply('apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: bench, namespace: mesh-system}')
    this.#cluster.kubectl(['create', 'clusterrolebinding', 'bench', '--clusterrole', 'cluster-admin', '--serviceaccount', 'mesh-system:bench'])
    const token = this.#cluster.kubectl(['create', 'token', '-n', 'mesh-system', 'bench']).trim()
    try {
      return await this.#withProxies(
        async (server, load, client) => {
          const before = await load.digests()
          const then = await server.usage()
          relay.away()
          const leftAt = performance.now()
          for (let index = 0; index < changesAway; index++) await this.#next(index).change()
          await pause(Math.max(0, seconds * 1000 - (performance.now() - leftAt)))
          const held = await load.digests()
          const lost = [...held].filter(([proxy, digest]) => before.get(proxy) !== digest).length
          if (lost > 0) throw new Error(`${lost} proxies hold something else while the API server is away`)
          const last = this.#next(changesAway)
          const { times } = await load.mark(last.address, () => {
            relay.back()
            void last.change()
          })
          const { cpu, threads } = spent(await server.usage(), then)
          const notes = await finallyAsFresh(load, client)
          return this.#measure(awayScenario, cpu, {
            ...{ proxies, 'seconds away': ((performance.now() - leftAt) / 1000).toFixed(0), 'changes meanwhile': changesAway },
            'proxies that lost anything': lost,
            'last proxy after the return, ms': times.at(-1) ?? Number.NaN,
            ...{ 'CPU s': cpu.toFixed(2), 'of its threads, CPU s': shown(threads), notes },
          })
        },
        this.#cluster.tokenConfig('bench', token, relay.address),
      )
    } finally {
      relay.close()
    }
  }

  #measure(scenario: string, cpu: number, figures: Readonly<Record<string, string | number>>, goals: Measure['goals'] = []): Measure {
    return { scenario, variant: 'orchestrator', cpu, mib: 0, rss: Number.NaN, threads: {}, figures, goals }
  }

  async #write(services: number): Promise<void> {
    const began = performance.now()
    const more = services - this.#written
    if (more <= 0) return
    await this.#objects.addServices(this.#written, more, nodes)
    for (let service = this.#written; service < services; service++)
      this.#pods.push(Array.from({ length: podsPerService }, (_, pod) => ({ service, pod, moves: 0 })))
    this.#written = services
    progress(`orchestrator: ${more} services with ${more * podsPerService} pods written in ${((performance.now() - began) / 1000).toFixed(0)} s`)
  }

  #server(orchconfig = this.#cluster.adminConfig): Promise<DiscoveryServer> {
    return DiscoveryServer.start({ writers: this.#settings.writers, files: [], orchconfig, logLevel: 'all:error' })
  }

  /** Medians of several starts, each followed by one of the bare client. */
  async #starts(rounds: number): Promise<Starts> {
    const found: { cpu: number; bare: number; ready: number; threads: Usage['threads'] }[] = []
    let objects = 0
    for (let round = 0; round < rounds; round++) {
      const server = await this.#server()
      const { readyCpu: cpu, readyAfter: ready } = server
      const { threads } = await server.usage()
      if (this.#written === 0 && round === 0) this.#emptyRss = await restingRss(server)
      await server.kill()
      const watch = new BareWatch(this.#access, this.#cluster.dir, ownPaths)
      const listed = await watch.listed
      watch.end()
      objects = listed.objects
      found.push({ cpu, ready, bare: listed.cpu, threads })
    }
    const of = (part: 'cpu' | 'bare' | 'ready') => median(found.map((each) => each[part]))
    const names = Object.keys(found[0]?.threads ?? {})
    const threads = Object.fromEntries(names.map((name) => [name, median(found.map((each) => each.threads[name] ?? 0))]))
    return { cpu: of('cpu'), bare: of('bare'), ready: of('ready'), objects, threads }
  }

  /** The next change: another workload moves. */
  #next(index: number): Change {
    const service = (index * 13) % this.#pods.length
    const pods = this.#pods[service] as PodPlace[]
    const pod = Math.floor(index / this.#pods.length) % podsPerService
    const moved = { ...(pods[pod] as PodPlace), moves: (pods[pod] as PodPlace).moves + 1 }
    pods[pod] = moved
    return { address: addressOf(moved), change: () => this.#objects.move(moved, [...pods]) }
  }

  async #withProxies(
    use: (server: DiscoveryServer, load: Load, client: LoadOptions) => Promise<Measure>,
    orchconfig = this.#cluster.adminConfig,
  ): Promise<Measure> {
    const server = await this.#server(orchconfig)
    const load = new Load()
    const client: LoadOptions = {
      ...{ port: server.port, tls: false, delta: true, hosts: true, namespaces },
      ...{ reads: 'all', own: false, misbehaving: 0 },
    }
    try {
      await load.connect(this.#settings.proxies, client)
      await pause(3000)
      return await use(server, load, client)
    } finally {
      load.end()
      await server.kill()
    }
  }
}

/** Compares what all proxies hold with what fresh ones get, until it is the same or two minutes have passed. */
async function finallyAsFresh(load: Load, client: LoadOptions): Promise<string> {
  const began = performance.now()
  const until = began + 120_000
  for (;;) {
    try {
      const same = await compareWithFresh(load, client, 'changes of pods')
      return `${same}, ${((performance.now() - began) / 1000).toFixed(0)} s after the last change`
    } catch (error) {
      if (performance.now() > until) throw error
    }
  }
}

/** Medians of starts. */
interface Starts {
  readonly cpu: number
  readonly bare: number
  readonly ready: number
  readonly objects: number
  readonly threads: Usage['threads']
}

interface Change {
  readonly address: string
  change(): Promise<void>
}

/** The least resident memory of a process that rests, in MiB. */
async function restingRss(server: DiscoveryServer): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let waited = 0; waited < restMs; waited += 1000) {
    await pause(1000)
    least = Math.min(least, processUsage(server.pid).rss)
  }
  return least
}
