/** Policy routing of TPROXY mode: marked packets are delivered locally, whatever their destination address (docs/agent.md, R3). */
import type { Family } from './ranges.ts'
import type { RedirectOptions } from './rules.ts'

/** A policy rule that sends packets with a mark (decimal) to a routing table. */
export interface MarkRoute {
  readonly mark: string
  readonly table: string
}

/** Returns the policy rule for these options. */
export function markRouteOf({ mark, routeTable }: RedirectOptions): MarkRoute {
  return { mark: String(Number(mark)), table: routeTable }
}

/** Parses the policy rules by mark in the output of `ip rule show`. */
export function readMarkRoutes(text: string): MarkRoute[] {
  return [...text.matchAll(/from all fwmark (0x[0-9a-f]+)(?:\/0xffffffff)? lookup (\S+)/g)].map(([, mark, table]) => ({
    mark: String(Number(mark)),
    table: table as string,
  }))
}

/** Whether a table in the output of `ip route show table` contains only the route that redirection adds. */
export function isLocalOnly(text: string): boolean {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 1 && (lines[0] as string).startsWith('local default dev lo')
}

/** The name of a family in the arguments of `ip`. */
export const familyName = (family: Family): string => (family === 6 ? 'inet6' : 'inet')

/** Returns the arguments of `ip` for the policy rule and for the route. */
export const markRouteCommands = (change: 'add' | 'del', family: Family, { mark, table }: MarkRoute): [rule: string[], route: string[]] => [
  ['-f', familyName(family), 'rule', change, 'fwmark', mark, 'lookup', table],
  ['-f', familyName(family), 'route', change, 'local', 'default', 'dev', 'lo', 'table', table],
]

/** Returns the arguments of `ip` for the address from which the proxy connects to the application over IPv6. */
export const passthroughAddress = (change: 'add' | 'del'): string[] => ['-6', 'addr', change, '::6/128', 'dev', 'lo']
