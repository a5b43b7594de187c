/**
 * Measures the status of objects (docs/status.md, S8): 100 changes a second of custom resources of a real cluster, with sidecars connected. Statuses
 * are written at most at the configured rate, and after the last change each object gets its last state.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { TestCluster } from '../../test/harness/cluster.ts'
import { establish, meshDefinitions } from '../../test/harness/mesh-definitions.ts'
import { meshPlurals } from '../cluster-config.ts'
import { ClusterObjects } from '../cluster-objects.ts'
import { statusGoals } from '../goals.ts'
import { Load } from '../load.ts'
import { type Measure, progress } from '../report.ts'
import { rowByRow } from '../rows.ts'
import { DiscoveryServer, spent } from '../server.ts'

const changesPerSecond = 100
/** The rate of statuses: a fifth of that of changes, so that it is what limits them. */
const rate = { perSecond: 20, burst: 20 } as const
const [namespaces, services, nodes, meshSize] = [10, 300, 20, 300]
const plural = 'destinationrules'
/** The longest time after the last change, in milliseconds. */
const settleMs = 180_000

interface Settings {
  readonly writers: number
  readonly proxies: number
  readonly seconds: number
}

/** Runs the set. */
export async function statuses(settings: Settings): Promise<Measure[]> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    progress('statuses: left out: needs root on Linux, and Go, for a real cluster (test/cluster/README.md)')
    return []
  }
  const cluster = await TestCluster.start('n1=region1/zone1')
  const objects = new ClusterObjects(await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false), namespaces)
  try {
    const definitions = meshDefinitions()
    establish(cluster, ...meshPlurals.map((name) => definitions.get(name) ?? ''))
    cluster.stopControllers()
    await objects.addNamespace('mesh-system')
    await objects.prepare(nodes)
    await objects.addServices(0, services, nodes)
    await objects.addMeshObjects(meshSize, services)
    return await rowByRow('statuses', [{ scenario: `${changesPerSecond} changes a second`, measure: () => storm(cluster, objects, settings) }])
  } finally {
    objects.close()
    await cluster.dispose()
  }
}

interface StatusObject {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly generation: number }
  readonly status?: {
    readonly observedGeneration?: number
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
  }
}

const listed = (cluster: TestCluster): StatusObject[] =>
  (JSON.parse(cluster.kubectl(['get', `${plural}.networking.mesh.io`, '-A', '-o', 'json'])) as { items: StatusObject[] }).items

/** Whether the status of an object says that all proxies have its generation. */
const isDone = ({ metadata, status }: StatusObject): boolean =>
  status?.observedGeneration === metadata.generation &&
  (status.conditions ?? []).some(({ type, status: is }) => type === 'Reconciled' && is === 'True')

/** Waits until all objects are done. Returns how many are not. */
async function settled(cluster: TestCluster): Promise<number> {
  const until = performance.now() + settleMs
  for (;;) {
    const open = listed(cluster).filter((object) => !isDone(object)).length
    if (open === 0 || performance.now() > until) return open
    await pause(500)
  }
}

/** Counts of `pilot_status_writes_total`: all attempts, and those that were not written. */
async function writesOf(server: DiscoveryServer): Promise<{ all: number; failed: number }> {
  const found = [...(await server.metrics()).matchAll(/^pilot_status_writes_total\{[^}]*outcome="([^"]+)"[^}]*\} (\S+)$/gm)]
  const sum = (isCounted: (outcome: string) => boolean) =>
    found.reduce((total, [, outcome = '', value]) => total + (isCounted(outcome) ? Number(value) : 0), 0)
  return { all: sum(() => true), failed: sum((outcome) => outcome !== 'written') }
}

async function storm(cluster: TestCluster, objects: ClusterObjects, { writers, proxies, seconds }: Settings): Promise<Measure> {
  const env = { PILOT_ENABLE_STATUS: 'true', PILOT_STATUS_QPS: String(rate.perSecond), PILOT_STATUS_BURST: String(rate.burst) }
  const server = await DiscoveryServer.start({ writers, files: [], orchconfig: cluster.adminConfig, logLevel: 'all:error', env })
  const load = new Load()
  try {
    await load.connect(proxies, {
      ...{ port: server.port, tls: false, delta: true, hosts: true, namespaces, reads: 'all', own: false, misbehaving: 0 },
    })
    const before = await settled(cluster)
    if (before > 0) throw new Error(`${before} objects have no status before the changes`)
    const all = listed(cluster)
    const [then, first] = [await server.usage(), await writesOf(server)]
    const began = performance.now()
    const changing: Promise<void>[] = []
    for (let index = 0; index < seconds * changesPerSecond; index++) {
      const wait = began + (index * 1000) / changesPerSecond - performance.now()
      if (wait > 0) await pause(wait)
      const { name, namespace } = (all[index % all.length] as StatusObject).metadata
      const spec = { trafficPolicy: { connectionPool: { tcp: { maxConnections: 1000 + index } } } }
      changing.push(objects.patch(`/apis/networking.mesh.io/v1/namespaces/${namespace}/${plural}/${name}`, { spec }))
    }
    await Promise.all(changing)
    const changed = performance.now()
    const during = await writesOf(server)
    const lost = await settled(cluster)
    const took = performance.now() - began
    const [{ cpu, threads }, last] = [spent(await server.usage(), then), await writesOf(server)]
    const writes = last.all - first.all
    return {
      ...{ scenario: `${changesPerSecond} changes a second`, variant: 'status', cpu, mib: 0, rss: Number.NaN, threads },
      figures: {
        ...{ proxies, changes: changing.length, objects: all.length, 'statuses a second, at once at most': `${rate.perSecond}, ${rate.burst}` },
        'seconds of changes': ((changed - began) / 1000).toFixed(1),
        'written a second meanwhile': ((during.all - first.all) / ((changed - began) / 1000)).toFixed(1),
        'last status after the last change, s': ((took - (changed - began)) / 1000).toFixed(1),
        ...{ 'written in all': writes, 'not written': last.failed - first.failed, 'objects without their last state': lost },
        'CPU s a second': (cpu / (took / 1000)).toFixed(2),
      },
      goals: statusGoals(writes, rate.burst + rate.perSecond * (took / 1000), lost),
    }
  } finally {
    load.end()
    await server.kill()
  }
}
