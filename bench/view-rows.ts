/** Formats one line of a Markdown table per mesh of the set `views`: the figures with goals, and their ratios to the plain mesh. */
import { ratioOf } from './report.ts'
import type { ShapeMeasures } from './scenarios/shape.ts'

const titles = [
  'mesh',
  'connect, CPU s',
  'beside bare',
  'endpoint, CPU s',
  'last ms',
  'route, CPU s',
  'p99 ms',
  'resident MiB',
  'push queue: KiB a class',
  'ms a class',
]

/** The head of the table. */
export const viewHead: string = [titles, titles.map(() => '---')].map((row) => `| ${row.join(' | ')} |`).join('\n')

/** Returns the line of a mesh. `plain` is the plain mesh of its size, if it was measured. */
export function viewRow(seen: ShapeMeasures, plain: ShapeMeasures | undefined): string {
  const isPlain = seen === plain
  const cpu = (step: Exclude<keyof ShapeMeasures, 'view'>, digits: number): string => {
    const figure = seen[step].cpu.toFixed(digits)
    return plain && !isPlain ? `${figure} (${(seen[step].cpu / plain[step].cpu).toFixed(1)}x)` : figure
  }
  const each = (what: 'kib' | 'ms', digits: number): string => {
    const [own, other] = [seen.view[what], plain?.view[what]]
    return other !== undefined && !isPlain
      ? `${own.toFixed(digits)} (${own < other ? '' : '+'}${(own - other).toFixed(digits)})`
      : own.toFixed(digits)
  }
  const bare = ratioOf(seen.connect)
  const cells = [
    seen.connect.variant,
    cpu('connect', 2),
    bare === undefined ? '-' : `${bare.toFixed(1)}x`,
    cpu('endpoint', 3),
    seen.endpoint.last?.toFixed(0) ?? '-',
    cpu('route', 3),
    seen.route.p99?.toFixed(0) ?? '-',
    seen.route.rss.toFixed(0),
    each('kib', 0),
    each('ms', 1),
  ]
  return `| ${cells.join(' | ')} |`
}
