/**
 * Measures three real clusters as one mesh (docs/operation.md, J1 to J7): the CPU of a start beside bare clients of each, the time until a change of
 * a pod in any of them has reached all sidecars, and both while the API server of one hangs. All clusters have the same services, so that their
 * endpoints are merged. The clock of a start is that of three API servers on this machine, so CPU is compared.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import type { ClusterAccess } from '../../protocols/messages/orchestrator.ts'
import { TestCluster } from '../../test/harness/cluster.ts'
import { establish, meshDefinitions } from '../../test/harness/mesh-definitions.ts'
import { BareWatch, otherPaths, ownPaths, shown } from '../bare-client.ts'
import { meshPlurals } from '../cluster-config.ts'
import { addressOf, ClusterObjects, type PodPlace, podsPerService } from '../cluster-objects.ts'
import { clustersReadyGoal, hangingGoals, podReadyGoal } from '../goals.ts'
import { Load, median } from '../load.ts'
import { type Measure, progress } from '../report.ts'
import { rowByRow } from '../rows.ts'
import { DiscoveryServer, processUsage, spent, type Usage } from '../server.ts'

const [namespaces, nodes, meshSize] = [10, 20, 100]
const names = ['near', 'far', 'further']
/** How long a start waits for a cluster whose API server hangs, in seconds, and how long a process is watched at rest. */
const [waitSeconds, restSeconds] = [5, 10]

interface Settings {
  readonly writers: number
  /** The number of services of each cluster. */
  readonly services: number
  readonly rounds: number
  readonly proxies: number
}

interface Member {
  readonly name: string
  readonly cluster: TestCluster
  readonly access: ClusterAccess
  readonly objects: ClusterObjects
  /** All workloads, by service. */
  readonly pods: PodPlace[][]
}

interface Start {
  readonly cpu: number
  readonly ready: number
  readonly threads: Usage['threads']
}

/** Runs the set. */
export async function clusters(settings: Settings): Promise<Measure[]> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    progress('clusters: left out: needs root on Linux, and Go, for real clusters (test/cluster/README.md)')
    return []
  }
  const members: Member[] = []
  try {
    for (const name of names) members.push(await joined(name, members.length, settings))
    const bench = new Bench(members, settings)
    return await rowByRow('clusters', [
      { scenario: 'start until ready', measure: () => bench.start() },
      { scenario: 'a pod of any cluster moves', measure: () => bench.moves() },
      { scenario: 'the API server of a cluster hangs', measure: () => bench.hangs() },
    ])
  } finally {
    for (const { objects, cluster } of members) {
      objects.close()
      cluster.signalServer('SIGCONT')
      await cluster.dispose()
    }
  }
}

/** Starts a cluster without objects but those that discovery needs. */
async function joined(name: string, index: number, { services }: Settings): Promise<Member> {
  const cluster = await TestCluster.start(`n1=region${index + 1}/zone1`)
  const access = await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false)
  if (index === 0) {
    const definitions = meshDefinitions()
    establish(cluster, ...meshPlurals.map((plural) => definitions.get(plural) ?? ''))
  }
  cluster.stopControllers()
  const objects = new ClusterObjects(access, namespaces, index)
  await objects.addNamespace('mesh-system')
  const pods = Array.from({ length: services }, (_, service) =>
    Array.from({ length: podsPerService }, (_, pod) => ({ service, pod, moves: 0, cluster: index })),
  )
  return { name, cluster, access, objects, pods }
}

class Bench {
  readonly #members: readonly Member[]
  readonly #own: Member
  readonly #settings: Settings
  #turn = 0

  constructor(members: readonly Member[], settings: Settings) {
    this.#members = members
    this.#own = members[0] as Member
    this.#settings = settings
  }

  /** Starts beside one cluster without objects, beside one with them, and beside all, and the bare clients. */
  async start(): Promise<Measure> {
    const { services } = this.#settings
    const empty = await this.#starts()
    for (const { objects } of this.#members) {
      await objects.prepare(nodes)
      await objects.addServices(0, services, nodes)
    }
    const mesh = await this.#own.objects.addMeshObjects(meshSize, services)
    const one = await this.#starts()
    this.#joinAll()
    const all = await this.#starts()
    const bare = await Promise.all(this.#members.map((_, index) => this.#bare(index)))
    const sum = bare.reduce((total, { cpu }) => total + cpu, 0)
    const own = all.cpu - empty.cpu
    const figures = {
      ...{ clusters: names.length, 'pods in each': services * podsPerService, 'mesh objects': mesh },
      objects: bare.reduce((total, { objects }) => total + objects, 0),
      'CPU s without objects': empty.cpu.toFixed(2),
      'beside one cluster': one.cpu.toFixed(2),
      'beside all': all.cpu.toFixed(2),
      'a further cluster': ((all.cpu - one.cpu) / (names.length - 1)).toFixed(2),
      'above it': own.toFixed(2),
      'bare clients, whole processes': sum.toFixed(2),
      'times bare': `${(own / sum).toFixed(2)} (${(all.cpu / sum).toFixed(2)} with the process itself)`,
      'of its threads': shown(all.threads),
      'without objects, of its threads': shown(empty.threads),
      'ready after, s (the clock of the API servers)': all.ready.toFixed(2),
    }
    return this.#measure('start until ready', own, figures, [clustersReadyGoal(own, sum)])
  }

  /** The time from the event of the watch of each cluster to the last of the proxies. */
  async moves(): Promise<Measure> {
    return this.#withProxies(async (server, load) => {
      const then = await server.usage()
      const lags = new Map<string, number>()
      for (const member of this.#members) lags.set(member.name, median(await this.#lags(load, member)))
      const { cpu, threads } = spent(await server.usage(), then)
      const figures = {
        ...{ proxies: this.#settings.proxies, changes: this.#members.length * this.#changes },
        ...Object.fromEntries([...lags].map(([name, ms]) => [`last proxy after the event in ${name}, ms (median)`, ms])),
        'CPU s a change': (cpu / this.#members.length / this.#changes).toFixed(3),
        'of its threads, CPU s in all': shown(threads),
      }
      return this.#measure('a pod of any cluster moves', cpu, figures, [podReadyGoal(Math.max(...lags.values()))])
    })
  }

  /** The last cluster hangs: a start beside it, what the process costs then, and changes of the others. */
  async hangs(): Promise<Measure> {
    const hanging = this.#members.at(-1) as Member
    const others = this.#members.slice(0, -1)
    hanging.cluster.signalServer('SIGSTOP')
    try {
      return await this.#withProxies(
        async (server, load) => {
          const ready = server.readyAfter
          const [before, at] = [processUsage(server.pid).cpu, performance.now()]
          await pause(restSeconds * 1000)
          const share = (processUsage(server.pid).cpu - before) / ((performance.now() - at) / 1000)
          const then = await server.usage()
          const lags = new Map<string, number>()
          for (const member of others) lags.set(member.name, median(await this.#lags(load, member)))
          const { cpu } = spent(await server.usage(), then)
          const timeouts = await server.metric('remote_cluster_sync_timeouts_total')
          if (timeouts !== 1) throw new Error(`${timeouts} clusters were not read in time instead of 1`)
          const figures = {
            ...{ proxies: this.#settings.proxies, 'ready after, s': ready.toFixed(2), 'of which it waits for the cluster, s': waitSeconds },
            'CPU at rest, % of a core': (share * 100).toFixed(1),
            ...Object.fromEntries([...lags].map(([name, ms]) => [`last proxy after the event in ${name}, ms (median)`, ms])),
            'CPU s a change': (cpu / others.length / this.#changes).toFixed(3),
          }
          return this.#measure('the API server of a cluster hangs', cpu, figures, hangingGoals(Math.max(...lags.values()), share))
        },
        { PILOT_REMOTE_CLUSTER_TIMEOUT: `${waitSeconds}s` },
      )
    } finally {
      hanging.cluster.signalServer('SIGCONT')
    }
  }

  get #changes(): number {
    return this.#settings.rounds * 2
  }

  #measure(scenario: string, cpu: number, figures: Readonly<Record<string, string | number>>, goals: Measure['goals']): Measure {
    return { scenario, variant: 'clusters', cpu, mib: 0, rss: Number.NaN, threads: {}, figures, goals }
  }

  /** Writes the remote secret, which names all other clusters. */
  #joinAll(): void {
    const others = this.#members.slice(1)
    const data = Object.fromEntries(others.map(({ name, cluster }) => [name, readFileSync(cluster.roleConfig()).toString('base64')]))
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
    this.#own.cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }))
  }

  #server(env: Readonly<Record<string, string>> = {}): Promise<DiscoveryServer> {
    const { writers } = this.#settings
    return DiscoveryServer.start({ writers, files: [], orchconfig: this.#own.cluster.adminConfig, logLevel: 'all:error', env })
  }

  /** The medians of some starts. */
  async #starts(): Promise<Start> {
    const found: Start[] = []
    for (let round = 0; round < this.#settings.rounds; round++) {
      const server = await this.#server()
      const { threads } = await server.usage()
      if ((await server.metric('remote_cluster_sync_timeouts_total')) > 0) throw new Error('a cluster was not read in time')
      found.push({ cpu: server.readyCpu, ready: server.readyAfter, threads })
      await server.kill()
    }
    const actors = Object.keys(found[0]?.threads ?? {})
    const threads = Object.fromEntries(actors.map((actor) => [actor, median(found.map((each) => each.threads[actor] ?? 0))]))
    return { cpu: median(found.map(({ cpu }) => cpu)), ready: median(found.map(({ ready }) => ready)), threads }
  }

  /** The medians of the bare client of a cluster. */
  async #bare(index: number): Promise<{ cpu: number; objects: number }> {
    const cpus: number[] = []
    let objects = 0
    for (let round = 0; round < this.#settings.rounds; round++) {
      const watch = this.#watch(index)
      const listed = await watch.listed
      watch.end()
      objects = listed.objects
      cpus.push(listed.cpu)
    }
    return { cpu: median(cpus), objects }
  }

  #watch(index: number): BareWatch {
    const { access, cluster } = this.#members[index] as Member
    return new BareWatch(access, cluster.dir, index === 0 ? ownPaths : otherPaths)
  }

  /** Moves workloads of a cluster, one after another. Returns the milliseconds from the event of its watch to the last proxy. */
  async #lags(load: Load, member: Member): Promise<number[]> {
    const watch = this.#watch(this.#members.indexOf(member))
    const lags: number[] = []
    try {
      await watch.listed
      for (let round = 0; round < this.#changes; round++) {
        const pods = member.pods[(this.#turn++ * 7) % member.pods.length] as PodPlace[]
        const moved = { ...(pods[0] as PodPlace), moves: (pods[0] as PodPlace).moves + 1 }
        pods[0] = moved
        const address = addressOf(moved)
        const seen = watch.sees(address)
        let at = 0
        const { times } = await load.mark(address, () => {
          at = Date.now()
          void member.objects.move(moved, [...pods])
        })
        lags.push((times.at(-1) ?? Number.NaN) + at - (await seen))
        await pause(500)
      }
    } finally {
      watch.end()
    }
    return lags
  }

  async #withProxies(use: (server: DiscoveryServer, load: Load) => Promise<Measure>, env?: Readonly<Record<string, string>>): Promise<Measure> {
    const server = await this.#server(env)
    const load = new Load()
    const client = { port: server.port, tls: false, delta: true, hosts: true, namespaces, reads: 'all', own: false, misbehaving: 0 } as const
    try {
      await load.connect(this.#settings.proxies, client)
      await pause(3000)
      return await use(server, load)
    } finally {
      load.end()
      await server.kill()
    }
  }
}
