/** Prints and stores the results. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Goal, isMet } from './goals.ts'
import type { Limit } from './limit.ts'

/** One measured scenario. Times are milliseconds, CPU is seconds per round, sizes are MiB. */
export interface Measure {
  readonly scenario: string
  readonly variant: string
  readonly p50?: number
  readonly p99?: number
  readonly last?: number
  readonly cpu: number
  readonly mib: number
  readonly rss: number
  readonly limit?: Limit
  readonly threads: Readonly<Record<string, number>>
  /** Additional observations. */
  readonly notes?: string
  /** The figures of a scenario whose columns are its own, by column. Such a measure is in a table of its own. */
  readonly figures?: Readonly<Record<string, string | number>>
  /** The goals of the scenario. */
  readonly goals?: readonly Goal[]
  /** Why the scenario was not measured. */
  readonly failed?: string
}

/** Prints progress to standard error. */
export const progress = (text: string): void => {
  process.stderr.write(`${text}\n`)
}

/** Returns the ratio of a measure's CPU to that of the bare server. */
export const ratioOf = (measure: Measure): number | undefined =>
  measure.limit && measure.limit.cpu > 0 ? measure.cpu / measure.limit.cpu : undefined

const number = (value: number | undefined, digits = 0): string => (value === undefined || !Number.isFinite(value) ? '-' : value.toFixed(digits))

/** Formats measures as a Markdown table. */
function table(measures: readonly Measure[]): string {
  const head = [
    'scenario',
    'variant',
    'p50 ms',
    'p99 ms',
    'last ms',
    'bare last',
    'CPU s',
    'bare CPU',
    'ratio',
    'MiB',
    'RSS MiB',
    'bare RSS',
    'notes',
  ]
  const rows = measures.map((m) => [
    m.scenario,
    m.variant,
    number(m.p50),
    number(m.p99),
    number(m.last),
    number(m.limit?.last),
    number(m.cpu, 3),
    number(m.limit?.cpu, 3),
    ratioOf(m) === undefined ? '-' : `${number(ratioOf(m), 1)}x`,
    number(m.mib, 1),
    number(m.rss),
    number(m.limit?.rss),
    m.notes ?? '',
  ])
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Formats the CPU seconds of each thread and scenario as a Markdown table. */
function threadTable(measures: readonly Measure[]): string {
  const threads = [...new Set(measures.flatMap((measure) => Object.keys(measure.threads)))].sort()
  const head = ['scenario', 'variant', ...threads, 'all of the process']
  const rows = measures.map((m) => [m.scenario, m.variant, ...threads.map((thread) => number(m.threads[thread], 3)), number(m.cpu, 3)])
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Formats the goals of measures, and whether they are met, as a Markdown table. Empty when there are none. */
function goalTable(measures: readonly Measure[]): string {
  const rows = measures.flatMap(({ scenario, variant, goals = [] }) =>
    goals.map((goal) => {
      const digits = goal.unit === 'CPU s' ? 3 : 1
      const figure = (value: number) => (Number.isFinite(value) ? `${value.toFixed(digits)} ${goal.unit}` : '-')
      return [variant, scenario, goal.what, figure(goal.seen), figure(goal.most), isMet(goal) ? 'met' : '**missed**']
    }),
  )
  if (rows.length === 0) return ''
  const head = ['variant', 'scenario', 'figure', 'seen', 'at most', 'goal']
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Formats the measures with columns of their own as a Markdown table for each set of columns. */
function figureTables(measures: readonly Measure[]): string[] {
  const tables = Map.groupBy(measures, ({ figures = {} }) => Object.keys(figures).join())
  return [...tables.values()].map((rows) => {
    const head = ['scenario', ...Object.keys(rows[0]?.figures ?? {})]
    const cells = rows.map(({ scenario, figures = {} }) => [scenario, ...Object.values(figures).map(String)])
    return [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n')
  })
}

/** Writes the results to bench/out. */
export function keep(parameters: object, measures: readonly Measure[]): void {
  const out = fileURLToPath(new URL('./out/', import.meta.url))
  mkdirSync(out, { recursive: true })
  writeFileSync(`${out}bench.json`, JSON.stringify({ ...parameters, measures }, null, 2))
  writeFileSync(`${out}bench.md`, `${whole(measures)}\n`)
}

/** Formats all tables of measures. */
export function whole(measures: readonly Measure[]): string {
  const [ordinary, others] = [measures.filter(({ figures }) => !figures), measures.filter(({ figures }) => figures)]
  const tables = ordinary.length > 0 ? [`${table(ordinary)}\n\nCPU seconds a round:\n\n${threadTable(ordinary)}`] : []
  const goals = goalTable(measures)
  return [...tables, ...figureTables(others), ...(goals ? [`Goals:\n\n${goals}`] : [])].join('\n\n')
}
