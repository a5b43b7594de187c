/** The formats of metrics pages, and which one a client asks for. */
import type { RegistryContentType } from 'prom-client'

/** The text format of Prometheus (version 0.0.4), or OpenMetrics (1.0.0). */
export type MetricsFormat = 'text' | 'openmetrics'

/** The media type of each format. */
export const mediaTypes = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const satisfies Record<MetricsFormat, RegistryContentType>

/** The versions of each format by which a client may ask for it; any client reads what it names no version of. */
const versions: Readonly<Record<MetricsFormat, ReadonlySet<string | undefined>>> = {
  text: new Set([undefined, '0.0.4']),
  openmetrics: new Set([undefined, '0.0.1', '1.0.0']),
}
/** The format of each media range. */
const formats: ReadonlyMap<string, MetricsFormat> = new Map([
  ['application/openmetrics-text', 'openmetrics'],
  ['text/plain', 'text'],
  ['text/*', 'text'],
  ['*/*', 'text'],
])

/** Returns the format that an `Accept` header prefers: OpenMetrics only where the header names it with a higher quality than text. */
export function formatFor(accept = ''): MetricsFormat {
  const best = { text: 0, openmetrics: 0 }
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const parameter = (name: string) => parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1)
    const format = formats.get(type)
    if (format && versions[format].has(parameter('version'))) best[format] = Math.max(best[format], Number(parameter('q') ?? 1) || 0)
  }
  return best.openmetrics > best.text ? 'openmetrics' : 'text'
}
