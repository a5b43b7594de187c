/** Formats rules: as input of iptables-restore, and as single commands (docs/agent.md, R7). */
import { chainRemoval, type Removal } from './removal.ts'
import { ownChains, type Rule, type Table, tables } from './rules.ts'

/** Returns input of iptables-restore: for each table the removals, then new chains in the order of their first rule, then the rules. */
export function restoreText(rules: readonly Rule[], removal: Removal = {}): string {
  return tables
    .flatMap((table) => {
      const own = rules.filter((rule) => rule.table === table)
      const lines = [...(removal[table] ?? []), ...newChains(own).map(({ chain }) => `-N ${chain}`), ...own.map(ruleLine)]
      return lines.length === 0 ? [] : [`* ${table}`, ...lines, 'COMMIT']
    })
    .map((line) => `${line}\n`)
    .join('')
}

/** Returns input of iptables-restore that removes these rules and their chains, which the same rules made. */
export function undoText(rules: readonly Rule[]): string {
  const lines = (table: Table) => {
    const own = rules.filter((rule) => rule.table === table)
    const chains = newChains(own).map(({ chain }) => chain)
    return [
      ...own.filter(({ chain }) => !ownChains.includes(chain)).map(({ chain, words }) => `-D ${chain} ${words.join(' ')}`),
      ...chainRemoval(chains),
    ]
  }
  return restoreText([], Object.fromEntries(tables.map((table) => [table, lines(table)] as const).filter(([, some]) => some.length > 0)))
}

/** Returns the same changes as command lines of `iptables` or `ip6tables`. */
export function commandLines(program: 'iptables' | 'ip6tables', rules: readonly Rule[], removal: Removal = {}): string[] {
  const of = (table: Table, line: string) => `${program} -t ${table} ${line}`
  return [
    ...tables.flatMap((table) => (removal[table] ?? []).map((line) => of(table, line))),
    ...newChains(rules).map(({ table, chain }) => of(table, `-N ${chain}`)),
    ...rules.map((rule) => of(rule.table, ruleLine(rule))),
  ]
}

function ruleLine({ isFirst, chain, words }: Rule): string {
  return `${isFirst ? `-I ${chain} 1` : `-A ${chain}`} ${words.join(' ')}`
}

/** Returns the first rule of each of our chains that contain rules. */
function newChains(rules: readonly Rule[]): Rule[] {
  const seen = new Set<string>()
  return rules.filter(({ table, chain }) => ownChains.includes(chain) && !seen.has(`${table} ${chain}`) && seen.add(`${table} ${chain}`))
}
