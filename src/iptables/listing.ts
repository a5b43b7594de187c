/** What iptables-save prints, read: the tables of a namespace with their chains and rules. */
import { type Table, tables } from './rules.ts'

/** A rule as it was printed (`-A CHAIN ...`), and its parts in one form whatever the order and spelling of its words. */
export interface ListedRule {
  readonly chain: string
  readonly line: string
  readonly parts: ReadonlySet<string>
}

/** A table of a listing. */
export interface ListedTable {
  readonly chains: readonly string[]
  readonly rules: readonly ListedRule[]
}

export type Listing = Readonly<Record<Table, ListedTable>>

/** Reads the tables that rules of redirection are in. Other tables and lines that are no rules are passed over. */
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

/** The words of a printed rule: separated by spaces, or in double quotes with backslashes. */
function wordsOf(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, bare]) => bare ?? (quoted as string).replace(/\\(.)/g, '$1'))
}

/**
 * A rule as the set of its options, each with its negation and its values. What iptables-save adds to what was given is left out (modules
 * that an option implies, masks of all bits), and marks are decimal.
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

/** A mark without a mask of all bits, as a decimal number. */
function plainMark(value: string): string {
  const hex = /^(0x[0-9a-f]+)(\/0xffffffff)?$/i.exec(value)
  return hex ? String(Number(hex[1])) : value
}
