/** What an Envoy has used, by its statistics. */
import type { JsonObject } from '@bufbuild/protobuf'
import { objectAt, objectsOf } from '../../../src/xds/json-fields.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { envoyPage } from './envoy-admin.ts'
import type { SentResource } from './proxy-config-rows.ts'

/** The statistics of an Envoy. */
export interface EnvoyUsage {
  readonly nodeId: string
  /** The labels of its workload. */
  readonly labels: Readonly<Record<string, string>>
  /** When it began to count, in Unix milliseconds. */
  readonly since: number
  /** The number of connections and requests to each cluster, by its name. */
  readonly clusters: ReadonlyMap<string, number>
}

const counted = ['upstream_cx_total', 'upstream_rq_total']

/**
 * Reads the statistics of the Envoy at an address about clusters that it was sent. Those of clusters may be left out of its statistics by their
 * matcher; those of endpoints are always there, as long as the endpoint is. Rejects with an Error that names the flag and the address.
 */
export async function envoyUsage(address: string, sent: readonly SentResource[]): Promise<EnvoyUsage> {
  const info = objectAt(await envoyPage(address, '/server_info'))
  const node = objectAt(info.node)
  if (typeof node.id !== 'string' || node.id === '') throw new Error(`--envoy: ${address} does not say which Envoy it is`)
  const stats = objectAt(await envoyPage(address, `/stats?format=json&filter=${encodeURIComponent(`^cluster\\..*\\.(${counted.join('|')})$`)}`))
  const hosts = objectAt(await envoyPage(address, '/clusters?format=json'))
  const seconds = Number.parseFloat(String(info.uptime_all_epochs ?? '0'))
  const labels = Object.entries(objectAt(node.metadata, 'LABELS')).filter((label): label is [string, string] => typeof label[1] === 'string')
  return {
    nodeId: node.id,
    labels: Object.fromEntries(labels),
    since: wallClockMs() - (Number.isFinite(seconds) ? seconds : 0) * 1000,
    clusters: joined(ofStatistics(objectsOf(stats.stats), sent), ofHosts(objectsOf(hosts.cluster_statuses))),
  }
}

/** What the statistics of clusters say. Their names begin with that of the cluster, or its other name for statistics, without colons. */
function ofStatistics(stats: readonly JsonObject[], sent: readonly SentResource[]): Map<string, number> {
  const named = new Map(sent.map(({ name, resource }) => [`cluster.${String(resource?.alt_stat_name || name).replaceAll(':', '_')}.`, name]))
  const found = new Map<string, number>()
  for (const { name, value } of stats) {
    const statistic = counted.find((each) => String(name).endsWith(each))
    const text = String(name).slice(0, -(statistic ?? '').length || undefined)
    const cluster = named.get(text) ?? /^cluster\.(.*?);?\.$/.exec(text)?.[1]
    if (statistic !== undefined && cluster !== undefined) found.set(cluster, Math.max(found.get(cluster) ?? 0, Number(value)))
  }
  return found
}

/** What the statistics of endpoints say. */
function ofHosts(statuses: readonly JsonObject[]): Map<string, number> {
  return new Map(
    statuses.map((status) => {
      const values = objectsOf(status.host_statuses).flatMap(({ stats }) => objectsOf(stats))
      const sums = ['cx_total', 'rq_total'].map((wanted) =>
        values.reduce((sum, { name, value }) => sum + (name === wanted ? Number(value ?? 0) : 0), 0),
      )
      return [String(status.name), Math.max(...sums)]
    }),
  )
}

function joined(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...new Set([...one.keys(), ...other.keys()])].map((name) => [name, Math.max(one.get(name) ?? 0, other.get(name) ?? 0)]))
}
