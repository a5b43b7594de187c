/** `mesh-iptables`: applies the redirect rules and validates that they work (docs/agent.md, R1 to R9). */
import { ExitError } from '../../../src/cli/exit-status.ts'
import type { Listing } from '../../../src/iptables/listing.ts'
import { excludesAll, type RedirectHost, readRedirectOptions } from '../../../src/iptables/options.ts'
import type { RedirectOrder } from '../../../src/iptables/order.ts'
import type { Family, Ranges } from '../../../src/iptables/ranges.ts'
import { removalOf } from '../../../src/iptables/removal.ts'
import { type MarkRoute, markRouteCommands, markRouteOf, passthroughAddress } from '../../../src/iptables/routing.ts'
import { isTransparent, type RedirectOptions, redirectRules } from '../../../src/iptables/rules.ts'
import { commandLines, restoreText, undoText } from '../../../src/iptables/text.ts'
import { failedRules } from './host.ts'
import { hasPassthroughAddress, ownMarkRoutes } from './leftovers.ts'
import { Network, type RuleChange } from './network.ts'
import { type HostAccess, realHost } from './programs.ts'
import { validate } from './validation.ts'

/**
 * With TPROXY the proxy connects to the application at 127.0.0.1 with the caller's source address. Without `route_localnet` the kernel does
 * not route the application's response.
 */
const needsLoopbackRoutes =
  'TPROXY: net.ipv4.conf.all.route_localnet is 0: replies of applications will not reach their callers; set it to 1 in this network namespace'

/**
 * Executes the command. Rejects with an ExitError when rules cannot be applied or the validation fails, and with an Error when a setting is
 * invalid.
 */
export async function redirect(order: RedirectOrder, access: HostAccess = realHost): Promise<void> {
  const { say, warn } = access
  const host = access.readHost(order)
  const { options: wanted, warnings } = readRedirectOptions(order.settings, host)
  const network = new Network(access, order.isDryRun)
  const options = order.skipRuleApply || host.ipv6 !== 'off' ? wanted : whereItCan(wanted, network)
  if (excludesAll(options)) throw new ExitError('--mesh-service-exclude-cidr: "*" excludes everything; list ranges such as 10.0.0.0/8', failedRules)
  for (const warning of [...order.warnings, ...warnings]) warn(`warning: ${warning}`)
  if (host.ipv6 === 'on' && !options.capturesIpv6) warn('warning: --mesh-ipv6 pass: traffic over IPv6 goes past the proxy and all policies')
  if (!order.skipRuleApply && isTransparent(options) && !host.routesLoopback) warn(`warning: ${needsLoopbackRoutes}`)
  if (!order.skipRuleApply) {
    describe(order, options, say)
    applyRules(order, options, host.ipv6, network)
  }
  if (order.runValidation) {
    const ports = [...new Set([options.proxyPort, options.inboundPort])].map(Number)
    for (const family of host.ipv6 === 'on' ? capturedFamilies(options) : [4 as const])
      await validate({ address: host.address, family, ports, probePort: order.probePort, timeoutMs: order.probeTimeoutMs }, say)
  }
}

/** Prints the settings from the environment and the effective settings. */
function describe({ environment }: RedirectOrder, options: RedirectOptions, say: HostAccess['say']): void {
  const block = (title: string, lines: readonly (readonly [string, string])[]) =>
    say([title, '-'.repeat(title.length), ...lines.map(([name, value]) => `${name}=${value}`), ''].join('\n'))
  block('Environment:', environment)
  block('Variables:', [
    ['PROXY_PORT', options.proxyPort],
    ['PROXY_INBOUND_CAPTURE_PORT', options.inboundPort],
    ['PROXY_TUNNEL_PORT', options.tunnelPort],
    ['PROXY_UID', options.uids.join(',')],
    ['PROXY_GID', options.gids.join(',')],
    ['INBOUND_INTERCEPTION_MODE', options.isTproxy ? 'TPROXY' : 'REDIRECT'],
    ['INBOUND_TPROXY_MARK', options.mark],
    ['INBOUND_TPROXY_ROUTE_TABLE', options.routeTable],
    ['INBOUND_PORTS_INCLUDE', options.inboundPorts === 'all' ? '*' : options.inboundPorts.join(',')],
    ['INBOUND_PORTS_EXCLUDE', options.inboundPortsExcluded.join(',')],
    ['OUTBOUND_IP_RANGES_INCLUDE', rangesText(options.outboundRanges)],
    ['OUTBOUND_IP_RANGES_EXCLUDE', rangesText(options.outboundRangesExcluded)],
    ['OUTBOUND_PORTS_INCLUDE', options.outboundPorts.join(',')],
    ['OUTBOUND_PORTS_EXCLUDE', options.outboundPortsExcluded.join(',')],
    ['ORCH_VIRT_INTERFACES', options.interfaces.join(',')],
    ['ENABLE_INBOUND_IPV6', String(options.capturesIpv6)],
    ['DNS_CAPTURE', String(options.redirectDns)],
    ['DNS_SERVERS', [...options.dnsServers[4], ...options.dnsServers[6]].join(',')],
  ])
}

const rangesText = (ranges: Ranges) => (ranges.all ? '*' : [...ranges[4], ...ranges[6]].join(','))

/** The families whose traffic is redirected. */
const capturedFamilies = ({ capturesIpv6 }: RedirectOptions): readonly Family[] => (capturesIpv6 ? [4, 6] : [4])

/**
 * Returns the options for a host where IPv6 is switched off: it is captured too, since it may be switched on later, unless the host cannot
 * do so, which does no harm now.
 */
function whereItCan(options: RedirectOptions, network: Network): RedirectOptions {
  const found = foundOf(6, { ...options, capturesIpv6: false }, network)
  const canCapture = options.capturesIpv6 && found !== undefined && network.accepts(change(6, options, found.listing, false))
  return { ...options, capturesIpv6: canCapture }
}

/**
 * Applies rules, routes and addresses: IPv6 before IPv4, so that whoever waits until IPv4 is redirected finds both redirected. When one of
 * them fails, those before it are taken back.
 */
function applyRules({ restoreFormat }: RedirectOrder, options: RedirectOptions, ipv6: RedirectHost['ipv6'], network: Network): void {
  const hasIpv6 = ipv6 !== 'absent'
  const families = hasIpv6 ? ([4, 6] as const) : ([4] as const)
  const before = families.flatMap((family) => foundOf(family, options, network) ?? []).reverse()
  const wanted = isTransparent(options) ? markRouteOf(options) : undefined
  const hasAddress = hasIpv6 && hasPassthroughAddress(network)
  const undo: (readonly string[])[] = []
  const add = (commands: readonly (readonly string[])[], undoing: readonly (readonly string[])[]) => {
    for (const [index, command] of commands.entries()) {
      network.changeIp(command)
      undo.push(undoing[index] as readonly string[])
    }
  }
  try {
    if (options.capturesIpv6 && ipv6 === 'on' && !hasAddress) add([passthroughAddress('add')], [passthroughAddress('del')])
    for (const { family, routes } of before)
      if (wanted && capturedFamilies(options).includes(family))
        add(missingRoute('add', family, wanted, routes), missingRoute('del', family, wanted, routes))
    const changes = before.map(({ family, listing }) => change(family, options, listing, restoreFormat))
    network.apply(changes)
  } catch (error) {
    for (const command of undo.reverse()) network.ip(...command)
    throw explained(error as Error, options)
  }
  for (const { family, routes } of before)
    for (const old of routes) removeMarkRoute(old, family, capturedFamilies(options).includes(family) ? wanted : undefined, network)
  if (!options.capturesIpv6 && hasAddress && before.some(({ family, listing }) => family === 6 && listing && removalOf(listing, 6).nat))
    network.changeIp(passthroughAddress('del'))
  network.show('iptables-save')
  if (options.capturesIpv6) network.show('ip6tables-save')
}

/** What an earlier run left in a family: rules, undefined in a dry run, and routes. */
interface Found {
  readonly family: Family
  readonly listing: Listing | undefined
  readonly routes: readonly MarkRoute[]
}

/**
 * Reads the rules of a family. Undefined for IPv6 when it is not captured and has no rules that can be read. Throws an ExitError when rules
 * that are needed cannot be read.
 */
function foundOf(family: Family, options: RedirectOptions, network: Network): Found | undefined {
  try {
    const listing = network.rules(family)
    return { family, listing, routes: listing ? ownMarkRoutes(listing, family, network) : [] }
  } catch (error) {
    if (!capturedFamilies(options).includes(family)) return undefined
    throw explained(error as Error, options)
  }
}

/** Returns an error of `ip6tables` with what to do about it; other errors unchanged. */
function explained(error: Error, { capturesIpv6 }: RedirectOptions): Error {
  if (!capturesIpv6 || !error.message.startsWith('ip6tables')) return error
  return new ExitError(`${error.message}; ${withoutIpv6}`, failedRules)
}

const withoutIpv6 =
  'this network namespace has IPv6, which would go past the proxy and all policies: install ip6tables (it comes with iptables), or switch IPv6 off (net.ipv6.conf.all.disable_ipv6 and net.ipv6.conf.default.disable_ipv6 are 1), or accept it (--mesh-ipv6 pass)'

/**
 * Returns the commands that add or remove the policy rule from the mark to the table, and the table's route to this host, without what an
 * earlier run has added.
 */
function missingRoute(what: 'add' | 'del', family: Family, wanted: MarkRoute, before: readonly MarkRoute[]): string[][] {
  const [rule, route] = markRouteCommands(what, family, wanted)
  return [
    ...(before.some(({ mark, table }) => mark === wanted.mark && table === wanted.table) ? [] : [rule]),
    ...(before.some(({ table }) => table === wanted.table) ? [] : [route]),
  ]
}

/** Removes the policy rule and route of an earlier run that this run does not need. */
function removeMarkRoute(old: MarkRoute, family: Family, wanted: MarkRoute | undefined, network: Network): void {
  const [rule, route] = markRouteCommands('del', family, old)
  if (old.table === wanted?.table && old.mark === wanted.mark) return
  network.changeIp(rule)
  if (old.table !== wanted?.table) network.changeIp(route)
}

function change(family: Family, options: RedirectOptions, listing: Listing | undefined, restoreFormat: boolean): RuleChange {
  const removal = listing ? removalOf(listing, family) : {}
  const rules = redirectRules(options, family)
  const commands = restoreFormat ? 'restore-format' : commandLines(family === 6 ? 'ip6tables' : 'iptables', rules, removal)
  return { family, text: restoreText(rules, removal), commands, undo: removal.nat ? '' : undoText(rules) }
}
