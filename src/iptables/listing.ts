/** Parses the output of iptables-save: tables with their chains and rules. */
import { type Table, tables } from './rules.ts'

/** A rule as printed (`-A CHAIN ...`), and its normalized parts, which do not depend on the order and spelling of options. */
export interface ListedRule {
  readonly chain: string
  readonly line: string
  readonly parts: ReadonlySet<string>
}

/** A table of the output. */
export interface ListedTable {
  readonly chains: readonly string[]
  readonly rules: readonly ListedRule[]
}

export type Listing = Readonly<Record<Table, ListedTable>>

/** Parses the tables that redirect rules are in. Other tables and lines are ignored. */
export function readListing(text: string): Listing {
  const found = Object.fromEntries(tables.map((table) => [table, { chains: [] as string[], rules: [] as ListedRule[] }])) as unknown as {
    [T in Table]: { chains: string[]; rules: ListedRule[] }
  }
  let table: Table | undefined
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) table = tables.find((name) => name === line.slice(1).trim())
    if (table === undefined) continue
    if (line.startsWith(':')) found[table].chains.push(line.slice(1).split(' ')[0] as string)
    const rule = /^-A (\S+) ?(.*)$/.exec(line)
    if (rule) found[table].rules.push({ chain: rule[1] as string, line, parts: ruleParts(wordsOf(rule[2] as string)) })
  }
  return found
}

/** Splits a printed rule into words: separated by spaces, or in double quotes with backslash escapes. */
function wordsOf(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, bare]) => bare ?? (quoted as string).replace(/\\(.)/g, '$1'))
}

/**
 * Returns a rule as a set of its options, each with negation and values. Additions of iptables-save are removed (modules implied by an
 * option, masks of all bits), and marks are converted to decimal.
 */
export function ruleParts(words: readonly string[]): Set<string> {
  const parts: string[][] = []
  let isNegated = false
  for (const word of words) {
    if (word === '!') isNegated = true
    else if (word.startsWith('-')) {
      parts.push([isNegated ? '!' : '', word])
      isNegated = false
    } else parts.at(-1)?.push(word)
  }
  return new Set(
    parts
      .filter((part) => !isImplied(part))
      .map(([negation, option, ...values]) => `${negation}${spelling(option as string)} ${values.map(plainMark).join(' ')}`),
  )
}

const isImplied = ([, option, value]: readonly string[]) =>
  option === '-m' || ((option === '--nfmask' || option === '--ctmask') && value === '0xffffffff')

function spelling(option: string): string {
  if (option === '--to-port') return '--to-ports'
  return option === '--set-xmark' ? '--set-mark' : option
}

/** Returns a mark in decimal, without a mask of all bits. */
function plainMark(value: string): string {
  const hex = /^(0x[0-9a-f]+)(\/0xffffffff)?$/i.exec(value)
  return hex ? String(Number(hex[1])) : value
}
