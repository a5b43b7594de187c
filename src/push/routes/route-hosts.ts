/** The virtual hosts of a route in the order of their claims: no domain twice, the first that claims it has it. */

import { consequences } from '../../model/faults.ts'
import { compare } from '../../model/order.ts'
import type { Problem } from '../../xds/draft.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import type { HostPiece } from '../../xds/routes/route-table.ts'
import type { Candidate, MadeHost } from './host-pieces.ts'

/** A virtual host of a route, or one that has none of its domains left. */
export interface RouteHost {
  readonly candidate: Candidate
  /** Every domain that it claims, had by it or not. */
  readonly claims: readonly string[]
  readonly piece: HostPiece | undefined
}

/** A route with what claims its domains. */
export interface RouteHosts {
  readonly route: RouteName
  /** In the order of their claims. */
  readonly hosts: readonly RouteHost[]
  readonly problems: readonly Problem[]
}

/** The order of claims: services by namespace and host, then hosts without a service, then what is added, and the catch-all last. */
export function inOrder(one: Candidate, other: Candidate): number {
  const rank = ({ namespace, host }: Candidate) => (namespace !== '' ? 0 : host === '*' ? 3 : host.startsWith('+') ? 2 : 1)
  return rank(one) - rank(other) || compare(one.namespace, other.namespace) || compare(one.host, other.host)
}

/** Settles who has which domain among candidates in their order. `before` finds the last good form of a virtual host by its name. */
export function claimDomains(route: RouteName, candidates: readonly Candidate[], before: (name: string) => HostPiece | undefined): RouteHosts {
  const problems: Problem[] = []
  const taken = new Set<string>()
  const hosts = candidates.map((candidate): RouteHost => {
    const whole = settlePiece(route, candidate.make(), before, problems)
    const claims = whole?.domains ?? []
    const lost = claims.filter((domain) => taken.has(domain))
    let piece = whole
    if (lost.length === claims.length) piece = undefined
    else if (lost.length > 0) piece = settlePiece(route, candidate.make(new Set(lost)), before, problems)
    // A last good form that overlaps with what others have by now cannot stay.
    if (piece?.domains.some((domain) => taken.has(domain))) piece = undefined
    for (const domain of piece?.domains ?? []) taken.add(domain)
    return { candidate, claims, piece }
  })
  return { route, hosts, problems }
}

/** The host that was made, or where that failed its last good form. */
function settlePiece(route: RouteName, made: MadeHost, before: (name: string) => HostPiece | undefined, problems: Problem[]): HostPiece | undefined {
  problems.push(...made.problems)
  if (!made.failed) return made.piece
  const kept = before(made.name)
  problems.push({ type: 'rds', resource: `${route.name}/${made.name}`, ...made.failed, consequence: kept ? consequences.kept : consequences.leftOut })
  return kept
}
