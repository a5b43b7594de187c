/** The metrics of docs/metrics.md, as their tables have them. */
import { readFileSync } from 'node:fs'

/** A metric: its type, its labels, and the section whose table it is in. */
export interface DocumentedMetric {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly section: string
}

/** Returns the rows of all tables that have types. */
export function documentedMetrics(): DocumentedMetric[] {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  return page.split(/^## /m).flatMap((text) => {
    const section = text.split('\n')[0] ?? ''
    return [...text.matchAll(/^\| `(\w+)` +\| (\w+) +\|([^|]*)\|/gm)].map(([, name = '', type = '', labels = '']) => ({
      name,
      type,
      labels: labels
        .replaceAll('`', '')
        .split(',')
        .map((label) => label.trim())
        .filter(Boolean),
      section,
    }))
  })
}
