/** The agent's own metrics, collected in the supervisor's thread (docs/metrics.md, "Of the agent"). */
import type { AgentMetrics, AgentPage } from '../../../protocols/messages/status.ts'
import { metricPrefix } from '../../../src/agent/metric-prefix.ts'
import { withoutSeries } from '../../../src/agent/specified-metrics.ts'
import type { Exposition } from '../../runtime/exposition.ts'
import type { MergedMetrics } from '../../runtime/merged-metrics.ts'
import { Gauge, type MetricRegistry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'

/**
 * Returns the function that answers the status server's ask `metrics`; concurrent calls share one scrape. `own` holds the metrics of the
 * supervisor's thread, `version` is the agent's version.
 */
export function agentMetrics(supervisor: Supervisor, own: MetricRegistry, version: string): (page: AgentPage) => Promise<AgentMetrics> {
  const build = { name: 'mesh_build', help: 'component build info', labelNames: ['component', 'tag'], registers: [own] }
  new Gauge(build).set({ component: 'agent', tag: version }, 1)
  for (const family of withoutSeries) own.add(family.name, { family: () => family })
  // The library is loaded with the first scrape: it costs 15 ms of CPU.
  let loaded: Promise<MergedMetrics> | undefined
  const load = async () => new (await import('../../runtime/merged-metrics.ts')).MergedMetrics(supervisor, own, false)
  const scrape = async (): Promise<Scrape> => {
    const merged = await (loaded ??= load())
    let silent = 0
    const exposition = await merged.collect((count) => {
      silent = count
    })
    return { exposition, silent }
  }
  let running: Promise<Scrape> | undefined
  return async (page) => {
    running ??= scrape().finally(() => {
      running = undefined
    })
    const { exposition, silent } = await running
    return { text: await (page === 'shared' ? exposition.page('text', metricPrefix) : exposition.page(page)), silent }
  }
}

/** What a scrape has found. */
interface Scrape {
  readonly exposition: Exposition
  readonly silent: number
}
