/** What of a namespace's rules is ours, and how it is removed (docs/agent.md, R8). */
import { type ListedRule, type ListedTable, type Listing, ruleParts } from './listing.ts'
import type { Family } from './ranges.ts'
import { dnsPort, interfaceRules, markRules, ownChains, type Rule, type Table, tables, udpDnsRules } from './rules.ts'

/** Lines for iptables-restore, by table, that remove what is ours. A table in which nothing is ours is not there. */
export type Removal = Partial<Readonly<Record<Table, readonly string[]>>>

/** The order in which chains are removed: those first that lead to others. */
const removalOrder = ['MESH_OUTPUT', 'MESH_INBOUND', 'MESH_DIVERT', 'MESH_TPROXY', 'MESH_REDIRECT', 'MESH_IN_REDIRECT']

/**
 * Removes our chains and every rule elsewhere that leads to one, and the rules in chains of the system that were made beside them. The latter
 * have no mark of ours: what they were follows from our chains (users, DNS servers, marks, interfaces), and only rules that equal these are taken.
 */
export function removalOf(listing: Listing, family: Family): Removal {
  const beside = rulesBeside(listing, family)
  const removal: Partial<Record<Table, readonly string[]>> = {}
  for (const table of tables) {
    const chains = removalOrder.filter((chain) => listing[table].chains.includes(chain))
    const made = beside.filter((rule) => rule.table === table).map(({ chain, words }) => ({ chain, parts: ruleParts(words) }))
    const rules = listing[table].rules.filter(
      (rule) => !ownChains.includes(rule.chain) && (leadsToOwn(rule) || isQuery(table, rule) || isOneOf(made, rule)),
    )
    const lines = [...rules.map(({ line }) => `-D${line.slice(2)}`), ...chains.map((chain) => `-F ${chain}`), ...chains.map((chain) => `-X ${chain}`)]
    if (lines.length > 0) removal[table] = lines
  }
  return removal
}

/** What is removed of a namespace that was not looked at: our chains, and what leads to them. */
export const usualRemoval: Removal = {
  nat: [
    '-D PREROUTING -p tcp -j MESH_INBOUND',
    '-D OUTPUT -p tcp -j MESH_OUTPUT',
    ...chainRemoval(['MESH_OUTPUT', 'MESH_INBOUND', 'MESH_REDIRECT', 'MESH_IN_REDIRECT']),
  ],
  mangle: ['-D PREROUTING -p tcp -j MESH_INBOUND', ...chainRemoval(['MESH_INBOUND', 'MESH_DIVERT', 'MESH_TPROXY'])],
}

/** The marks that our chains set, as decimal numbers. */
export function ownMarks({ mangle }: Listing): string[] {
  const inChain = (chain: string) => mangle.rules.filter((rule) => rule.chain === chain)
  const set = [...inChain('MESH_DIVERT'), ...inChain('MESH_INBOUND')].flatMap((rule) => [...values(rule, '--set-mark'), ...values(rule, '--mark')])
  return [...new Set(set)]
}

/** Chains are emptied before any is removed, since one may lead to another. */
function chainRemoval(chains: readonly string[]): string[] {
  return [...chains.map((chain) => `-F ${chain}`), ...chains.map((chain) => `-X ${chain}`)]
}

/** The rules outside our chains, that do not lead to them, which were made with what our chains hold. */
function rulesBeside(listing: Listing, family: Family): Rule[] {
  const output = listing.nat.rules.filter((rule) => rule.chain === 'MESH_OUTPUT')
  const passing = output.filter(({ parts }) => parts.size === 2 && parts.has('-j RETURN'))
  const servers = output.filter(({ parts }) => parts.has(`--to-ports ${dnsPort}`)).flatMap((rule) => values(rule, '-d'))
  const made = {
    uids: passing.flatMap((rule) => values(rule, '--uid-owner')),
    gids: passing.flatMap((rule) => values(rule, '--gid-owner')),
    dnsServers: { 4: [], 6: [], [family]: servers.map((server) => server.split('/')[0] as string) },
  }
  return [...interfaceRules(ownInterfaces(listing.nat)), ...udpDnsRules(made, family), ...ownMarks(listing).flatMap(markRules)]
}

/**
 * The interfaces whose packets are taken for outbound ones. Where no outbound range is captured no rule of ours names them: then they are those of the
 * rules that stand before all others of the chain, where they were put.
 */
function ownInterfaces({ chains, rules }: ListedTable): string[] {
  const prerouting = rules.filter((rule) => rule.chain === 'PREROUTING')
  const leading = prerouting.findIndex(
    ({ parts }) => !(parts.size === 2 && parts.has('-j RETURN') && [...parts].some((part) => part.startsWith('-i '))),
  )
  const redirects = rules.filter(({ chain, parts }) => chain === 'MESH_OUTPUT' && parts.has('-j MESH_REDIRECT'))
  const capturesNothing = chains.includes('MESH_OUTPUT') && redirects.every((rule) => values(rule, '--dport').length > 0)
  const named = prerouting.filter(({ parts }) => parts.has('-j MESH_REDIRECT'))
  return [...named, ...(capturesNothing ? prerouting.slice(0, leading === -1 ? undefined : leading) : [])].flatMap((rule) => values(rule, '-i'))
}

const leadsToOwn = ({ parts }: ListedRule) => ownChains.some((chain) => parts.has(`-j ${chain}`) || parts.has(`-g ${chain}`))

/** Queries over UDP that go to the agent: nobody else sends them to its port. */
const isQuery = (table: Table, { chain, parts }: ListedRule) =>
  table === 'nat' && chain === 'OUTPUT' && parts.has('-p udp') && parts.has('--dport 53') && parts.has(`--to-ports ${dnsPort}`)

const isOneOf = (made: readonly Pick<ListedRule, 'chain' | 'parts'>[], rule: ListedRule) =>
  made.some(({ chain, parts }) => chain === rule.chain && parts.size === rule.parts.size && [...parts].every((part) => rule.parts.has(part)))

function values({ parts }: ListedRule, option: string): string[] {
  return [...parts].filter((part) => part.startsWith(`${option} `)).map((part) => part.slice(option.length + 1))
}
