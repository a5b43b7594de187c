/** The values of flags and arguments that shells complete without asking a server. */
import type { Candidate } from './typed-line.ts'

/** What is looked for by the shell itself, which knows files. */
const ofShell: ReadonlySet<string> = new Set(['file', 'directory'])

/** The texts of values whose placeholder or argument does not say them itself. */
const texts: Readonly<Record<string, string>> = {
  'request method': 'GET|POST',
  'proxy role': 'sidecar|router',
  'autocomplete shell': 'bash|zsh|fish|powershell',
}

/** Returns the values of a flag or argument ({@link Sought.value}), of which `typed` is the beginning; undefined: others know them. */
export function knownValues(
  value: string,
  typed: string,
  { scopes, levels }: { scopes: readonly string[]; levels: readonly string[] },
): Candidate[] | undefined {
  if (ofShell.has(value)) return []
  if (value === 'scope') return named(scopes)
  if (value === 'scope:level')
    return typed.includes(':') ? scopes.flatMap((scope) => named(levels.map((level) => `${scope}:${level}`))) : named(scopes, ':')
  const written = texts[value] ?? value
  return written.includes('|') ? named(written.split('|')) : undefined
}

const named = (words: readonly string[], end = ''): Candidate[] => words.map((word) => ({ word: `${word}${end}`, about: '' }))
