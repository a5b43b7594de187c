/** `mesh-clean-iptables`: removes everything that `mesh-iptables` creates (docs/agent.md, R8). */
import { ExitError } from '../../../src/cli/exit-status.ts'
import type { Listing } from '../../../src/iptables/listing.ts'
import type { Family } from '../../../src/iptables/ranges.ts'
import { type Removal, removalOf, usualRemoval } from '../../../src/iptables/removal.ts'
import { markRouteCommands, passthroughAddress } from '../../../src/iptables/routing.ts'
import { commandLines, restoreText } from '../../../src/iptables/text.ts'
import { failedRules } from './host.ts'
import { hasPassthroughAddress, ownMarkRoutes } from './leftovers.ts'
import { Network } from './network.ts'
import { type HostAccess, realHost } from './programs.ts'

/**
 * Removes the rules, routes and addresses of redirection. A removal that fails is reported and does not stop the others; the promise is
 * then rejected with an ExitError. A dry run prints the removal of a complete redirection, without reading the host.
 */
export async function cleanRedirection(isDryRun: boolean, host: HostAccess = realHost): Promise<void> {
  const network = new Network(host, isDryRun)
  const failures: string[] = []
  const attempt = (what: () => void) => {
    try {
      what()
    } catch (error) {
      failures.push((error as Error).message)
    }
  }
  // IPv4 first: it is captured last (redirect.ts).
  for (const family of [4, 6] as const) attempt(() => cleanFamily(family, network, host, attempt))
  if (isDryRun) host.say('# and, where they are there: rules of DNS, marks and interfaces, the route of the mark, the address ::6')
  network.show('iptables-save')
  network.show('ip6tables-save')
  if (failures.length > 0) throw new ExitError(failures.join('; '), failedRules)
}

/**
 * Removes the rules and routes of a family, and the address of IPv6. The address is removed only together with our rules, which show that
 * it is ours.
 */
function cleanFamily(family: Family, network: Network, host: HostAccess, attempt: (what: () => void) => void): void {
  const listing = family === 6 ? rulesOfIpv6(network, host) : network.rules(4)
  const removal = listing ? removalOf(listing, family) : network.isDryRun ? usualRemoval : {}
  const routes = listing ? ownMarkRoutes(listing, family, network) : []
  attempt(() => remove(family, removal, network))
  for (const [index, route] of routes.entries()) {
    const [rule, ofTable] = markRouteCommands('del', family, route)
    attempt(() => network.changeIp(rule))
    if (routes.findIndex(({ table }) => table === route.table) === index) attempt(() => network.changeIp(ofTable))
  }
  if (family === 6 && removal.nat && hasPassthroughAddress(network)) network.changeIp(passthroughAddress('del'))
}

/**
 * Returns the rules of IPv6. Undefined where there can be none: without `ip6tables`, and where the rules cannot be read and IPv6 is off.
 * Throws an ExitError where they cannot be read otherwise, since ours may be among them.
 */
function rulesOfIpv6(network: Network, host: HostAccess): Listing | undefined {
  try {
    return network.rulesIfAny(6)
  } catch (error) {
    if (host.kernelIpv6() === 'on') throw error
    return undefined
  }
}

function remove(family: Family, removal: Removal, network: Network): void {
  const text = restoreText([], removal)
  if (text !== '') network.apply([{ family, text, commands: commandLines(family === 6 ? 'ip6tables' : 'iptables', [], removal), undo: '' }])
}
