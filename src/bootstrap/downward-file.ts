/**
 * Reads the files in which the orchestrator provides the labels and annotations of a pod, one `key="value"` per line (docs/agent.md, B5).
 */
import { unescapeGo } from '../template/go-string.ts'

/** The entries of a file, and warnings for the lines that cannot be parsed. */
export interface DownwardFile {
  readonly entries: Readonly<Record<string, string>>
  readonly warnings: readonly string[]
}

/** Parses such a file. `name` is the file's name in warnings. Lines are numbered from 1. */
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

/** Parses a literal in double quotes. Undefined when the text is not one. */
function unquote(literal: string): string | undefined {
  return /^"(?:[^"\\]|\\.)*"$/s.test(literal) ? unescapeGo(literal.slice(1, -1))?.toWellFormed() : undefined
}
