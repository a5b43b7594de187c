/**
 * A route configuration in one scope: its virtual hosts in the order of their claims, and which host claims and owns which domain. A domain
 * belongs to the first host that claims it.
 */

import { sameItems } from '../../model/lists.ts'
import type { Problem } from '../../xds/draft.ts'
import type { RouteName } from '../../xds/routes/port-uses.ts'
import {
  buildTable,
  type CutTable,
  cutTable,
  type HostPiece,
  hostlessRoute,
  hostResource,
  isUsableTable,
  ownTable,
  type RouteTable,
  routeResource,
} from '../../xds/routes/route-table.ts'
import { isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { KeyedSums } from '../../xds/slab/sums.ts'
import type { Candidate } from './host-pieces.ts'
import { changeHosts, type HostsChange, placeOf, problemsOf, type RouteHost, servicesIn } from './route-hosts.ts'

const none: readonly RouteHost[] = []
/** The maximum number of hosts that are searched without an index. */
const fewHosts = 4

/** A route with its hosts and their claims. The object stays while the same hosts claim the same domains, or hosts are changed one by one. */
export class Route {
  readonly id: RouteName
  #hosts: readonly RouteHost[]
  // Computed on first use, because most routes of namespaces never need them, and kept up from then on.
  #byHost: Map<string, readonly RouteHost[]> | undefined
  #domains: { readonly owners: Map<string, string>; readonly contested: Map<string, ReadonlySet<string>> } | undefined
  /** Problems of the virtual hosts, and of the patches of the message. */
  problems: readonly Problem[]
  /** Fields that EnvoyFilters add to the message. */
  extra: Uint8Array

  /** `hosts`: in the order of their claims. */
  constructor(id: RouteName, hosts: readonly RouteHost[], problems: readonly Problem[], extra: Uint8Array) {
    this.id = id
    this.#hosts = hosts
    this.problems = problems
    this.extra = extra
  }

  get name(): string {
    return this.id.name
  }

  /** The virtual hosts, in the order of their claims. */
  get hosts(): readonly RouteHost[] {
    return this.#hosts
  }

  /** The entries of a {@link Candidate.host}: one for each of its ports. */
  of(host: string): readonly RouteHost[] {
    // Most routes have one host, and a map for each would take the most memory.
    if (this.#hosts.length <= fewHosts) return this.#hosts.filter(({ candidate }) => candidate.host === host)
    return this.#entries.get(host) ?? none
  }

  has(host: string): boolean {
    return this.of(host).length > 0
  }

  /** All hosts by {@link Candidate.host}. */
  names(): Iterable<string> {
    return this.#entries.keys()
  }

  /** Indices of a host in the route. */
  placesOf(host: string): number[] {
    return this.of(host).map((entry) => placeOf(this.#hosts, entry))
  }

  /** The host that owns each domain. */
  get owners(): ReadonlyMap<string, string> {
    return (this.#domains ??= domainsIn(this.#hosts)).owners
  }

  /** The hosts that claim a domain, for domains that several hosts claim. */
  get contested(): ReadonlyMap<string, ReadonlySet<string>> {
    return (this.#domains ??= domainsIn(this.#hosts)).contested
  }

  /** The other hosts that claim one of these domains. */
  otherClaimants(domains: readonly string[], host: string): string[] {
    return domains.flatMap((domain) => {
      const contested = this.contested.get(domain)
      if (contested) return [...contested].filter((claimant) => claimant !== host)
      const owner = this.owners.get(domain)
      return owner === undefined || owner === host ? [] : owner
    })
  }

  /** Whether hosts that were settled anew claim and own the same domains. */
  hasSameClaims(hosts: readonly RouteHost[]): boolean {
    return (
      this.#hosts.length === hosts.length &&
      this.#hosts.every(({ piece, candidate, claims }, index) => {
        const peer = hosts[index] as RouteHost
        if (candidate.host !== peer.candidate.host || candidate.namespace !== peer.candidate.namespace) return false
        return piece && piece === peer.piece ? true : sameItems(claims, peer.claims) && sameItems(piece?.domains ?? [], peer.piece?.domains ?? [])
      })
    )
  }

  /** What some hosts make of the route; undefined when all of its hosts have to be settled. */
  settle(candidates: ReadonlyMap<string, readonly Candidate[]>): HostsChange | undefined {
    return changeHosts(this, candidates)
  }

  /** Replaces the hosts, which claim the same domains. */
  protected replaceHosts(hosts: readonly RouteHost[]): void {
    this.#hosts = hosts
    this.#byHost = undefined
  }

  /** Takes a change of some hosts. Returns whether one of them has problems now, or had some. */
  protected takeHosts({ hosts, changed, gained, lost: left }: HostsChange): boolean {
    const hasProblems = [...changed].some(([host, now]) => [...now, ...this.of(host)].some(({ problems }) => problems.length > 0))
    this.#hosts = hosts
    for (const [host, now] of this.#byHost ? changed : []) {
      if (now.length > 0) this.#byHost?.set(host, now)
      else this.#byHost?.delete(host)
    }
    for (const domain of left.keys()) this.#domains?.owners.delete(domain)
    for (const [domain, host] of gained) this.#domains?.owners.set(domain, host)
    return hasProblems
  }

  get #entries(): Map<string, readonly RouteHost[]> {
    return (this.#byHost ??= Map.groupBy(this.#hosts, ({ candidate }) => candidate.host))
  }
}

function domainsIn(hosts: readonly RouteHost[]) {
  const owners = new Map<string, string>()
  const contested = new Map<string, Set<string>>()
  for (const { candidate, claims, piece } of hosts) {
    const { host } = candidate
    for (const domain of piece?.domains ?? []) owners.set(domain, host)
    for (const domain of claims) {
      const owner = owners.get(domain)
      if (owner === undefined || owner === host) continue
      const all = contested.get(domain)
      if (all) all.add(host)
      else contested.set(domain, new Set([owner, host]))
    }
  }
  return { owners, contested }
}

/** What a shared route is made of, beside its id. */
export interface MadeRoute {
  readonly hosts: readonly RouteHost[]
  readonly problems: readonly Problem[]
  /** Patches of the message that could not be applied. They are among the problems. */
  readonly patches: readonly Problem[]
  readonly extra: Uint8Array
}

/** A route as all callers see it whose namespace is no other. */
export class SharedRoute extends Route {
  readonly #sums: KeyedSums
  /** Whether the message contains the virtual hosts. Otherwise they are resources of their own. */
  readonly #hasTable: boolean
  #table: RouteTable
  #patches: readonly Problem[]
  /** The last message, reused while its table and extra fields are the same. */
  #message: { readonly table: RouteTable; readonly extra: Uint8Array; readonly resource: Resource } | undefined
  /** The number of virtual hosts that belong to services. A route without any does not exist. */
  serviceCount: number

  constructor(id: RouteName, { hosts, problems, patches, extra }: MadeRoute, hasTables: boolean, sums: KeyedSums) {
    super(id, hosts, problems, extra)
    this.#sums = sums
    this.#hasTable = hasTables || !id.catchAll
    this.#patches = patches
    this.#table = this.#tableOf(hosts)
    this.serviceCount = servicesIn(hosts)
  }

  /** All virtual hosts. What was dropped of their bytes because it had not been used for a while is built again. */
  get table(): RouteTable {
    if (!isUsableTable(this.#table)) this.#table = buildTable(this.name, this.#table.pieces, this.#sums, this.#table)
    return this.#table
  }

  /** The route configuration, for callers that see nothing otherwise. */
  configuration(): Resource {
    if (!this.#hasTable) return hostlessRoute(this.name, this.extra)
    const { table, extra } = this
    const known = this.#message
    if (known && known.table === table && isUsable(known.resource) && Buffer.compare(known.extra, extra) === 0) return known.resource
    const resource = routeResource({ table, cuts: new Map() }, ownTable(this.name, [], this.#sums), extra, this.#sums)
    this.#message = { table, extra, resource }
    return resource
  }

  /** The virtual hosts as resources of their own. */
  virtualHosts(): Resource[] {
    return resourcesOf(this)
  }

  /** Takes what the route was made of anew, which has the same claims. Returns whether anything differs. */
  remake({ hosts, problems, patches, extra }: MadeRoute): boolean {
    const isSame = this.hosts.every(({ piece }, index) => piece === hosts[index]?.piece)
    if (isSame && sameItems(problems, this.problems) && Buffer.compare(this.extra, extra) === 0) return false
    if (!isSame) {
      this.#table = this.#tableOf(hosts, this.#table)
      this.serviceCount = servicesIn(hosts)
    }
    this.replaceHosts(hosts)
    this.problems = problems
    this.#patches = patches
    this.extra = extra
    return true
  }

  /** Takes a change of some hosts. Returns whether the virtual hosts or the problems of the route are others now. */
  change(change: HostsChange): { readonly hosts: boolean; readonly problems: boolean } {
    const { hosts, made, gone, moved, services } = change
    const hasProblems = this.takeHosts(change)
    const hasMoved = made.length + gone.length + moved.size > 0
    this.serviceCount += services
    if (hasProblems) this.problems = [...problemsOf(hosts), ...this.#patches]
    if (hasMoved) this.#table = this.#tableOf(hosts, this.#table)
    return { hosts: hasMoved, problems: hasProblems }
  }

  /**
   * Replaces some virtual hosts in place, if they claim the same domains as before and neither had nor have problems; those of other hosts
   * stay. Returns undefined when the route has to be settled as a whole.
   */
  replaced(candidates: readonly Candidate[]): readonly RouteHost[] | undefined {
    const hosts = [...this.hosts]
    for (const candidate of candidates) {
      const places = this.placesOf(candidate.host).filter((place) => this.hosts[place]?.candidate.port === candidate.port)
      const [place] = places
      const old = place === undefined ? undefined : hosts[place]
      if (!old || place === undefined || old.problems.length > 0 || places.length !== 1 || old.candidate.namespace !== candidate.namespace)
        return undefined
      const made = candidate.make()
      if (made.failed || made.problems.length > 0 || !made.piece || !old.piece) return undefined
      if (!sameItems(made.piece.domains, old.claims) || !sameItems(old.piece.domains, old.claims)) return undefined
      hosts[place] = { ...old, candidate, piece: made.piece }
    }
    return hosts
  }

  #tableOf(hosts: readonly RouteHost[], before?: RouteTable): RouteTable {
    return buildTable(this.name, this.#hasTable ? hosts.map(({ piece }) => piece) : [], this.#sums, before)
  }
}

/** The last message of a route of a namespace, with the parts that it was made of. */
interface Message {
  readonly hiddenHosts: readonly string[]
  /** The namespace's own virtual hosts. */
  readonly own: RouteTable
  /** The shared virtual hosts that are not hidden. */
  readonly shared: CutTable
  readonly extra: Uint8Array
  readonly resource: Resource
}

/** A route as one namespace sees it: its own virtual hosts, beside those of the shared route that are not hidden. */
export class OwnRoute extends Route {
  /** Whether the shared routes contain the route. */
  readonly isShared: boolean
  /** Whether the route exists: it has a virtual host of a service left, or needs none. */
  readonly exists: boolean
  /** Hosts of the shared route that are hidden; sorted. */
  hiddenHosts: readonly string[]
  /** Whether the virtual hosts are those that are hidden, so that the route is equal to the shared one. */
  isAsShared = false
  #message: Message | undefined

  /** `before`: the same route as of its last making. */
  constructor(
    id: RouteName,
    hosts: readonly RouteHost[],
    problems: readonly Problem[],
    extra: Uint8Array,
    place: { readonly isShared: boolean; readonly exists: boolean; readonly hiddenHosts: readonly string[] },
    before: OwnRoute | undefined,
  ) {
    super(id, hosts, problems, extra)
    this.isShared = place.isShared
    this.exists = place.exists
    this.hiddenHosts = place.hiddenHosts
    if (before) this.#message = before.#message
  }

  /** The virtual hosts as resources of their own. */
  virtualHosts(): Resource[] {
    return resourcesOf(this)
  }

  /** Takes a change of some hosts. Returns whether virtual hosts differ. */
  change(change: HostsChange, hiddenHosts: readonly string[]): boolean {
    const { changed, made, gone, moved } = change
    const hasProblems = this.problems.length > 0 || [...changed.values()].flat().some(({ problems }) => problems.length > 0)
    this.takeHosts(change)
    if (hasProblems) this.problems = problemsOf(change.hosts)
    const differs = made.length + gone.length + moved.size > 0 || hiddenHosts !== this.hiddenHosts
    this.hiddenHosts = hiddenHosts
    return differs
  }

  /** Compares the route with the shared one. */
  compare(shared: Route | undefined): void {
    this.isAsShared = this.exists && shared !== undefined && samePieces(piecesOf(shared, this.hiddenHosts), this.hosts)
  }

  /** The route configuration: the table of the shared route without what is hidden, and the namespace's own virtual hosts. */
  configuration(shared: SharedRoute | undefined, isHostless: boolean, sums: KeyedSums): Resource {
    const extra = shared?.extra ?? this.extra
    if (isHostless) return hostlessRoute(this.name, extra)
    const { hiddenHosts } = this
    const pieces: HostPiece[] = []
    for (const { piece } of this.hosts) if (piece) pieces.push(piece)
    const known = this.#message
    const table = shared?.table ?? (known && known.shared.table.pieces.length === 0 ? known.shared.table : buildTable(this.name, [], sums))
    const hidesSame = known !== undefined && sameItems(known.hiddenHosts, hiddenHosts)
    if (
      hidesSame &&
      known.shared.table === table &&
      sameItems(known.own.pieces, pieces) &&
      Buffer.compare(known.extra, extra) === 0 &&
      isUsable(known.resource)
    )
      return known.resource
    let hidden: ReadonlySet<string> | undefined
    const isHidden = (index: number) => (hidden ??= new Set(hiddenHosts)).has(shared?.hosts[index]?.candidate.host ?? '')
    const left = cutTable(table, isHidden, sums, hidesSame ? known.shared : undefined)
    const own = ownTable(this.name, pieces, sums, known?.own)
    const resource = routeResource(left, own, extra, sums)
    this.#message = { hiddenHosts, own, shared: left, extra, resource }
    return resource
  }
}

/** The virtual hosts of some hosts in a shared route. */
export const piecesOf = (shared: Route | undefined, hosts: readonly string[]): HostPiece[] =>
  hosts.flatMap((host) => (shared?.of(host) ?? []).flatMap(({ piece }) => piece ?? []))

/** Whether the virtual hosts of a route are these, in any order. */
function samePieces(pieces: readonly HostPiece[], hosts: readonly RouteHost[]): boolean {
  const own = hosts.flatMap(({ piece }) => piece ?? [])
  if (pieces.length !== own.length) return false
  const versions = new Set(own.map(({ version }) => version))
  return pieces.every(({ version }) => versions.has(version))
}

const resourcesOf = ({ name, hosts }: Route): Resource[] => hosts.flatMap(({ piece }) => (piece ? [hostResource(name, piece)] : []))
