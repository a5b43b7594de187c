/** Log line formats: the tab-separated console layout and JSON (docs/operation.md, "Logs"). */

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

/** A line of the log in JSON, whose other fields are labels. */
interface JsonLine {
  readonly level: string
  readonly time: string
  readonly scope?: string
  readonly caller?: string
  readonly msg: string
  readonly stack?: string
}

/** Returns the console layout of a line in JSON: one line, followed by the lines of a stack trace. */
export function consoleLine(json: string): string {
  const { level, time, scope, caller, msg, stack, ...labels } = JSON.parse(json) as JsonLine
  const parts = [time, level, ...(scope ? [scope] : []), ...(caller ? [caller] : []), oneLine(msg)]
  const named = Object.entries(labels).map(([key, value]) => `${key}=${oneLine(String(value))}`)
  if (named.length > 0) parts.push(named.join(' '))
  return `${[parts.join('\t'), ...(stack?.split('\n').map(oneLine) ?? [])].join('\n')}\n`
}

/** Returns a line in JSON with format characters escaped as JSON escapes control characters. */
export function jsonLine(json: string): string {
  return `${json.trimEnd().replace(obeyed, escaped)}\n`
}
