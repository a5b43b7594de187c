/** What of an earlier run is there beside rules: routes by mark, and the address of IPv6 (docs/agent.md, R8). */
import type { Listing } from '../../../src/iptables/listing.ts'
import { ownMarks } from '../../../src/iptables/removal.ts'
import { isLocalOnly, type MarkRoute, readMarkRoutes } from '../../../src/iptables/routing.ts'
import type { Network } from './network.ts'

/** Mark and table that are used unless others are given. */
const usual = { mark: '1337', table: '133' }

/** The routes by mark that were made: of a mark that our chains set, or of the usual one, to a table with nothing but our route. */
export function ownMarkRoutes(listing: Listing, network: Network): MarkRoute[] {
  const marks = ownMarks(listing)
  return readMarkRoutes(network.ip('-f', 'inet', 'rule', 'show')).filter(
    ({ mark, table }) =>
      (marks.includes(mark) || (mark === usual.mark && table === usual.table)) &&
      isLocalOnly(network.ip('-f', 'inet', 'route', 'show', 'table', table)),
  )
}

/** Whether the loopback interface has the address from which the proxy connects to the application over IPv6. */
export function hasPassthroughAddress(network: Network): boolean {
  return / ::6\/128 /.test(network.ip('-6', 'addr', 'show', 'dev', 'lo'))
}
