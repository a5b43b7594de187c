/**
 * Measures three replicas of discovery beside a real cluster, with sidecars that connect to any of them: a storm of connects, and a rolling
 * restart in which each replica is replaced by a new one while nothing else changes.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createServer, connect as tcpConnect } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { TestCluster } from '../../test/harness/cluster.ts'
import { establish, meshDefinitions } from '../../test/harness/mesh-definitions.ts'
import { meshPlurals } from '../cluster-config.ts'
import { ClusterObjects } from '../cluster-objects.ts'
import { rollingRestartGoals } from '../goals.ts'
import { once, percentile } from '../load.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import type { RoamingOptions, RoamingState } from '../roaming-sidecars.ts'
import { childrenCpu, DiscoveryServer, processUsage } from '../server.ts'

const [namespaces, nodes, meshSize, replicas] = [10, 20, 300, 3]

/**
 * How long replicas have nothing to do between the storm and the restart, and for how much of that at its end their CPU is measured: in the first half
 * minute after a storm V8 compiles and collects what the storm left, which is a cost of the storm.
 */
const [settledMs, quietMs] = [50_000, 10_000]

interface Settings {
  readonly writers: number
  readonly services: number
  readonly proxies: number
}

interface ReplicaOptions {
  readonly writers: number
  readonly orchconfig: string
}

/** CPU seconds by the thread of an actor, its number left out; what else a process spends is `other`. */
type Threads = Readonly<Record<string, number>>

const sumOf = (...all: readonly Threads[]): Threads => {
  const sum: Record<string, number> = {}
  for (const threads of all) for (const [name, seconds] of Object.entries(threads)) sum[name] = (sum[name] ?? 0) + seconds
  return sum
}

async function threadsOf(server: DiscoveryServer): Promise<Threads> {
  const { cpu, threads } = await server.usage()
  const named = sumOf(...Object.entries(threads).map(([name, seconds]) => ({ [name.replace(/[/]\d+$/, '')]: seconds })))
  return { ...named, other: cpu - Object.values(named).reduce((sum, seconds) => sum + seconds, 0) }
}

/** The threads in which most was spent between two readings, as a text. */
function spentIn(now: Threads, then: Threads): string {
  const spent = Object.entries(now).map(([name, seconds]) => [name, seconds - (then[name] ?? 0)] as const)
  spent.sort(([, one], [, other]) => other - one)
  return spent.flatMap(([name, seconds]) => (seconds >= 0.05 ? [`${name} ${seconds.toFixed(1)}`] : [])).join(', ')
}

/** Replicas behind a port that leads each connection to another one, as the Service of a cluster does. */
class Replicas {
  readonly #options: ReplicaOptions
  readonly #port: number
  #running: DiscoveryServer[] = []
  #next = 0
  /** What became ready since the start cost until then. */
  startCpu = 0
  /** The CPU seconds of the threads of all replicas that have ended, by thread; what is left of a process is `other`. */
  #ended: Threads = {}
  readonly #balancer = createServer((client) => {
    const to = this.#running[this.#next++ % this.#running.length]
    if (to) pipeline(client, tcpConnect(to.port, '127.0.0.1'), client, () => undefined)
    else client.destroy()
  })

  private constructor(port: number, options: ReplicaOptions) {
    this.#port = port
    this.#options = options
  }

  static async start(options: ReplicaOptions): Promise<Replicas> {
    const all = new Replicas(await freePort(), options)
    await new Promise<void>((resolve) => all.#balancer.listen(all.#port, '127.0.0.1', resolve))
    for (let replica = 0; replica < replicas; replica++) await all.#add()
    return all
  }

  get port(): number {
    return this.#port
  }

  /** CPU seconds of all replicas that ran so far, without those of other processes that have ended. */
  cpu(): number {
    return childrenCpu() + this.#running.reduce((sum, { pid }) => sum + processUsage(pid).cpu, 0)
  }

  /** CPU seconds of the threads of all replicas that ran so far, as they were when those that have ended were asked to. */
  async threads(): Promise<Threads> {
    const running = await Promise.all(this.#running.map(threadsOf))
    return sumOf(this.#ended, ...running)
  }

  /** Replaces one replica after another: a new one is ready before the old one ends, which takes no more connections. */
  async replaceAll(): Promise<void> {
    for (let replica = 0; replica < replicas; replica++) {
      await this.#add()
      const old = this.#running.shift()
      if (old) this.#ended = sumOf(this.#ended, await threadsOf(old))
      await old?.drain()
    }
  }

  end(): void {
    for (const server of this.#running) server.stop()
    this.#balancer.close()
  }

  async #add(): Promise<void> {
    const server = await DiscoveryServer.start({ ...this.#options, files: [], logLevel: 'all:error' })
    this.startCpu += server.readyCpu
    this.#running.push(server)
  }
}

/** The process of the sidecars. */
class Sidecars {
  readonly #child: ChildProcess

  constructor(options: RoamingOptions) {
    this.#child = fork(fileURLToPath(new URL('../roaming-sidecars.ts', import.meta.url)), [JSON.stringify(options)])
  }

  async state(): Promise<RoamingState> {
    const state = once<RoamingState>(this.#child, 'state')
    this.#child.send('state')
    return state
  }

  /** Waits until a state is as wanted. Returns the bytes and gaps meanwhile. */
  async until(isSo: (state: RoamingState) => boolean): Promise<{ bytes: number; gaps: number[] }> {
    const all = { bytes: 0, gaps: [] as number[] }
    for (;;) {
      const state = await this.state()
      all.bytes += state.bytes
      all.gaps.push(...state.gaps)
      if (isSo(state)) return all
      await pause(100)
    }
  }

  end(): void {
    this.#child.kill()
  }
}

/** Runs the set. */
export async function replicaRestart({ writers, services, proxies }: Settings): Promise<Measure[]> {
  const cluster = await TestCluster.start('n1=region1/zone1')
  const objects = new ClusterObjects(await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false), namespaces)
  let all: Replicas | undefined
  let sidecars: Sidecars | undefined
  try {
    const definitions = meshDefinitions()
    establish(cluster, ...meshPlurals.map((plural) => definitions.get(plural) ?? ''))
    cluster.stopControllers()
    await objects.addNamespace('mesh-system')
    await objects.prepare(nodes)
    await objects.addServices(0, services, nodes)
    await objects.addMeshObjects(meshSize, services)
    const before = childrenCpu()
    all = await Replicas.start({ writers, orchconfig: cluster.adminConfig })
    const [readyCpu, beforeIn] = [all.cpu(), await all.threads()]
    sidecars = new Sidecars({ port: all.port, count: proxies, namespaces })
    const connected = await sidecars.until(({ served }) => served === proxies)
    await pause(3000)
    // From when each replica was ready, as in the restart: what proxies are sent is prepared after that, with or without proxies.
    const storm = all.cpu() - before - all.startCpu
    const whileStarting = readyCpu - before - all.startCpu
    progress(`replicas: ${proxies} sidecars have ${(connected.bytes / 1e6).toFixed(0)} MB: ${storm.toFixed(2)} CPU s of three replicas`)
    const stormIn = spentIn(await all.threads(), beforeIn)
    await pause(settledMs)
    const quiet = all.cpu()
    await pause(quietMs)
    const idle = (all.cpu() - quiet) / quietMs
    const [then, thenIn, started] = [all.cpu(), await all.threads(), all.startCpu]
    const began = performance.now()
    await all.replaceAll()
    const seconds = (performance.now() - began) / 1000
    const { bytes, gaps } = await sidecars.until(({ streams, served }) => streams === proxies && served === proxies)
    await pause(3000)
    const starts = all.startCpu - started
    const cpu = all.cpu() - then - starts
    const idleCpu = idle * (performance.now() - began)
    gaps.sort((one, other) => one - other)
    const longest = gaps.at(-1) ?? 0
    const figures = {
      ...{ services, proxies, 'restart, s': seconds.toFixed(0), 'streams that ended': gaps.length },
      'without a stream, ms (median)': percentile(gaps, 0.5).toFixed(0),
      'longest, ms': longest.toFixed(0),
      'connect storm, CPU s': storm.toFixed(2),
      'of it before the first connects': whileStarting.toFixed(2),
      'restart, CPU s': cpu.toFixed(2),
      'starts of three processes, CPU s': starts.toFixed(2),
      'CPU s of replicas without a restart in that time': idleCpu.toFixed(2),
      'threads of the storm': stormIn,
      'threads of starts and restart': spentIn(await all.threads(), thenIn),
      'MB of the storm': (connected.bytes / 1e6).toFixed(1),
      'KB of the restart': (bytes / 1e3).toFixed(1),
    }
    const goals = rollingRestartGoals({ longestMs: longest, cpu, storm, share: bytes / connected.bytes })
    const measure = {
      scenario: 'rolling restart of three replicas',
      variant: 'replicas',
      cpu,
      mib: bytes / 2 ** 20,
      rss: Number.NaN,
      threads: {},
      figures,
      goals,
    }
    progress(`replicas: ${JSON.stringify(figures)}`)
    return [measure]
  } finally {
    sidecars?.end()
    all?.end()
    objects.close()
    await cluster.dispose()
  }
}
