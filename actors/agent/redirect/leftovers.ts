/** Finds what an earlier run left besides rules: policy routes by mark, and the IPv6 address (docs/agent.md, R8). */
import type { Listing } from '../../../src/iptables/listing.ts'
import type { Family } from '../../../src/iptables/ranges.ts'
import { ownMarks } from '../../../src/iptables/removal.ts'
import { familyName, isLocalOnly, type MarkRoute, readMarkRoutes } from '../../../src/iptables/routing.ts'
import type { Network } from './network.ts'

/** The default mark and routing table. */
const usual = { mark: '1337', table: '133' }

/**
 * Returns the policy routes that an earlier run created: those of a mark that our chains set, or of the default mark and table, whose table
 * contains nothing but our route.
 */
export function ownMarkRoutes(listing: Listing, family: Family, network: Network): MarkRoute[] {
  const marks = ownMarks(listing)
  return readMarkRoutes(network.ip('-f', familyName(family), 'rule', 'show')).filter(
    ({ mark, table }) =>
      (marks.includes(mark) || (mark === usual.mark && table === usual.table)) &&
      isLocalOnly(network.ip('-f', familyName(family), 'route', 'show', 'table', table)),
  )
}

/** Whether the loopback interface has the address from which the proxy connects to the application over IPv6 (`::6`). */
export function hasPassthroughAddress(network: Network): boolean {
  return / ::6\/128 /.test(network.ip('-6', 'addr', 'show', 'dev', 'lo'))
}
