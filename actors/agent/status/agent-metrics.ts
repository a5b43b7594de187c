/** The agent's own part of the metrics page, made in the supervisor's thread (docs/agent.md, H4). */
import type { AgentMetrics } from '../../../protocols/messages/status.ts'
import { metricPrefix } from '../../../src/agent/metric-prefix.ts'
import { writeExposition } from '../../runtime/exposition.ts'
import { MergedMetrics } from '../../runtime/merged-metrics.ts'
import { Gauge, type Registry } from '../../runtime/metrics.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'

/**
 * Returns the function that answers the status server's ask `metrics`; concurrent calls share one result. `own` holds the metrics of the supervisor's thread, `version` is the
 * agent's version.
 */
export function agentMetrics(supervisor: Supervisor, own: Registry, version: string): () => Promise<AgentMetrics> {
  const build = { name: `${metricPrefix}mesh_build`, help: 'component build info', labelNames: ['component', 'tag'], registers: [own] }
  new Gauge(build).set({ component: 'agent', tag: version }, 1)
  const merged = new MergedMetrics(supervisor, own, metricPrefix)
  const collect = async () => {
    let silent = 0
    const families = await merged.collect((count) => {
      silent = count
    })
    return { text: writeExposition(families), silent }
  }
  let running: Promise<AgentMetrics> | undefined
  return () =>
    (running ??= collect().finally(() => {
      running = undefined
    }))
}
