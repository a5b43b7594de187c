/** The virtual hosts of a route in the order of their claims. A domain belongs to the first host that claims it. */

import { consequences } from '../../model/faults.ts'
import { compare } from '../../model/order.ts'
import type { Problem } from '../../xds/draft.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import type { HostPiece } from '../../xds/routes/route-table.ts'
import type { Candidate, MadeHost } from './host-pieces.ts'

/** A virtual host of a route. `piece` is undefined if it has lost all of its domains. */
export interface RouteHost {
  readonly candidate: Candidate
  /** Every domain that the host claims, including those that belong to another. */
  readonly claims: readonly string[]
  readonly piece: HostPiece | undefined
  /** What is wrong with the host; the same array for all without problems. */
  readonly problems: readonly Problem[]
}

const noProblems: readonly Problem[] = []

/** A route with the hosts that claim its domains. */
export interface RouteHosts {
  readonly route: RouteName
  /** In the order of their claims. */
  readonly hosts: readonly RouteHost[]
  readonly problems: readonly Problem[]
}

/**
 * The order of claims: services by namespace and host, then hosts without a service, then virtual hosts that patches add, then the
 * catch-all.
 */
export function inOrder(one: Candidate, other: Candidate): number {
  const rank = ({ namespace, host }: Candidate) => (namespace !== '' ? 0 : host === '*' ? 3 : host.startsWith('+') ? 2 : 1)
  return rank(one) - rank(other) || compare(one.namespace, other.namespace) || compare(one.host, other.host)
}

/**
 * Decides which candidate owns which domain, in the order of the candidates. `before` finds the last good form of a virtual host by its
 * name.
 */
export function claimDomains(route: RouteName, candidates: readonly Candidate[], before: (name: string) => HostPiece | undefined): RouteHosts {
  const taken = new Set<string>()
  const hosts = candidates.map((candidate): RouteHost => {
    const problems: Problem[] = []
    const whole = pieceOrLastGood(route, candidate.make(), before, problems)
    const claims = whole?.domains ?? []
    const lost = claims.filter((domain) => taken.has(domain))
    let piece = whole
    if (lost.length === claims.length) piece = undefined
    else if (lost.length > 0) piece = pieceOrLastGood(route, candidate.make(new Set(lost)), before, problems)
    // A last good form is dropped when its domains overlap with those that other hosts have now.
    if (piece?.domains.some((domain) => taken.has(domain))) piece = undefined
    for (const domain of piece?.domains ?? []) taken.add(domain)
    return { candidate, claims, piece, problems: problems.length > 0 ? problems : noProblems }
  })
  return { route, hosts, problems: problemsOf(hosts) }
}

/** All problems of hosts. */
export const problemsOf = (hosts: readonly RouteHost[]): Problem[] => hosts.flatMap(({ problems }) => problems)

/** Returns the virtual host that was made, or its last good form if that failed. */
function pieceOrLastGood(
  route: RouteName,
  made: MadeHost,
  before: (name: string) => HostPiece | undefined,
  problems: Problem[],
): HostPiece | undefined {
  problems.push(...made.problems)
  if (!made.failed) return made.piece
  const kept = before(made.name)
  problems.push({ type: 'rds', resource: `${route.name}/${made.name}`, ...made.failed, consequence: kept ? consequences.kept : consequences.leftOut })
  return kept
}
