/** Groups of route configurations of sidecars and of their virtual hosts: those that all share, and what a namespace sees otherwise. */
import { publicView, publicViewLike, type ViewKey } from '../../snapshot/view.ts'
import { hostsForCaller } from '../../snapshot/visibility.ts'
import type { Outcome } from '../../xds/draft.ts'
import { hostlessRoute, hostResource, routeResource } from '../../xds/routes/route-table.ts'
import { isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import { routeType, virtualHostType } from '../../xds/type-urls.ts'
import { type Caller, HostMaker, stranger } from '../routes/host-pieces.ts'
import { OwnRoutes } from '../routes/own-routes.ts'
import { type SharedRoute, SharedRoutes } from '../routes/shared-routes.ts'
import { type Built, type GroupSpec, type Making, told } from './making.ts'

/** A set of routes, for EnvoyFilters as they are now. */
const named = (id: string, { filtersOf }: Traits): string =>
  `${id} ${filtersOf.routes.filters.map(({ namespace, name, generation }) => `${namespace}/${name}@${generation}`).join()}`

/** The group of the route configurations of a set of routes, for which the set is kept. */
const routesGroup = (of: string): string => `routes-out|${of}`

/** Maker of the groups of routes. */
export class RouteGroups {
  readonly #making: Making
  readonly #shared = new Map<string, SharedRoutes>()
  readonly #own = new Map<string, OwnRoutes>()
  /** Which virtual hosts of shared routes a group of them has. */
  readonly #hostsOf = new Map<string, { readonly shared: SharedRoutes; readonly at: number }>()
  /** The last route configurations that all share, by their table. */
  readonly #whole = new WeakMap<SharedRoute['table'], { readonly extra: Uint8Array; readonly resource: Resource }>()

  constructor(making: Making) {
    this.#making = making
  }

  /** The groups of a class. */
  specs(proxy: ProxyClass): GroupSpec[] {
    const { traits, viewKey } = proxy
    const spec = { given: traits.filtersOf.routes.filters, typeUrl: routeType }
    const hostSpec = { given: traits.filtersOf.routes.filters, typeUrl: virtualHostType }
    const caller = JSON.stringify(proxy.sourceLabels)
    if (!this.#making.view(viewKey).difference) {
      const tables = `${viewKey.id}|${traits.routeKey}|${caller}`
      const self: Caller = { namespace: proxy.namespace, labels: proxy.sourceLabels }
      return this.#sharedSpecs(tables, viewKey, self, proxy)
    }
    const shared = publicViewLike(viewKey)
    const tables = `${shared.id}|${traits.routeKey}`
    const own = `${proxy.namespace}|${viewKey.id}|${traits.routeKey}|${caller}`
    const [routes, hosts] = this.#sharedSpecs(tables, shared, stranger, proxy) as [GroupSpec, GroupSpec?]
    const build = (make: (overlay: OwnRoutes) => Built) => () => make(this.#ownRoutes(own, tables, shared, proxy))
    const ownRoutes: GroupSpec = {
      ...spec,
      id: routesGroup(`of ${own}`),
      build: build((overlay) => {
        // Its routes are made of the shared tables.
        if (!traits.takesVirtualHosts)
          for (const name of overlay.names)
            this.#part(`table ${name} of ${named(tables, traits)}`, tables, shared, proxy, (routes) => routes.tableOf(name))
        const { resources, hide } = overlay.configurations(traits.takesVirtualHosts)
        return { outcomes: [...resources, ...told(overlay.problems)], hide }
      }),
    }
    const ownHosts: GroupSpec = {
      ...hostSpec,
      id: `vhosts|of ${own}`,
      build: build((overlay) => {
        const { resources, hide } = overlay.hosts()
        return { outcomes: resources, hide }
      }),
    }
    return [ownRoutes, { ...routes, hiddenBy: ownRoutes.id }, ...(hosts ? [ownHosts, { ...hosts, hiddenBy: ownHosts.id }] : [])]
  }

  /** The routes of a view as one caller sees them, or strangers. */
  #sharedSpecs(tables: string, key: ViewKey, caller: Caller, proxy: ProxyClass): GroupSpec[] {
    const { traits } = proxy
    const routes: GroupSpec = {
      given: traits.filtersOf.routes.filters,
      typeUrl: routeType,
      id: routesGroup(tables),
      build: () => {
        const shared = this.#sharedRoutes(tables, key, caller, proxy)
        const made = [...shared.routes.values()].map((route) =>
          traits.takesVirtualHosts && route.route.catchAll ? hostlessRoute(route.route.name, route.extra) : this.#resource(shared, route),
        )
        return { outcomes: [...made, ...told(shared.problems)] }
      },
    }
    if (!traits.takesVirtualHosts) return [routes]
    const id = `vhosts|${tables}`
    const build = () => this.#sharedHosts(id, this.#sharedRoutes(tables, key, caller, proxy))
    return [routes, { given: traits.filtersOf.routes.filters, typeUrl: virtualHostType, id, build }]
  }

  /** Virtual hosts as resources of their own: those that differ from what the group has, or all of them. */
  #sharedHosts(id: string, shared: SharedRoutes): Built {
    const before = this.#hostsOf.get(id)
    const { at } = shared
    const settled = () => this.#hostsOf.set(id, { shared, at })
    const replaced = before?.shared === shared ? shared.replacedSince(before.at) : undefined
    const outcomes: Outcome[] = []
    for (const { route, hosts } of replaced ?? shared.routes.values())
      if (route.catchAll) for (const { piece } of hosts) if (piece) outcomes.push(hostResource(route.name, piece))
    return { outcomes, settled, isPart: replaced !== undefined }
  }

  #resource(shared: SharedRoutes, { route, extra }: SharedRoute): Resource {
    const table = shared.tableOf(route.name) as SharedRoute['table']
    const known = this.#whole.get(table)
    if (known && isUsable(known.resource) && Buffer.compare(known.extra, extra) === 0) return known.resource
    const resource = routeResource(table, [], [], extra, this.#making.sums)
    this.#whole.set(table, { extra, resource })
    return resource
  }

  /** The routes that groups share, as they are now; whoever asks is made again when anything in them is another. */
  #sharedRoutes(tables: string, key: ViewKey, caller: Caller, { traits }: ProxyClass): SharedRoutes {
    const { snapshot, memo } = this.#making
    const shared = this.#keptRoutes(tables, traits)
    this.#making.derived(`routes ${named(tables, traits)}`, () => {
      const { owner } = memo
      memo.owner = routesGroup(tables)
      shared.refresh(new HostMaker(this.#making.view(key), snapshot, traits, caller, memo))
      memo.owner = owner
      return shared.revision
    })
    return shared
  }

  /** The routes that groups share, as they were when somebody asked last. */
  #keptRoutes(tables: string, { takesVirtualHosts }: Traits): SharedRoutes {
    const group = routesGroup(tables)
    let kept = this.#shared.get(group)
    if (!kept) this.#shared.set(group, (kept = new SharedRoutes(this.#making.record, this.#making.sums, !takesVirtualHosts)))
    return kept
  }

  /** What a namespace has of its own, as it is now. */
  #ownRoutes(own: string, tables: string, sharedKey: ViewKey, proxy: ProxyClass): OwnRoutes {
    const shared = () => this.#sharedRoutes(tables, sharedKey, stranger, proxy)
    const group = routesGroup(`of ${own}`)
    let kept = this.#own.get(group)
    if (!kept) this.#own.set(group, (kept = new OwnRoutes(this.#keptRoutes(tables, proxy.traits), this.#making.sums)))
    const routes = kept
    this.#making.derived(`own routes ${named(own, proxy.traits)}`, () => {
      // Who claims what in the shared routes concerns it where it claims the same.
      this.#making.derived(`claims of ${named(own, proxy.traits)}`, () => {
        this.#part(`claims in ${named(tables, proxy.traits)}`, tables, sharedKey, proxy, ({ claims }) => claims.at)
        return routes.claimed()
      })
      this.#refreshOwn(routes, proxy)
      if (routes.isAlike) shared()
      return {}
    })
    return routes
  }

  /** Has whoever is being made be made again when a part of the shared routes is another. */
  #part(name: string, tables: string, key: ViewKey, proxy: ProxyClass, part: (shared: SharedRoutes) => unknown): void {
    this.#making.derived(name, () => part(this.#sharedRoutes(tables, key, stranger, proxy)))
  }

  #refreshOwn(routes: OwnRoutes, { viewKey, namespace, sourceLabels, traits }: ProxyClass): void {
    const { snapshot, memo } = this.#making
    const view = this.#making.view(viewKey)
    const { hosts = [], routed = [] } = view.difference ?? {}
    const own = snapshot.visibility.hostsOf.get(namespace) ?? []
    const differing = [...own, ...hosts, ...routed, ...hostsForCaller(snapshot, sourceLabels)]
    routes.refresh(new HostMaker(view, snapshot, traits, { namespace, labels: sourceLabels }, memo), differing)
  }

  /** Makes virtual hosts ahead of need, as strangers see them. Yields the bytes of each. */
  *prepare({ traits }: ProxyClass): Generator<number> {
    const { snapshot, memo } = this.#making
    const maker = new HostMaker(this.#making.view(publicView), snapshot, traits, stranger, memo)
    for (const egress of maker.view.egress)
      for (const state of egress.services) for (const candidate of maker.ofService(state, egress)) yield candidate.make().piece?.bytes.length ?? 0
  }

  /** Sets of routes that are kept: for views, and for namespaces of their own. */
  get kept(): number {
    return this.#shared.size + this.#own.size
  }

  /** A group is gone. */
  forget(group: string): void {
    this.#own.delete(group)
    this.#shared.delete(group)
    this.#hostsOf.delete(group)
  }
}
