/** Finds the redirect rules of an earlier run and how to remove them (docs/agent.md, R8). */
import { type ListedRule, type ListedTable, type Listing, ruleParts } from './listing.ts'
import type { Family } from './ranges.ts'
import { dnsPort, interfaceRules, markRules, ownChains, type Rule, type Table, tables, udpDnsRules } from './rules.ts'

/** Lines of iptables-restore input that remove our rules, by table. Tables without our rules are absent. */
export type Removal = Partial<Readonly<Record<Table, readonly string[]>>>

/** The order of removing chains: a chain before those that it jumps to. */
const removalOrder = ['MESH_OUTPUT', 'MESH_INBOUND', 'MESH_DIVERT', 'MESH_TPROXY', 'MESH_REDIRECT', 'MESH_IN_REDIRECT']

/**
 * Removes our chains, every rule elsewhere that jumps to one, and the rules that an earlier run added to chains of the system. The last
 * ones carry no mark of ours: they are reconstructed from our chains (users, DNS servers, marks, interfaces), and only equal rules are
 * removed.
 */
export function removalOf(listing: Listing, family: Family): Removal {
  const beside = systemChainRules(listing, family)
  const removal: Partial<Record<Table, readonly string[]>> = {}
  for (const table of tables) {
    const chains = removalOrder.filter((chain) => listing[table].chains.includes(chain))
    const made = new MadeRules(beside.filter((rule) => rule.table === table))
    const rules = listing[table].rules.filter((rule) => !ownChains.includes(rule.chain) && (leadsToOwn(rule) || made.take(rule)))
    const lines = [...rules.map(({ line }) => `-D${line.slice(2)}`), ...chains.map((chain) => `-F ${chain}`), ...chains.map((chain) => `-X ${chain}`)]
    if (lines.length > 0) removal[table] = lines
  }
  return removal
}

/** The removal of a namespace whose rules were not read: our chains and the rules that jump to them. */
export const usualRemoval: Removal = {
  nat: [
    '-D PREROUTING -p tcp -j MESH_INBOUND',
    '-D OUTPUT -p tcp -j MESH_OUTPUT',
    ...chainRemoval(['MESH_OUTPUT', 'MESH_INBOUND', 'MESH_REDIRECT', 'MESH_IN_REDIRECT']),
  ],
  mangle: ['-D PREROUTING -p tcp -j MESH_INBOUND', ...chainRemoval(['MESH_INBOUND', 'MESH_DIVERT', 'MESH_TPROXY'])],
}

/** Returns the marks that our chains set, in decimal. */
export function ownMarks({ mangle }: Listing): string[] {
  const inChain = (chain: string) => mangle.rules.filter((rule) => rule.chain === chain)
  const set = [...inChain('MESH_DIVERT'), ...inChain('MESH_INBOUND')].flatMap((rule) => [...values(rule, '--set-mark'), ...values(rule, '--mark')])
  return [...new Set(set)]
}

/** Returns the lines that remove chains. All are flushed before one is deleted, because chains may jump to each other. */
export function chainRemoval(chains: readonly string[]): string[] {
  return [...chains.map((chain) => `-F ${chain}`), ...chains.map((chain) => `-X ${chain}`)]
}

/**
 * Reconstructs the rules that an earlier run added to chains of the system and that do not jump to our chains, from the values in our
 * chains.
 */
function systemChainRules(listing: Listing, family: Family): Rule[] {
  const output = listing.nat.rules.filter((rule) => rule.chain === 'MESH_OUTPUT')
  const passing = output.filter(({ parts }) => parts.size === 2 && parts.has('-j RETURN'))
  const servers = output.filter(({ parts }) => parts.has(`--to-ports ${dnsPort}`)).flatMap((rule) => values(rule, '-d'))
  const made = {
    uids: passing.flatMap((rule) => values(rule, '--uid-owner')),
    gids: passing.flatMap((rule) => values(rule, '--gid-owner')),
    dnsServers: servers.map((server) => server.split('/')[0] as string),
  }
  return [...interfaceRules(ownInterfaces(listing.nat)), ...udpDnsRules(made, family), ...ownMarks(listing).flatMap(markRules)]
}

/**
 * Returns the interfaces whose inbound packets are treated as outbound: those that a rule redirects from, and those that are recorded in
 * our chains because no rule does.
 */
function ownInterfaces({ rules }: ListedTable): string[] {
  const named = rules.filter(({ chain, parts }) => (chain === 'PREROUTING' && parts.has('-j MESH_REDIRECT')) || chain === 'MESH_REDIRECT')
  return [...new Set(named.flatMap((rule) => values(rule, '-i')))]
}

const leadsToOwn = ({ parts }: ListedRule) => ownChains.some((chain) => parts.has(`-j ${chain}`) || parts.has(`-g ${chain}`))

/** The rules that an earlier run made in chains of the system. Each accounts for one listed rule: an equal rule beside it is not ours. */
class MadeRules {
  readonly #left: Pick<ListedRule, 'chain' | 'parts'>[]

  constructor(rules: readonly Rule[]) {
    this.#left = rules.map(({ chain, words }) => ({ chain, parts: ruleParts(words) }))
  }

  /** Whether a listed rule is one of them that no other rule was found for. */
  take(rule: ListedRule): boolean {
    const found = this.#left.findIndex(
      ({ chain, parts }) => chain === rule.chain && parts.size === rule.parts.size && [...parts].every((part) => rule.parts.has(part)),
    )
    if (found >= 0) this.#left.splice(found, 1)
    return found >= 0
  }
}

function values({ parts }: ListedRule, option: string): string[] {
  return [...parts].filter((part) => part.startsWith(`${option} `)).map((part) => part.slice(option.length + 1))
}
