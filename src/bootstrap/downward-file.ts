/** Files in which the orchestrator tells a pod its labels and annotations: a line `key="value"` each (docs/agent.md, B5). */
import { unescapeGo } from './go-string.ts'

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

/** The text of a literal in double quotes; undefined when it is none. */
function unquote(literal: string): string | undefined {
  return /^"(?:[^"\\]|\\.)*"$/s.test(literal) ? unescapeGo(literal.slice(1, -1)) : undefined
}
