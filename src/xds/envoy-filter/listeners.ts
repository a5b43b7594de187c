/** Applies patches to listeners, their filter chains and the filters in these (docs/resources.md, F3, F4). */
import { clone } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  FilterSchema,
  ListenerFilterSchema,
} from '../../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  HttpConnectionManagerSchema,
  type HttpFilter,
  HttpFilterSchema,
} from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import type { Draft, Patcher } from '../draft.ts'
import { extensionConfigs } from './extensions.ts'
import { anchorOf, managerName, placeOfClass, reportPolicyChanges, routerName, sameFilter } from './filter-places.ts'
import { mergeInto, mergePacked } from './merge.ts'
import { editPacked, readPacked } from './packed.ts'
import { added, adds, checked, isMerge, objectsOf, type Patch, type PatchContext, type PatchedList, patchesOf, patchList, turns } from './patches.ts'
import { isPolicyFilter } from './policy-filters.ts'
import { routePatcher } from './routes.ts'
import { mergeSocket } from './transport-sockets.ts'

/** Patches of listeners by what they apply to. */
interface ListenerPatches {
  readonly listener: readonly Patch[]
  readonly listenerFilter: readonly Patch[]
  readonly chain: readonly Patch[]
  readonly network: readonly Patch[]
  readonly http: readonly Patch[]
}

/**
 * Returns a patcher that applies LISTENER (merge and remove), LISTENER_FILTER, FILTER_CHAIN, NETWORK_FILTER and HTTP_FILTER patches, and
 * route patches to routes inlined in inbound listeners. Undefined if there are none.
 */
export function listenerPatcher(context: PatchContext): Patcher<Listener> | undefined {
  const patches: ListenerPatches = {
    listener: patchesOf(context, 'LISTENER').filter((entry) => isMerge(entry) || entry.operation === 'REMOVE'),
    listenerFilter: patchesOf(context, 'LISTENER_FILTER'),
    chain: patchesOf(context, 'FILTER_CHAIN'),
    network: patchesOf(context, 'NETWORK_FILTER'),
    http: patchesOf(context, 'HTTP_FILTER'),
  }
  const routes = context.context === 'SIDECAR_INBOUND' ? routePatcher(context) : undefined
  const objects = [...new Set([...objectsOf(Object.values(patches).flat()), ...(routes?.objects ?? [])])]
  if (objects.length === 0) return undefined
  return { objects, apply: (original) => checked(ListenerSchema, original, patchListener(original, patches, routes, context)) }
}

function patchListener(
  original: Listener,
  patches: ListenerPatches,
  routes: ReturnType<typeof routePatcher>,
  context: PatchContext,
): Listener | undefined {
  const [patched] = patchList(listeners, [original], patches.listener, context)
  if (!patched) return undefined
  const here = (some: readonly Patch[]) => some.filter(({ patch }) => matchesAround(patched, patch))
  const within = {
    listenerFilter: here(patches.listenerFilter),
    chain: here(patches.chain),
    network: here(patches.network),
    http: here(patches.http),
  }
  if (!routes && !isConcerned(patched, within)) return patched
  const listener = patched === original ? clone(ListenerSchema, patched) : patched
  listener.listenerFilters = patchList(listenerFilters, listener.listenerFilters, within.listenerFilter, context)
  const changed = (list: readonly FilterChain[], some: readonly Patch[]) =>
    patchList({ ...chains, matches: (chain, patch) => matchesChain(listener, chain, patch) }, list, some, context)
  const changes = within.chain.filter((entry) => isMerge(entry) || entry.operation === 'REMOVE')
  listener.filterChains = changed(listener.filterChains, changes)
  const [rest] = listener.defaultFilterChain ? changed([listener.defaultFilterChain], changes) : []
  if (rest) listener.defaultFilterChain = rest
  else delete listener.defaultFilterChain
  for (const chain of [...listener.filterChains, ...(rest ? [rest] : [])]) {
    const onChain = (some: readonly Patch[]) => some.filter(({ patch }) => matchesChain(listener, chain, patch))
    patchFilters(chain, onChain(within.network), onChain(within.http), routes, context)
  }
  listener.filterChains = changed(listener.filterChains, within.chain.filter(adds))
  if (chainsOf(listener).length > 0 || chainsOf(original).length === 0) return listener
  for (const object of objectsOf(within.chain))
    context.report(object, `${listener.name} has no filter chain left`, 'the listener is left out: Envoy takes none without chains')
  return undefined
}

const chainsOf = ({ filterChains, defaultFilterChain }: Listener): FilterChain[] => [
  ...filterChains,
  ...(defaultFilterChain ? [defaultFilterChain] : []),
]

/** Whether any patch concerns something in a listener. A listener that no patch concerns is not copied: the message is shared. */
function isConcerned(listener: Listener, { listenerFilter, chain, network, http }: Omit<ListenerPatches, 'listener'>): boolean {
  if (listenerFilter.length + chain.length > 0) return true
  return chainsOf(listener).some(
    (each) =>
      network.some(({ patch }) => matchesChain(listener, each, patch)) ||
      (each.filters.some(({ name }) => name === managerName) && http.some(({ patch }) => matchesChain(listener, each, patch))),
  )
}

/** Returns the listeners that LISTENER patches add. Other patches do not apply to these. */
export function addedListeners(context: PatchContext): Draft<Listener>[] {
  return added(ListenerSchema, patchesOf(context, 'LISTENER'), context)
}

const listeners: PatchedList<typeof ListenerSchema> = {
  schema: ListenerSchema,
  matches: (listener, patch) => matchesName(listener, patch) && matchesPort(listener, patch),
  names: () => false,
  byNameOnly: false,
  turns: turns.changesFirst,
}

const listenerFilterName = (patch: ConfigPatch): string | undefined => patch.match?.listener?.listenerFilter || undefined

const listenerFilters: PatchedList<typeof ListenerFilterSchema> = {
  schema: ListenerFilterSchema,
  matches: ({ name }, patch) => sameFilter(listenerFilterName(patch), name),
  names: (patch) => listenerFilterName(patch) !== undefined,
  byNameOnly: true,
  turns: turns.inOrder,
  merge: (filter, value, lists) => mergeTyped(filter, value, () => mergeInto(ListenerFilterSchema, filter, value, lists)),
}

const chains: Omit<PatchedList<typeof FilterChainSchema>, 'matches'> = {
  schema: FilterChainSchema,
  names: () => false,
  byNameOnly: false,
  turns: turns.changesFirst,
  merge(chain, value, lists) {
    if (chain.transportSocket && value.transportSocket) {
      mergeSocket(chain.transportSocket, value.transportSocket as TransportSocket)
      delete value.transportSocket
    }
    mergeInto(FilterChainSchema, chain, value, lists)
  },
}

const filterName = (patch: ConfigPatch): string | undefined => patch.match?.listener?.filterChain?.filter?.name || undefined

const networkFilters: PatchedList<typeof FilterSchema> = {
  schema: FilterSchema,
  matches: ({ name }, patch) => sameFilter(filterName(patch), name),
  names: (patch) => filterName(patch) !== undefined,
  byNameOnly: true,
  turns: turns.mergesLast,
  merge(filter, value, lists) {
    const routes = fetchedRoutes(value)
    // Envoy would wait for a route configuration that never comes, and would not apply any later change of the listener, policies included.
    if (routes && routes !== fetchedRoutes(filter)) throw new Error(`the route configuration ${routes} is not that of the listener`)
    mergeTyped(filter, value, () => mergeInto(FilterSchema, filter, value, lists))
  },
}

/** Returns the name of the route configuration that a connection manager fetches over ADS; undefined if there is none. */
function fetchedRoutes({ configType }: Filter): string | undefined {
  const routes = configType.case === 'typedConfig' ? readPacked(HttpConnectionManagerSchema, configType.value)?.routeSpecifier : undefined
  return routes?.case === 'rds' && routes.value.configSource?.configSourceSpecifier.case === 'ads' ? routes.value.routeConfigName : undefined
}

const subFilterName = (patch: ConfigPatch): string | undefined => patch.match?.listener?.filterChain?.filter?.subFilter?.name || undefined

/** HTTP filters in a connection manager. */
const httpFilters: PatchedList<typeof HttpFilterSchema> = {
  schema: HttpFilterSchema,
  matches: ({ name }, patch) => sameFilter(subFilterName(patch), name),
  names: (patch) => subFilterName(patch) !== undefined,
  byNameOnly: true,
  turns: turns.mergesLast,
  merge: (filter, value, lists) => mergeTyped(filter, value, () => mergeInto(HttpFilterSchema, filter, value, lists)),
  place: (list, { patch: { filterClass } }) => placeOfClass(list, filterClass),
}

/** A filter of any kind with typed configuration in `configType`. */
interface TypedFilter {
  readonly name: string
  configType: { case: string | undefined; value?: unknown }
}

/**
 * Merges a filter into another, including their typed configurations. A filter whose configuration has another type is left unchanged,
 * since a patch that names no filter matches all filters of a chain.
 */
function mergeTyped(filter: TypedFilter, value: TypedFilter, mergeRest: () => void): void {
  const typed = ({ configType }: TypedFilter) => (configType.case === 'typedConfig' ? (configType.value as Any) : undefined)
  const [target, source] = [typed(filter), typed(value)]
  if (source && !(target && mergePacked(target, source))) return
  if (source) value.configType = { case: undefined }
  mergeRest()
}

function portOf({ address }: Listener): number | undefined {
  const of = address?.address
  return of?.case === 'socketAddress' && of.value.portSpecifier.case === 'portValue' ? of.value.portSpecifier.value : undefined
}

/** Listeners of redirected connections: a port in a match is matched against their filter chains. */
const virtualNames: ReadonlySet<string> = new Set(['virtualInbound', 'virtualOutbound'])

const matchesName = ({ name }: Listener, patch: ConfigPatch): boolean => {
  const wanted = patch.match?.listener?.name
  return !wanted || wanted === name
}

const matchesPort = (listener: Listener, patch: ConfigPatch): boolean => {
  const port = patch.match?.listener?.portNumber
  return !port || port === portOf(listener)
}

/** Whether a patch concerns something in a listener. */
const matchesAround = (listener: Listener, patch: ConfigPatch): boolean =>
  matchesName(listener, patch) && (virtualNames.has(listener.name) || matchesPort(listener, patch))

function matchesChain(listener: Listener, chain: FilterChain, patch: ConfigPatch): boolean {
  const { portNumber, filterChain: match } = patch.match?.listener ?? {}
  const own = chain.filterChainMatch
  if (portNumber && virtualNames.has(listener.name) && own?.destinationPort !== portNumber) return false
  if (!match) return true
  if (match.name && match.name !== chain.name) return false
  if (match.sni && !own?.serverNames.includes(match.sni)) return false
  if (match.transportProtocol && match.transportProtocol !== own?.transportProtocol) return false
  if (match.destinationPort && match.destinationPort !== own?.destinationPort) return false
  const protocols = (match.applicationProtocols ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  return protocols.every((protocol) => own?.applicationProtocols.includes(protocol))
}

function patchFilters(
  chain: FilterChain,
  network: readonly Patch[],
  http: readonly Patch[],
  routes: ReturnType<typeof routePatcher>,
  context: PatchContext,
): void {
  const before = chain.filters
  if (routes) for (const filter of before) patchRoutes(filter, routes)
  chain.filters = patchList(networkFilters, before, network, context)
  reportPolicyChanges(before, chain.filters, network, filterName, context, enforcesPolicies)
  const here = http.filter(({ patch }) => sameFilter(filterName(patch), managerName))
  if (here.length === 0) return
  for (const filter of chain.filters) {
    if (filter.name !== managerName || filter.configType.case !== 'typedConfig') continue
    editPacked(HttpConnectionManagerSchema, filter.configType.value, (manager) => {
      const present = manager.httpFilters
      manager.httpFilters = served(routerLast(patchList(httpFilters, present, anchored(here, present), context)), present, here, context)
      reportPolicyChanges(present, manager.httpFilters, here, subFilterName, context)
    })
  }
}

/** Replaces the position of patches that name a filter of special builds of Envoy by the corresponding position of a stock Envoy. */
function anchored(patches: readonly Patch[], filters: readonly HttpFilter[]): Patch[] {
  return patches.map((entry) => {
    const anchor = adds(entry) ? anchorOf(subFilterName(entry.patch), filters) : undefined
    if (!anchor) return entry
    const { match, patch } = entry.patch
    const filterChain = {
      ...match?.listener?.filterChain,
      filter: anchor.name === undefined ? {} : { name: managerName, subFilter: { name: anchor.name } },
    }
    return {
      ...entry,
      operation: anchor.operation,
      patch: { ...entry.patch, patch, match: { ...match, listener: { ...match?.listener, filterChain } } },
    }
  })
}

/** Moves the router to the end, where Envoy requires it. */
function routerLast(filters: readonly HttpFilter[]): HttpFilter[] {
  const router = filters.findIndex(({ name }) => name === routerName)
  return router < 0 ? [...filters] : [...filters.toSpliced(router, 1), filters[router] as HttpFilter]
}

/**
 * Leaves out added filters whose configuration is delivered by name (ECDS) if no readable EXTENSION_CONFIG patch adds that name: Envoy
 * would wait for the configuration, and would not apply any later change of the listener, policies included.
 */
function served(filters: readonly HttpFilter[], present: readonly HttpFilter[], patches: readonly Patch[], context: PatchContext): HttpFilter[] {
  const waits = ({ configType }: HttpFilter) =>
    configType.case === 'configDiscovery' && configType.value.configSource?.configSourceSpecifier.case === 'ads' && !configType.value.defaultConfig
  if (!filters.some(waits)) return [...filters]
  const names = new Set(extensionConfigs({ ...context, context: 'extensions', report: () => undefined }).flatMap((draft) => draft.make()?.name ?? []))
  return filters.filter((filter) => {
    if (!waits(filter) || names.has(filter.name) || present.includes(filter)) return true
    for (const object of objectsOf(patches.filter(adds)))
      context.report(
        object,
        `the configuration ${filter.name} of an HTTP filter is added by no EXTENSION_CONFIG that can be read`,
        'the filter is left out',
      )
    return false
  })
}

/** Whether a connection manager contains filters that enforce policies. */
function enforcesPolicies({ name, configType }: Filter): boolean {
  if (name !== managerName || configType.case !== 'typedConfig') return false
  return readPacked(HttpConnectionManagerSchema, configType.value)?.httpFilters.some((filter) => isPolicyFilter(filter.name)) ?? false
}

function patchRoutes(filter: Filter, routes: NonNullable<ReturnType<typeof routePatcher>>): void {
  if (filter.name !== managerName || filter.configType.case !== 'typedConfig') return
  editPacked(HttpConnectionManagerSchema, filter.configType.value, (manager) => {
    if (manager.routeSpecifier.case !== 'routeConfig') return
    const value = routes.apply(manager.routeSpecifier.value)
    if (value) manager.routeSpecifier = { case: 'routeConfig', value }
  })
}
