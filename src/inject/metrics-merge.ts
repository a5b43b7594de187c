/** The application's metrics, which the agent serves together with its own (docs/injection.md, N10). */
import { isMapping } from '../config/shape.ts'
import { InjectionError, type Pod, withMetadata } from './pod.ts'
import { sidecarOf, variableOf, withVariables } from './sidecar.ts'

const variable = 'MESH_METRICS_ANNOTATIONS'
const keys = { scrape: 'prometheus.io/scrape', path: 'prometheus.io/path', port: 'prometheus.io/port' } as const
const mergedPath = '/stats/prometheus'

/**
 * Returns a pod that is scraped at its agent, which knows where the application's own metrics are. One that is not to be scraped, and one that
 * is scraped at the agent already, are not changed. `usual`: where they are when the pod has neither a port nor a path for them. Throws an
 * {@link InjectionError} when the port is none.
 */
export function mergeMetrics(pod: Pod, statusPort: number, usual: Readonly<Record<string, string>> = {}): Pod {
  const { annotations = {} } = pod.metadata
  const [scrape = '', path = '', port = ''] = [annotations[keys.scrape], annotations[keys.path], annotations[keys.port]]
  if (!sidecarOf(pod) || statusPort === 0 || /^(0|f|false)$/i.test(scrape) || port === String(statusPort)) return pod
  if (port !== '' && !(/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535))
    throw new InjectionError(`annotation ${keys.port}: ${JSON.stringify(port.slice(0, 100))}: is not a port from 1 to 65535`)
  // An agent that is told to ask itself does not start.
  const isUsual = path === '' && port === '' && usual.port !== String(statusPort)
  const said: Readonly<Record<string, string | undefined>> = isUsual ? { ...usual, ...(scrape !== '' && { scrape }) } : { scrape, path, port }
  const given = Object.fromEntries(Object.keys(keys).flatMap((name) => (said[name] ? [[name, said[name]] as const] : [])))
  const merged = { ...annotations, [keys.port]: String(statusPort), [keys.path]: mergedPath, [keys.scrape]: 'true' }
  const scraped = withMetadata(pod, { annotations: merged })
  return Object.keys(given).length === 0 ? scraped : withVariables(scraped, { [variable]: JSON.stringify(given) })
}

/** Returns a pod with the application's own annotations: those that the variable of its agent has. */
export function restoreMetrics(pod: Pod, statusPort: number): Pod {
  const { annotations = {} } = pod.metadata
  const sidecar = sidecarOf(pod)
  // A pod of the user may say the same but for this.
  const isMerged = annotations[keys.path] === mergedPath && annotations[keys.port] === String(statusPort) && annotations[keys.scrape] === 'true'
  if (!sidecar || !isMerged) return pod
  const { [keys.port]: _port, [keys.path]: _path, [keys.scrape]: _scrape, ...others } = annotations
  const known = originals(variableOf(sidecar, variable))
  const own = Object.entries(keys).flatMap(([name, key]) => (typeof known[name] === 'string' ? [[key, known[name]] as const] : []))
  return withMetadata(pod, { annotations: { ...others, ...Object.fromEntries(own) } })
}

function originals(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isMapping(value) ? value : {}
  } catch {
    return {}
  }
}
