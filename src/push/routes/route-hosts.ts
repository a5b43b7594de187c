/** The virtual hosts of a route in the order of their claims. A domain belongs to the first host that claims it. */

import { consequences } from '../../model/faults.ts'
import { sameItems } from '../../model/lists.ts'
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
export function claimDomains(route: RouteName, candidates: readonly Candidate[], before: (name: string) => HostPiece | undefined): RouteHost[] {
  const taken = new Set<string>()
  return candidates.map((candidate): RouteHost => {
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

/** What a change of some hosts makes of a route. */
export interface HostsChange {
  /** The hosts of the route, in the order of their claims. */
  readonly hosts: readonly RouteHost[]
  /** The entries of the changed hosts. */
  readonly changed: ReadonlyMap<string, readonly RouteHost[]>
  /** Entries that came or whose virtual host is another one. */
  readonly made: readonly RouteHost[]
  /** Names of virtual hosts that are gone. */
  readonly gone: readonly string[]
  /** Hosts that came, went or claim other domains. */
  readonly moved: ReadonlySet<string>
  /** Domains of the moved hosts by what they claim now, and by what they claimed before. */
  readonly gained: ReadonlyMap<string, string>
  readonly lost: ReadonlyMap<string, string>
  /** How many more virtual hosts of services there are. */
  readonly services: number
}

/** The claims of a route, as far as a change of some hosts depends on them. */
interface Claims {
  readonly id: RouteName
  readonly hosts: readonly RouteHost[]
  readonly owners: ReadonlyMap<string, string>
  readonly contested: ReadonlyMap<string, ReadonlySet<string>>
  of(host: string): readonly RouteHost[]
}

/** The maximum number of hosts that come or go one by one. Above it, settling the whole route costs less. */
const maxMoved = 100

/**
 * Changes some hosts of a route, given the candidates that each has now, at a cost proportional to their number. Undefined when a domain
 * that one of them claims or claimed is claimed by another host: then the route has to be settled as a whole.
 */
export function changeHosts(before: Claims, changes: ReadonlyMap<string, readonly Candidate[]>): HostsChange | undefined {
  const changed = new Map<string, readonly RouteHost[]>()
  const moved = new Set<string>()
  const [gained, lost] = [new Map<string, string>(), new Map<string, string>()]
  let services = 0
  for (const [host, candidates] of changes) {
    const olds = before.of(host)
    if (olds.some(({ piece, claims }) => !sameItems(piece?.domains ?? noDomains, claims))) return undefined
    const news = candidates.map((candidate) => entryOf(before.id, candidate, olds))
    changed.set(host, news)
    const isAlike = news.length === olds.length && news.every((one, index) => isAtSamePlace(one, olds[index] as RouteHost))
    if (isAlike && news.every(({ claims }, index) => sameItems(claims, olds[index]?.claims ?? noDomains))) continue
    moved.add(host)
    services += servicesIn(news) - servicesIn(olds)
    for (const domain of olds.flatMap(({ claims }) => claims)) {
      if (before.contested.has(domain)) return undefined
      lost.set(domain, host)
    }
    for (const domain of news.flatMap(({ claims }) => claims)) {
      if (gained.has(domain) || (before.owners.get(domain) ?? host) !== host) return undefined
      gained.set(domain, host)
    }
  }
  if (moved.size > maxMoved) return undefined
  const hosts = [...before.hosts]
  const [made, gone] = [[] as RouteHost[], [] as string[]]
  for (const [host, news] of changed) {
    const olds = before.of(host)
    const pieces = new Map(olds.map(({ piece }) => [piece?.name, piece]))
    for (const one of news) if (one.piece !== pieces.get(one.piece?.name)) made.push(one)
    const names = new Set(news.map(({ piece }) => piece?.name))
    for (const { piece } of olds) if (piece && !names.has(piece.name)) gone.push(piece.name)
    if (!moved.has(host)) for (const [index, old] of olds.entries()) hosts[placeOf(hosts, old)] = news[index] as RouteHost
    else {
      for (const old of olds) hosts.splice(placeOf(hosts, old), 1)
      // Entries of one host have different ranks if only some of them belong to a service.
      for (const one of news) hosts.splice(placeAfter(hosts, one), 0, one)
    }
  }
  return { hosts, changed, made, gone, moved, gained, lost, services }
}

const noDomains: readonly string[] = []

/** The entry of a candidate none of whose domains another host claims. If making its virtual host failed, the last one stays. */
function entryOf(route: RouteName, candidate: Candidate, olds: readonly RouteHost[]): RouteHost {
  const problems: Problem[] = []
  const lastGood = (name: string) => olds.find(({ piece }) => piece?.name === name)?.piece
  const piece = pieceOrLastGood(route, candidate.make(), lastGood, problems)
  return { candidate, claims: piece?.domains ?? noDomains, piece, problems: problems.length > 0 ? problems : noProblems }
}

const isAtSamePlace = ({ candidate: one }: RouteHost, { candidate: other }: RouteHost): boolean =>
  one.port === other.port && one.namespace === other.namespace

/** The number of entries that belong to services. */
export const servicesIn = (hosts: readonly RouteHost[]): number => hosts.reduce((sum, { candidate }) => sum + Number(candidate.namespace !== ''), 0)

/** The index of an entry in hosts that are in the order of claims. */
export function placeOf(hosts: readonly RouteHost[], entry: RouteHost): number {
  let place = placeWhere(hosts, (there) => inOrder(there, entry.candidate) < 0)
  while (place < hosts.length && hosts[place] !== entry) place++
  return place
}

/** The index behind all hosts that come before an entry or are at the same place. */
const placeAfter = (hosts: readonly RouteHost[], entry: RouteHost): number => placeWhere(hosts, (there) => inOrder(there, entry.candidate) <= 0)

/** The index of the first host that is not `before`; all hosts in front of it are. */
function placeWhere(hosts: readonly RouteHost[], before: (candidate: Candidate) => boolean): number {
  let [from, to] = [0, hosts.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (before((hosts[middle] as RouteHost).candidate)) from = middle + 1
    else to = middle
  }
  return from
}
