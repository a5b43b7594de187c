/** Settings of agents that discovery is given, and that injection hands on where a pod has none of its own (docs/injection.md, N16). */
import type { Features } from '../config/features.ts'
import { isMapping } from '../config/shape.ts'

/** Settings of agents; empty: there are none. */
export interface AgentDefaults {
  /** Where applications have their metrics whose pods do not say it: `port`, `path` and `scrape`, as in the annotations of `prometheus.io`. */
  readonly metrics?: Readonly<Record<string, string>>
  /** How long agents drain their proxies when they end, in milliseconds. */
  readonly terminationDrainDuration?: number
}

/** The default of `TERMINATION_DRAIN_DURATION_SECONDS`, which agents have too. */
const usualDrainSeconds = 5
const fields: readonly string[] = ['scrape', 'path', 'port']

/** Reads the settings from the variables of discovery. Throws an Error that names the variable, the field and the reason. */
export function agentDefaults({
  MESH_METRICS_ANNOTATIONS: metrics,
  TERMINATION_DRAIN_DURATION_SECONDS: drainSeconds,
}: Pick<Features, 'MESH_METRICS_ANNOTATIONS' | 'TERMINATION_DRAIN_DURATION_SECONDS'>): AgentDefaults {
  return {
    ...(metrics !== '' && { metrics: readMetrics(metrics) }),
    ...(drainSeconds !== usualDrainSeconds && { terminationDrainDuration: drainSeconds * 1000 }),
  }
}

function readMetrics(text: string): Readonly<Record<string, string>> {
  const fail = (reason: string): never => {
    throw new Error(`environment variable MESH_METRICS_ANNOTATIONS: ${reason}`)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return fail('is not JSON')
  }
  if (!isMapping(value)) return fail('is not a JSON object with port and path')
  for (const [field, given] of Object.entries(value)) {
    if (!fields.includes(field)) fail(`${JSON.stringify(field.slice(0, 100))} is none of ${fields.join(', ')}`)
    if (typeof given !== 'string') fail(`${field}: expected text, got ${typeof given}`)
  }
  const { port = '80', path = '/metrics' } = value as Readonly<Record<string, string>>
  if (!(/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535))
    fail(`port: ${JSON.stringify(port.slice(0, 100))} is not a port from 1 to 65535`)
  if (!/^\/[!-~]{0,2000}$/.test(path)) fail(`path: ${JSON.stringify(path.slice(0, 100))} does not begin with / or has other characters than a path`)
  return value as Readonly<Record<string, string>>
}
