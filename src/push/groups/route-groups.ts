/** Groups of route configurations of sidecars and of their virtual hosts: shared ones, and those that differ for a namespace. */
import { publicView, publicViewLike, type ViewKey } from '../../snapshot/view.ts'
import { hostsForCaller } from '../../snapshot/visibility.ts'
import { filterId } from '../../xds/envoy-filter/selection.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import { routeType, virtualHostType } from '../../xds/type-urls.ts'
import { anonymousCaller, type Caller, HostMaker } from '../routes/host-pieces.ts'
import { OwnRoutes } from '../routes/own-routes.ts'
import { SharedRoutes } from '../routes/shared-routes.ts'
import { type Built, GroupMaker, type Making, problemOutcomes } from './making.ts'

/** Routes that are made together, with everything that they are made for. */
interface RouteSet {
  /** Identifies the set by all other fields. */
  readonly id: string
  readonly key: ViewKey
  readonly caller: Caller
  readonly traits: Traits
}

/** The routes of a view as a caller sees them. */
function routeSet(key: ViewKey, caller: Caller, traits: Traits): RouteSet {
  return { id: `${key.id}|${traits.routeKey}|${caller === anonymousCaller ? 'any caller' : JSON.stringify(caller)}`, key, caller, traits }
}

/** The routes in which a caller differs from the shared routes, with everything that they are made for. */
interface OwnSet extends RouteSet {
  readonly shared: RouteSet
}

function ownSet(shared: RouteSet, key: ViewKey, caller: Caller): OwnSet {
  const own = routeSet(key, caller, shared.traits)
  return { ...own, id: `of ${own.id}|beside ${shared.id}`, shared }
}

/** The name of derived values of a route set, which includes the present generations of its EnvoyFilters. */
const named = ({ id, traits }: RouteSet): string =>
  `${id} ${traits.filtersOf.routes.filters.map((filter) => `${filterId(filter)}@${filter.generation}`).join()}`

/** The ids of the groups of a route set. */
const routesGroup = ({ id }: RouteSet): string => `routes-out|${id}`
const hostsGroup = ({ id }: RouteSet): string => `vhosts|${id}`

/** A group of route configurations, or of virtual hosts as resources of their own, of a route set. */
abstract class OfRoutes<Routes extends RouteSet> extends GroupMaker {
  protected readonly groups: RouteGroups
  protected readonly routes: Routes

  constructor(groups: RouteGroups, routes: Routes, id: string, typeUrl: string, hiddenBy?: string) {
    super({ id, typeUrl, given: routes.traits.filtersOf.routes.filters, hiddenBy })
    this.groups = groups
    this.routes = routes
  }
}

class SharedRouteConfigurations extends OfRoutes<RouteSet> {
  constructor(groups: RouteGroups, routes: RouteSet, hiddenBy?: string) {
    super(groups, routes, routesGroup(routes), routeType, hiddenBy)
  }

  make(): Built {
    return this.groups.sharedConfigurations(this.routes)
  }
}

class OwnRouteConfigurations extends OfRoutes<OwnSet> {
  constructor(groups: RouteGroups, routes: OwnSet) {
    super(groups, routes, routesGroup(routes), routeType)
  }

  make(): Built {
    return this.groups.ownConfigurations(this.routes)
  }
}

class SharedVirtualHosts extends OfRoutes<RouteSet> {
  constructor(groups: RouteGroups, routes: RouteSet, hiddenBy?: string) {
    super(groups, routes, hostsGroup(routes), virtualHostType, hiddenBy)
  }

  make(): Built {
    return this.groups.sharedHosts(this.routes)
  }
}

class OwnVirtualHosts extends OfRoutes<OwnSet> {
  constructor(groups: RouteGroups, routes: OwnSet) {
    super(groups, routes, hostsGroup(routes), virtualHostType)
  }

  make(): Built {
    return this.groups.ownHosts(this.routes)
  }
}

/** Makes the groups of routes. */
export class RouteGroups {
  readonly #making: Making
  /** By the id of the group of route configurations, with which they go. */
  readonly #shared = new Map<string, SharedRoutes>()
  readonly #own = new Map<string, OwnRoutes>()

  constructor(making: Making) {
    this.#making = making
  }

  /** The makers for a class. */
  makersFor(proxy: ProxyClass): GroupMaker[] {
    const { traits, viewKey } = proxy
    const caller: Caller = { namespace: proxy.namespace, labels: proxy.sourceLabels }
    if (!this.#making.view(viewKey).difference) {
      const set = routeSet(viewKey, caller, traits)
      const routes = new SharedRouteConfigurations(this, set)
      return traits.takesVirtualHosts ? [routes, new SharedVirtualHosts(this, set)] : [routes]
    }
    const shared = routeSet(publicViewLike(viewKey), anonymousCaller, traits)
    const own = ownSet(shared, viewKey, caller)
    const routes = new OwnRouteConfigurations(this, own)
    const configurations = [routes, new SharedRouteConfigurations(this, shared, routes.id)]
    if (!traits.takesVirtualHosts) return configurations
    const hosts = new OwnVirtualHosts(this, own)
    return [...configurations, hosts, new SharedVirtualHosts(this, shared, hosts.id)]
  }

  /** The route configurations that are shared by all classes that see them alike. */
  sharedConfigurations(set: RouteSet): Built {
    const shared = this.#sharedRoutes(set)
    return { outcomes: [...shared.configurations(), ...problemOutcomes(shared.problems)] }
  }

  /** The route configurations that a namespace sees differently. */
  ownConfigurations(own: OwnSet): Built {
    const { shared, traits } = own
    const routes = this.#ownRoutes(own)
    // They refer to the shared tables, so this group depends on these tables.
    if (!traits.takesVirtualHosts)
      for (const name of routes.names) this.#part(`table ${name} of ${named(shared)}`, shared, (all) => all.routes.get(name)?.table)
    const { resources, hide } = routes.configurations(traits.takesVirtualHosts)
    return { outcomes: [...resources, ...problemOutcomes(routes.problems)], hide }
  }

  /** Virtual hosts as resources of their own: only those that changed since the group was built, or all of them. */
  sharedHosts(set: RouteSet): Built {
    const shared = this.#sharedRoutes(set)
    const changed = shared.changes.sinceStored()
    const stored = shared.changes.marker()
    return changed ? { outcomes: changed.resources, gone: changed.gone, stored, isPart: true } : { outcomes: shared.virtualHosts(), stored }
  }

  /** The same for those of a namespace. */
  ownHosts(own: OwnSet): Built {
    const routes = this.#ownRoutes(own)
    const { resources, hide, gone } = routes.virtualHosts()
    return { outcomes: resources, hide, stored: routes.changes.marker(), ...(gone ? { isPart: true, gone } : {}) }
  }

  /** The shared routes, updated to the present snapshot. Whoever calls this is made again when anything in them changes. */
  #sharedRoutes(set: RouteSet): SharedRoutes {
    const { snapshot, memo } = this.#making
    const shared = this.#keptRoutes(set)
    this.#making.derived(`routes ${named(set)}`, () => {
      const view = this.#making.view(set.key)
      // Classes of this view use the shared routes from now on; refreshing this set would make a copy of all of them for each namespace.
      if (set.key.sidecar && view.difference) throw new Error('its Sidecar is gone, or takes everything now')
      const { user } = memo
      memo.user = routesGroup(set)
      try {
        shared.refresh(new HostMaker(view, snapshot, set.traits, set.caller, memo))
      } finally {
        memo.user = user
      }
      return shared.revision
    })
    return shared
  }

  /** The shared routes as of their last update. */
  #keptRoutes(set: RouteSet): SharedRoutes {
    const group = routesGroup(set)
    let kept = this.#shared.get(group)
    if (!kept) this.#shared.set(group, (kept = new SharedRoutes(this.#making.record, this.#making.sums, !set.traits.takesVirtualHosts)))
    return kept
  }

  /** The routes in which a namespace differs, updated to the present snapshot. */
  #ownRoutes(own: OwnSet): OwnRoutes {
    const group = routesGroup(own)
    let kept = this.#own.get(group)
    if (!kept) this.#own.set(group, (kept = new OwnRoutes(this.#making.record, this.#keptRoutes(own.shared), this.#making.sums)))
    const routes = kept
    this.#making.derived(`own routes ${named(own)}`, () => {
      // A change of the claims in the shared routes matters to this namespace only where its hosts claim the same domains.
      this.#making.derived(`claims of ${named(own)}`, () => {
        this.#part(`claims in ${named(own.shared)}`, own.shared, ({ claimLog }) => claimLog.at)
        return routes.claimRevision()
      })
      this.#refreshOwn(routes, own)
      if (routes.hasRoutesAsShared) this.#sharedRoutes(own.shared)
      return {}
    })
    return routes
  }

  /** Makes the value being made depend on a part of the shared routes. */
  #part(name: string, set: RouteSet, part: (shared: SharedRoutes) => unknown): void {
    this.#making.derived(name, () => part(this.#sharedRoutes(set)))
  }

  #refreshOwn(routes: OwnRoutes, { key, caller, traits }: OwnSet): void {
    const { snapshot, memo } = this.#making
    const view = this.#making.view(key)
    const { hosts = [], routed = [] } = view.difference ?? {}
    const own = snapshot.visibility.hostsNaming.get(caller.namespace ?? '') ?? []
    const differing = [...new Set([...own, ...hosts, ...routed, ...hostsForCaller(snapshot, caller.labels)])]
    routes.refresh(new HostMaker(view, snapshot, traits, caller, memo), differing)
  }

  /** Makes virtual hosts in advance, for a caller without namespace and labels. Yields the number of bytes of each. */
  *prepare({ traits }: ProxyClass): Generator<number> {
    const { snapshot, memo } = this.#making
    const maker = new HostMaker(this.#making.view(publicView), snapshot, traits, anonymousCaller, memo)
    for (const egress of maker.view.egress)
      for (const state of egress.services) for (const candidate of maker.ofService(state, egress)) yield candidate.make().piece?.bytes.length ?? 0
  }

  /** The number of route sets in memory: shared ones, and those of namespaces. */
  get kept(): number {
    return this.#shared.size + this.#own.size
  }

  /** Removes a group. Its routes go with the group of route configurations. */
  forget(group: string): void {
    if (!this.#own.delete(group) && !this.#shared.delete(group) && group.startsWith('vhosts|')) {
      const routes = group.replace('vhosts|', 'routes-out|')
      const kept = this.#own.get(routes) ?? this.#shared.get(routes)
      kept?.changes.groupForgotten()
    }
  }
}
