/** Tables, colours and ages, for people. */
import { oneLine } from '../logging/layout.ts'

/** What colours mean on a terminal. */
const colours = { bad: 31, good: 32, warning: 33 } as const

/** A cell of a table: text, which may have a meaning that is shown by its colour. */
export type Cell = string | { readonly text: string; readonly means: keyof typeof colours }

/** Returns a text in the colour of its meaning. */
export const coloured = (text: string, means: keyof typeof colours, isColoured: boolean): string =>
  isColoured ? `\x1b[${colours[means]}m${text}\x1b[0m` : text

/** Formats rows below a head. Characters that a terminal would obey are escaped: cells may have texts of proxies. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[], isColoured = false): string {
  const lines = [head, ...rows].map((row) =>
    row.map((cell) => (typeof cell === 'string' ? { text: oneLine(cell) } : { ...cell, text: oneLine(cell.text) })),
  )
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.text.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map(({ text, ...cell }, column) => {
          const padded = column === line.length - 1 ? text : text.padEnd(widths[column] ?? 0)
          return 'means' in cell ? `${coloured(text, cell.means, isColoured)}${padded.slice(text.length)}` : padded
        })
        .join('  ')
        .trimEnd(),
    )
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
