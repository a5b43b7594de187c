/** `mesh-iptables`: applies the redirect rules and validates that they work (docs/agent.md, R1 to R9). */
import { ExitError } from '../../../src/cli/exit-status.ts'
import type { Listing } from '../../../src/iptables/listing.ts'
import { excludesAll, readRedirectOptions } from '../../../src/iptables/options.ts'
import type { RedirectOrder } from '../../../src/iptables/order.ts'
import type { Family, Ranges } from '../../../src/iptables/ranges.ts'
import { removalOf } from '../../../src/iptables/removal.ts'
import { type MarkRoute, markRouteCommands, markRouteOf, passthroughAddress } from '../../../src/iptables/routing.ts'
import { isTransparent, type RedirectOptions, redirectRules } from '../../../src/iptables/rules.ts'
import { commandLines, restoreText } from '../../../src/iptables/text.ts'
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
  const { options, warnings } = readRedirectOptions(order.settings, host)
  if (excludesAll(options)) throw new ExitError('--mesh-service-exclude-cidr: "*" excludes everything; list ranges such as 10.0.0.0/8', failedRules)
  for (const warning of [...order.warnings, ...warnings]) warn(`warning: ${warning}`)
  if (!order.skipRuleApply && isTransparent(options, 4) && !host.routesLoopback) warn(`warning: ${needsLoopbackRoutes}`)
  if (!order.skipRuleApply) {
    describe(order, options, say)
    applyRules(order, options, new Network(access, order.isDryRun), warn)
  }
  if (order.runValidation) {
    const ports = [...new Set([options.proxyPort, options.inboundPort])].map(Number)
    await validate({ address: host.address, isIpv6: host.isIpv6, ports, probePort: order.probePort, timeoutMs: order.probeTimeoutMs }, say)
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
    ['ENABLE_INBOUND_IPV6', String(options.isIpv6)],
    ['DNS_CAPTURE', String(options.redirectDns)],
    ['DNS_SERVERS', [...options.dnsServers[4], ...options.dnsServers[6]].join(',')],
  ])
}

const rangesText = (ranges: Ranges) => (ranges.all ? '*' : [...ranges[4], ...ranges[6]].join(','))

function applyRules({ restoreFormat }: RedirectOrder, options: RedirectOptions, network: Network, warn: HostAccess['warn']): void {
  const listings = { 4: network.rules(4), 6: options.isIpv6 ? network.rules(6) : optionalRules(network, warn) }
  const before = listings[4] ? ownMarkRoutes(listings[4], network) : []
  const wanted = isTransparent(options, 4) ? markRouteOf(options) : undefined
  const hasAddress = hasPassthroughAddress(network)
  if (options.isIpv6 && !hasAddress) network.changeIp(passthroughAddress('add'))
  if (wanted) addMarkRoute(wanted, before, network)
  const families: readonly Family[] = listings[6] !== 'not there' ? [4, 6] : [4]
  const changes = families.map((family) => change(family, options, listings[family] as Listing | undefined, restoreFormat))
  network.apply(changes)
  for (const old of before) removeMarkRoute(old, wanted, network)
  if (!options.isIpv6 && hasAddress && changes[1]?.text) network.changeIp(passthroughAddress('del'))
  network.show('iptables-save')
  if (options.isIpv6) network.show('ip6tables-save')
}

/** Adds the policy rule from the mark to the table, and the table's route to this host, unless an earlier run has added them. */
function addMarkRoute(wanted: MarkRoute, before: readonly MarkRoute[], network: Network): void {
  const [rule, route] = markRouteCommands('add', wanted)
  if (!before.some(({ mark, table }) => mark === wanted.mark && table === wanted.table)) network.changeIp(rule)
  if (!before.some(({ table }) => table === wanted.table)) network.changeIp(route)
}

/** Removes the policy rule and route of an earlier run that this run does not need. */
function removeMarkRoute(old: MarkRoute, wanted: MarkRoute | undefined, network: Network): void {
  const [rule, route] = markRouteCommands('del', old)
  if (old.table === wanted?.table && old.mark === wanted.mark) return
  network.changeIp(rule)
  if (old.table !== wanted?.table) network.changeIp(route)
}

/**
 * Reads the IPv6 rules of a host on which IPv6 is not redirected. Logs a warning when they cannot be read, for example because the host has
 * no ip6tables.
 */
function optionalRules(network: Network, warn: HostAccess['warn']): Listing | undefined | 'not there' {
  try {
    return network.rules(6)
  } catch (error) {
    warn(`warning: IPv6 rules are not changed: ${(error as Error).message}`)
    return 'not there'
  }
}

function change(family: Family, options: RedirectOptions, listing: Listing | undefined, restoreFormat: boolean): RuleChange {
  const removal = listing ? removalOf(listing, family) : {}
  const rules = redirectRules(options, family)
  const commands = restoreFormat ? 'restore-format' : commandLines(family === 6 ? 'ip6tables' : 'iptables', rules, removal)
  return { family, text: restoreText(rules, removal), commands }
}
