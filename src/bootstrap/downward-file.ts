/** Files in which the orchestrator tells a pod its labels and annotations: a line `key="value"` each (docs/agent.md, B5). */

/** What a file says, and which of its lines cannot be read. */
export interface DownwardFile {
  readonly entries: Readonly<Record<string, string>>
  readonly warnings: readonly string[]
}

/** Reads such a file. `name` is how warnings call it; lines are numbered from 1. */
export function readDownwardFile(name: string, content: string): DownwardFile {
  const entries: [string, string][] = []
  const warnings: string[] = []
  for (const [index, line] of content.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const equals = line.indexOf('=')
    const value = equals < 0 ? undefined : unquote(line.slice(equals + 1).trim())
    if (value === undefined) warnings.push(`${name}, line ${index + 1}: not key="value", left out`)
    else entries.push([line.slice(0, equals).trim().toWellFormed(), value.toWellFormed()])
  }
  return { entries: Object.fromEntries(entries), warnings }
}

const plainEscapes: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11, '\\': 92, '"': 34 }

/** The text of a literal in double quotes as Go writes it (Go specification, "String literals"); undefined when it is none. */
function unquote(literal: string): string | undefined {
  if (literal.length < 2 || !literal.startsWith('"') || !literal.endsWith('"')) return undefined
  const inner = literal.slice(1, -1)
  if (!inner.includes('\\')) return inner.includes('"') ? undefined : inner
  const parts: Buffer[] = []
  const pattern = /([^"\\]+)|\\(?:([abfnrtv\\"])|([0-7]{3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8}))/gy
  let end = 0
  for (const [whole, text, plain, octal, byte, short, long] of inner.matchAll(pattern)) {
    end += whole.length
    const code = Number.parseInt(short ?? long ?? '', 16)
    if (text !== undefined) parts.push(Buffer.from(text))
    else if (plain !== undefined) parts.push(Buffer.of(plainEscapes[plain] as number))
    else if (octal !== undefined || byte !== undefined) parts.push(Buffer.of(octal ? Number.parseInt(octal, 8) : Number.parseInt(byte as string, 16)))
    else if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined
    else parts.push(Buffer.from(String.fromCodePoint(code)))
  }
  return end === inner.length ? Buffer.concat(parts).toString() : undefined
}
