/** Log line formats: the tab-separated console layout and JSON (docs/operation.md, "Logs"). */
import type { LogRecord } from '../../protocols/messages/log.ts'

/** Formats a time in Unix milliseconds as RFC 3339 in UTC with microseconds. */
export function formatTime(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.floor((ms - whole) * 1000)
  return `${new Date(whole).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}

/**
 * Characters that a terminal or page obeys instead of showing them: control characters (C0, C1), line and paragraph separators, and format
 * characters, among them those that turn the direction of writing.
 */
const obeyed = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** Escapes control and format characters, so that a message with untrusted text stays on one line and in the order of its characters. */
export function oneLine(text: string): string {
  return text.replace(obeyed, (character) => (character === '\t' ? ' ' : escaped(character)))
}

/** Escapes the same characters in a page, but for its own line breaks and tabs. JSON keeps its meaning. */
export const printable = (page: string): string => page.replace(obeyed, (character) => (/[\n\t]/.test(character) ? character : escaped(character)))

/** Formats a record in the console layout: one line, followed by the lines of a stack trace. */
export function plainLine(record: LogRecord): string {
  const parts = [formatTime(record.time), record.level]
  if (record.scope !== 'default') parts.push(record.scope)
  if (record.caller) parts.push(record.caller)
  const labels = Object.entries(record.labels).map(([key, value]) => `${key}=${oneLine(String(value))}`)
  parts.push(oneLine(record.message))
  const line = parts.join('\t') + (labels.length > 0 ? `\t${labels.join(' ')}` : '')
  return record.stack ? `${line}\n${record.stack.split('\n').map(oneLine).join('\n')}\n` : `${line}\n`
}

/** Formats a record as JSON, with keys in the documented order. Format characters are escaped as JSON escapes control characters. */
export function jsonLine(record: LogRecord): string {
  const line = JSON.stringify({
    level: record.level,
    time: formatTime(record.time),
    ...(record.scope !== 'default' ? { scope: record.scope } : {}),
    ...(record.caller ? { caller: record.caller } : {}),
    msg: record.message,
    ...record.labels,
    ...(record.stack ? { stack: record.stack } : {}),
  })
  return `${line.replace(obeyed, escaped)}\n`
}
