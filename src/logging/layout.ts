/** Log line formats: the tab-separated console layout and JSON (docs/operation.md, "Logs"). */
import type { LogRecord } from '../../protocols/messages/log.ts'

/** Formats a time in Unix milliseconds as RFC 3339 in UTC with microseconds. */
export function formatTime(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.floor((ms - whole) * 1000)
  return `${new Date(whole).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}

/** Escapes control characters, so that a message with untrusted text stays on one line. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (c) => (c === '\t' ? ' ' : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`))
}

/** Formats a record in the console layout: one line, followed by the lines of a stack trace. */
export function plainLine(record: LogRecord): string {
  const parts = [formatTime(record.time), record.level]
  if (record.scope !== 'default') parts.push(record.scope)
  if (record.caller) parts.push(record.caller)
  const labels = Object.entries(record.labels).map(([key, value]) => `${key}=${oneLine(String(value))}`)
  parts.push(oneLine(record.message))
  const line = parts.join('\t') + (labels.length > 0 ? `\t${labels.join(' ')}` : '')
  return record.stack ? `${line}\n${record.stack}\n` : `${line}\n`
}

/** Formats a record as JSON, with keys in the documented order. */
export function jsonLine(record: LogRecord): string {
  return `${JSON.stringify({
    level: record.level,
    time: formatTime(record.time),
    ...(record.scope !== 'default' ? { scope: record.scope } : {}),
    ...(record.caller ? { caller: record.caller } : {}),
    msg: record.message,
    ...record.labels,
    ...(record.stack ? { stack: record.stack } : {}),
  })}\n`
}
