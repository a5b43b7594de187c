/** Tables, colours and ages, for people. */
import { oneLine } from '../logging/layout.ts'
import { folded, longestPart } from './folding.ts'
import { terminalWidth } from './print.ts'

/** What colours mean on a terminal. */
const colours = { bad: 31, good: 32, warning: 33 } as const

/** A cell of a table: text, which may have a meaning that is shown by its colour. */
export type Cell = string | { readonly text: string; readonly means: keyof typeof colours }

/** Returns a text in the colour of its meaning. */
export const coloured = (text: string, means: keyof typeof colours, isColoured: boolean): string =>
  isColoured ? `\x1b[${colours[means]}m${text}\x1b[0m` : text

/** A cell with its text on one line. */
interface Line {
  readonly text: string
  readonly means?: keyof typeof colours
}

/**
 * Formats rows below a head. Characters that a terminal would obey are escaped: cells may have texts of proxies. Where lines would be longer than `width`, which is that
 * of the terminal, if there is one, cells go on below themselves; where not even their longest parts have a place beside each other, each row is a list of its cells.
 */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[], isColoured = false, width = terminalWidth()): string {
  const lines = [head, ...rows].map((row) =>
    row.map((cell): Line => (typeof cell === 'string' ? { text: oneLine(cell) } : { ...cell, text: oneLine(cell.text) })),
  )
  const widths = columnWidths(head, lines, width)
  if (!widths) return listed(head, lines.slice(1), isColoured, width)
  return lines.flatMap((line) => rowLines(line, widths, isColoured)).join('\n')
}

/** What is between columns. */
const gap = '  '
/** The greatest width below which no column gets: longer parts of a text are cut. */
const leastFolded = 20

/** The widths of the columns in lines of at most `width`; undefined: they have no place there. */
function columnWidths(head: readonly string[], lines: readonly (readonly Line[])[], width: number): readonly number[] | undefined {
  const widest = (of: (text: string) => number) => head.map((_, column) => Math.max(...lines.map((line) => of(line[column]?.text ?? ''))))
  const whole = widest((text) => text.length)
  const free = width - gap.length * (head.length - 1)
  const sum = (widths: readonly number[]) => widths.reduce((total, each) => total + each, 0)
  if (sum(whole) <= free) return whole
  const least = widest((text) => Math.min(longestPart(text), leastFolded))
  if (sum(least) > free) return undefined
  // The widest columns are folded first: all to the same width, as great as it may be.
  const capped = (cap: number) => whole.map((each, column) => Math.max(least[column] ?? 0, Math.min(each, cap)))
  let cap = 0
  while (sum(capped(cap + 1)) <= free) cap++
  const widths = capped(cap)
  const last = widths.length - 1
  const rest = Math.min(free - sum(widths), (whole[last] ?? 0) - (widths[last] ?? 0))
  return widths.map((each, column) => (column === last ? each + rest : each))
}

/** The lines of a row, in which each cell goes on below itself. */
function rowLines(row: readonly Line[], widths: readonly number[], isColoured: boolean): string[] {
  const parts = row.map(({ text }, column) => {
    // The last cell of a row that is shorter than the head has the place of all columns that are left.
    const own = column === row.length - 1 ? widths.slice(column) : [widths[column] ?? 0]
    return folded(
      text,
      own.reduce((sum, each) => sum + each + gap.length, -gap.length),
    )
  })
  return Array.from({ length: Math.max(...parts.map(({ length }) => length)) }, (_, index) =>
    row
      .map(({ means }, column) => {
        const text = parts[column]?.[index] ?? ''
        const padding = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - text.length)
        return `${means && text !== '' ? coloured(text, means, isColoured) : text}${padding}`
      })
      .join(gap)
      .trimEnd(),
  )
}

/** Rows one below the other, each as a list of its cells with what the head calls them; a row without a first cell goes on with the one before. */
function listed(head: readonly string[], rows: readonly (readonly Line[])[], isColoured: boolean, width: number): string {
  const names = Math.max(...head.map(({ length }) => length))
  const indent = ' '.repeat(names + gap.length)
  return rows
    .map((row, at) => {
      const shown = row
        .flatMap(({ text, means }, column) => {
          if (text === '') return []
          const parts = folded(text, Math.max(width - indent.length, leastFolded)).map((part) => (means ? coloured(part, means, isColoured) : part))
          return parts.map((part, index) => `${index === 0 ? `${(head[column] ?? '').padEnd(names)}${gap}` : indent}${part}`)
        })
        .join('\n')
      return at > 0 && row[0]?.text !== '' ? `\n${shown}` : shown
    })
    .join('\n')
}

/** Formats a number of bytes in its largest unit: `512 B`, `1.5 KiB`, `20 MiB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  const unit = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log(bytes) / Math.log(1024)))
  const number = bytes / 1024 ** unit
  return `${unit > 0 && number < 10 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`
}

/** Formats a time span in its largest unit: `950 ms`, `45 s`, `12 min`, `3 h`, `5 d`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [unit, length] = units.find(([, least]) => ms >= least) ?? units[3]
  return `${Math.floor(ms / length)} ${unit}`
}
