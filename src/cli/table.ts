/** Tables, colours and ages, for people. */
import { oneLine } from '../logging/layout.ts'
import { terminalWidth } from './print.ts'

/** What colours mean on a terminal. */
const colours = { bad: 31, good: 32, warning: 33 } as const

/** A cell of a table: text, which may have a meaning that is shown by its colour. */
export type Cell = string | { readonly text: string; readonly means: keyof typeof colours }

/** Returns a text in the colour of its meaning. */
export const coloured = (text: string, means: keyof typeof colours, isColoured: boolean): string =>
  isColoured ? `\x1b[${colours[means]}m${text}\x1b[0m` : text

/**
 * Formats rows below a head. Characters that a terminal would obey are escaped: cells may have texts of proxies. Cells of the last column go on below themselves
 * where a line would be longer than `width`, which is that of the terminal, if there is one.
 */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[], isColoured = false, width = terminalWidth()): string {
  const lines = [head, ...rows].map((row) =>
    row.map((cell) => (typeof cell === 'string' ? { text: oneLine(cell) } : { ...cell, text: oneLine(cell.text) })),
  )
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.text.length ?? 0)))
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + gap.length, 0)
  const least = Math.max(width - before, leastFolded)
  return lines
    .flatMap((line) => {
      const [first = '', ...more] = folded(line.length === head.length ? (line.at(-1)?.text ?? '') : '', least)
      const shown = line
        .map(({ text, ...cell }, column) => {
          const isLast = column === line.length - 1
          const own = isLast && line.length === head.length ? first : text
          const padded = isLast ? own : own.padEnd(widths[column] ?? 0)
          return 'means' in cell ? `${coloured(own, cell.means, isColoured)}${padded.slice(own.length)}` : padded
        })
        .join(gap)
      return [shown.trimEnd(), ...more.map((part) => `${' '.repeat(before)}${part}`)]
    })
    .join('\n')
}

/** What is between columns. */
const gap = '  '
/** The least width of a column that is folded: with less, nothing can be read. */
const leastFolded = 20

/** Cuts a text into lines of at most a width, at spaces where there are some. */
function folded(text: string, width: number): string[] {
  const lines: string[] = []
  let rest = text
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width)
    const end = space > 0 ? space : width
    lines.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
  return [...lines, rest]
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
