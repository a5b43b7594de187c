/** Applies EnvoyFilters to generated resources (docs/resources.md, F2 to F5). A patch that cannot be applied is reported and left out; it never spoils the rest. */
import { clone, type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { type TypedExtensionConfig, TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  FilterSchema,
} from '../../../protocols/gen/envoy/config/listener/v3/listener_components_pb.js'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { type Route, RouteSchema, type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import {
  HttpConnectionManagerSchema,
  type HttpFilter,
  HttpFilterSchema,
} from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { contain } from '../../model/faults.ts'
import { qualify } from '../../snapshot/virtual-services.ts'
import type { Draft, Patcher } from '../draft.ts'
import type { Traits } from '../traits.ts'
import { checkPacked, editPacked, empty, mergeInto, readValue } from './merge.ts'
import { matchesProxy } from './selection.ts'

/** Where patches are applied, and to whom they report what they could not do. */
export interface PatchContext {
  readonly context: 'SIDECAR_INBOUND' | 'SIDECAR_OUTBOUND' | 'GATEWAY' | 'extensions'
  readonly traits: Traits
  /** Called with `EnvoyFilter/<namespace>/<name>` and the reason. */
  report(object: string, reason: string): void
}

interface Patch {
  readonly patch: ConfigPatch
  readonly object: string
  /** Namespace of the EnvoyFilter. */
  readonly namespace: string
}

/** The patches of one kind that hold in a context. */
function patchesOf(context: PatchContext, applyTo: ConfigPatch['applyTo']): Patch[] {
  if (context.traits.filters.length === 0) return []
  return context.traits.filters.flatMap((filter) =>
    (filter.spec.configPatches ?? [])
      .filter((patch) => {
        const wanted = patch.match?.context ?? 'ANY'
        return (
          patch.applyTo === applyTo &&
          (wanted === 'ANY' || wanted === context.context || context.context === 'extensions') &&
          matchesProxy(patch, context.traits)
        )
      })
      .map((patch) => ({ patch, object: `EnvoyFilter/${filter.namespace}/${filter.name}`, namespace: filter.namespace })),
  )
}

/** What patches were read as, and why those that could not be read were not. */
const values = new WeakMap<ConfigPatch, { readonly value: unknown } | { readonly reason: string }>()

/** The value of a patch as a message; each reading is a copy. Undefined, and reported, when it cannot be read. */
function readPatch<Schema extends DescMessage>(schema: Schema, { patch, object }: Patch, context: PatchContext): MessageShape<Schema> | undefined {
  let known = values.get(patch)
  if (!known) {
    known = contain<{ value: unknown } | { reason: string }>(
      () => ({ value: readValue(schema, patch.patch.value, patch.patch.operation === 'MERGE') }),
      (reason) => ({ reason }),
    )
    values.set(patch, known)
  }
  if ('value' in known) return clone(schema, known.value as MessageShape<Schema>)
  context.report(object, `${patch.applyTo} ${patch.patch.operation}: ${known.reason}`)
  return undefined
}

type Order = 'ADD' | 'INSERT_BEFORE' | 'INSERT_AFTER' | 'INSERT_FIRST' | 'MERGE' | 'REMOVE' | 'REPLACE'

/** Applies patches of one kind to a list of messages: removals, merges and replacements first, then what is added. */
function patchList<Schema extends DescMessage>(
  schema: Schema,
  items: MessageShape<Schema>[],
  patches: readonly Patch[],
  context: PatchContext,
  matches: (item: MessageShape<Schema>, patch: ConfigPatch) => boolean,
  ordered?: { matched(patch: ConfigPatch): boolean },
): MessageShape<Schema>[] {
  let list = items
  for (const entry of patches) {
    const operation: Order = entry.patch.patch.operation
    if (operation === 'REMOVE') list = list.filter((item) => !matches(item, entry.patch))
    else if (operation === 'MERGE' || operation === 'REPLACE') {
      const value = readPatch(schema, entry, context)
      if (!value) continue
      list = list.map((item) => {
        if (!matches(item, entry.patch)) return item
        return operation === 'REPLACE' ? clone(schema, value) : merged(schema, item, value, entry, context)
      })
    }
  }
  for (const entry of patches) {
    const operation: Order = entry.patch.patch.operation
    if (!['ADD', 'INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST'].includes(operation)) continue
    const value = readPatch(schema, entry, context)
    if (value) list = insert(list, value, ordered ? operation : 'ADD', (item) => matches(item, entry.patch), ordered?.matched(entry.patch) ?? false)
  }
  return list
}

function merged<Schema extends DescMessage>(
  schema: Schema,
  item: MessageShape<Schema>,
  value: MessageShape<Schema>,
  entry: Patch,
  context: PatchContext,
): MessageShape<Schema> {
  const copy = clone(schema, item)
  return contain(
    () => {
      mergeInto(schema, copy, clone(schema, value))
      return copy
    },
    (reason) => {
      context.report(entry.object, `${entry.patch.applyTo} MERGE: ${reason}`)
      return item
    },
  )
}

/** Puts an item into a list. Before or after a match that is not there means nowhere; without a match, first or last. */
function insert<T>(list: readonly T[], item: T, operation: Order, matches: (item: T) => boolean, named: boolean): T[] {
  if (operation === 'INSERT_FIRST') return [item, ...list]
  if (operation === 'ADD') return [...list, item]
  const before = operation === 'INSERT_BEFORE'
  if (!named) return before ? [item, ...list] : [...list, item]
  const at = list.findIndex(matches)
  if (at < 0) return [...list]
  return before ? [...list.slice(0, at), item, ...list.slice(at)] : [...list.slice(0, at + 1), item, ...list.slice(at + 1)]
}

const adds = ({ patch }: Patch): boolean => patch.patch.operation !== 'MERGE' && patch.patch.operation !== 'REMOVE'

/** Whether a patch adds a resource here. A sidecar has what is added in any context once: beside what is outbound. */
const addsIn = (entry: Patch, { context }: PatchContext): boolean =>
  adds(entry) && (context !== 'SIDECAR_INBOUND' || entry.patch.match?.context === context)

/** Merges and removals of CLUSTER patches. */
export function clusterPatcher(context: PatchContext): Patcher<Cluster> | undefined {
  const patches = patchesOf(context, 'CLUSTER').filter((entry) => !adds(entry))
  if (patches.length === 0) return undefined
  return {
    objects: objectsOf(patches),
    apply: (cluster) => checked(ClusterSchema, cluster, patchList(ClusterSchema, [cluster], patches, context, matchesCluster)[0]),
  }
}

/** Clusters that CLUSTER patches add. */
export function addedClusters(context: PatchContext): Draft<Cluster>[] {
  return added(ClusterSchema, patchesOf(context, 'CLUSTER'), context)
}

/** A message after its patches. Throws InvalidResource when they put something into it that Envoy would refuse. */
function checked<Schema extends DescMessage>(
  schema: Schema,
  original: MessageShape<Schema>,
  patched: MessageShape<Schema> | undefined,
): MessageShape<Schema> | undefined {
  if (patched && patched !== original) checkPacked(schema, patched)
  return patched
}

const objectsOf = (patches: readonly Patch[]): string[] => [...new Set(patches.map(({ object }) => object))]

/** What patches add to a list, each as a draft; a value that cannot be read is reported when it is made. */
function added<Schema extends DescMessage>(schema: Schema, patches: readonly Patch[], context: PatchContext): Draft<MessageShape<Schema>>[] {
  return patches
    .filter((patch) => addsIn(patch, context))
    .map((patch) => ({
      name: `${patch.object} ${patch.patch.applyTo}`,
      objects: () => [patch.object],
      make: () => readPatch(schema, patch, context),
    }))
}

function matchesCluster(cluster: Cluster, patch: ConfigPatch): boolean {
  const match = patch.match?.cluster
  if (!match) return true
  if (match.name && match.name !== cluster.name) return false
  const [, port = '', subset = '', host = ''] = cluster.name.split('|')
  return (
    (!match.service || match.service === host) &&
    (!match.subset || match.subset === subset) &&
    (!match.portNumber || String(match.portNumber) === port)
  )
}

const matchesListener = (listener: Listener, patch: ConfigPatch): boolean => {
  const match = patch.match?.listener
  return (
    (!match?.name || match.name === listener.name) &&
    (!match?.portNumber || match.portNumber === portOf(listener) || hasDestination(listener, match.portNumber))
  )
}

/** LISTENER (merges and removals), FILTER_CHAIN, NETWORK_FILTER and HTTP_FILTER patches; those on `whole` listeners only if wanted. */
export function listenerPatcher(context: PatchContext, whole = true): Patcher<Listener> | undefined {
  const listenerPatches = whole ? patchesOf(context, 'LISTENER').filter((entry) => !adds(entry)) : []
  const chainPatches = patchesOf(context, 'FILTER_CHAIN')
  const networkPatches = patchesOf(context, 'NETWORK_FILTER')
  const httpPatches = patchesOf(context, 'HTTP_FILTER')
  const inner = [...chainPatches, ...networkPatches, ...httpPatches]
  if (listenerPatches.length + inner.length === 0) return undefined
  return {
    objects: objectsOf([...listenerPatches, ...inner]),
    apply(original) {
      const [patched] = patchList(ListenerSchema, [original], listenerPatches, context, matchesListener)
      const here = (patches: readonly Patch[]) => (patched ? patches.filter(({ patch }) => matchesListener(patched, patch)) : [])
      if (
        !patched ||
        (here(chainPatches).length === 0 && !chainsOf(patched).some((chain) => hasFilters(chain, here(networkPatches), here(httpPatches))))
      )
        return checked(ListenerSchema, original, patched)
      const listener = clone(ListenerSchema, patched)
      listener.filterChains = patchList(FilterChainSchema, listener.filterChains, here(chainPatches), context, matchesChain)
      for (const chain of chainsOf(listener)) patchFilters(chain, here(networkPatches), here(httpPatches), context)
      return checked(ListenerSchema, original, listener)
    },
  }
}

const chainsOf = ({ filterChains, defaultFilterChain }: Listener): FilterChain[] => [
  ...filterChains,
  ...(defaultFilterChain ? [defaultFilterChain] : []),
]

/** Whether there is something in a chain for patches of filters: any place for network filters, an HTTP connection manager for HTTP filters. */
const hasFilters = (chain: FilterChain, network: readonly Patch[], http: readonly Patch[]): boolean =>
  network.some(({ patch }) => matchesChain(chain, patch)) ||
  (chain.filters.some(({ name }) => name === managerName) && http.some(({ patch }) => matchesChain(chain, patch)))

/** Listeners that LISTENER patches add. */
export function addedListeners(context: PatchContext): Draft<Listener>[] {
  return added(ListenerSchema, patchesOf(context, 'LISTENER'), context)
}

function portOf(listener: Listener): number | undefined {
  const address = listener.address?.address
  return address?.case === 'socketAddress' && address.value.portSpecifier.case === 'portValue' ? address.value.portSpecifier.value : undefined
}

const hasDestination = (listener: Listener, port: number): boolean =>
  listener.filterChains.some((chain) => chain.filterChainMatch?.destinationPort === port)

function matchesChain(chain: FilterChain, patch: ConfigPatch): boolean {
  const match = patch.match?.listener?.filterChain
  if (!match) return true
  const own = chain.filterChainMatch
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

/** Old names of filters that users still write. */
const canonicalNames: Readonly<Record<string, string>> = {
  'envoy.http_connection_manager': 'envoy.filters.network.http_connection_manager',
  'envoy.tcp_proxy': 'envoy.filters.network.tcp_proxy',
  'envoy.mongo_proxy': 'envoy.filters.network.mongo_proxy',
  'envoy.redis_proxy': 'envoy.filters.network.redis_proxy',
  'envoy.router': 'envoy.filters.http.router',
  'envoy.cors': 'envoy.filters.http.cors',
  'envoy.fault': 'envoy.filters.http.fault',
  'envoy.grpc_web': 'envoy.filters.http.grpc_web',
  'envoy.lua': 'envoy.filters.http.lua',
  'envoy.ext_authz': 'envoy.filters.http.ext_authz',
}
const sameName = (wanted: string, name: string): boolean => wanted === name || canonicalNames[wanted] === name

const managerName = 'envoy.filters.network.http_connection_manager'

function patchFilters(chain: FilterChain, network: readonly Patch[], http: readonly Patch[], context: PatchContext): void {
  const onChain = (patches: readonly Patch[]) => patches.filter(({ patch }) => matchesChain(chain, patch))
  const filterName = (patch: ConfigPatch) => patch.match?.listener?.filterChain?.filter?.name
  const matchesFilter = (filter: Filter, patch: ConfigPatch) => !filterName(patch) || sameName(filterName(patch) as string, filter.name)
  chain.filters = patchList(FilterSchema, chain.filters, onChain(network), context, matchesFilter, {
    matched: (patch) => filterName(patch) !== undefined,
  })
  const httpHere = onChain(http)
  if (httpHere.length === 0) return
  const subFilter = (patch: ConfigPatch) => patch.match?.listener?.filterChain?.filter?.subFilter?.name
  for (const filter of chain.filters) {
    if (filter.name !== managerName || filter.configType.case !== 'typedConfig') continue
    const wanted = httpHere.filter(({ patch }) => !filterName(patch) || sameName(filterName(patch) as string, managerName))
    editPacked(HttpConnectionManagerSchema, filter.configType.value, (manager) => {
      const matches = (item: HttpFilter, patch: ConfigPatch) => !subFilter(patch) || sameName(subFilter(patch) as string, item.name)
      const patched = patchList(HttpFilterSchema, manager.httpFilters, wanted, context, matches, {
        matched: (patch) => subFilter(patch) !== undefined,
      })
      // The router must stay last: what was added without a place goes before it.
      const router = patched.findIndex((item) => item.name === 'envoy.filters.http.router')
      if (router >= 0 && router < patched.length - 1) patched.push(...patched.splice(router, 1))
      manager.httpFilters = patched
    })
  }
}

/** `http.<port>`, with the address behind it where it listens on one, or `https.<port>.<port name>.<gateway>.<namespace>`; the name of a Gateway may have dots. */
const gatewayRoute = /^http\.(?<plain>\d+)(?:\..+)?$|^https\.(?<secure>\d+)\.(?<portName>[^.]*)\.(?<gateway>.+)\.(?<owner>[^.]+)$/

function matchesRouteName(name: string, { patch, namespace }: Patch): boolean {
  const match = patch.match?.routeConfiguration
  if (!match) return true
  if (match.name && match.name !== name) return false
  const { plain, secure, portName, gateway, owner } = gatewayRoute.exec(name)?.groups ?? {}
  const port = plain ?? secure ?? /(\d+)$/.exec(name)?.[1]
  if (match.portNumber && String(match.portNumber) !== port) return false
  if (match.portName && match.portName !== portName) return false
  return !match.gateway || qualify(match.gateway, namespace) === `${owner}/${gateway}`
}

/** Applies VIRTUAL_HOST (merge, remove) and HTTP_ROUTE patches to hosts of one route configuration. */
export function patchVirtualHosts(hosts: VirtualHost[], route: string, context: PatchContext): VirtualHost[] {
  const onRoute = (applyTo: ConfigPatch['applyTo']) => patchesOf(context, applyTo).filter((entry) => matchesRouteName(route, entry))
  const hostPatches = onRoute('VIRTUAL_HOST').filter(({ patch }) => patch.patch.operation === 'MERGE' || patch.patch.operation === 'REMOVE')
  const routePatches = onRoute('HTTP_ROUTE')
  if (hostPatches.length + routePatches.length === 0) return hosts
  const hostName = (patch: ConfigPatch) => patch.match?.routeConfiguration?.vhost?.name
  const matchesHost = (host: VirtualHost, patch: ConfigPatch) => !hostName(patch) || hostName(patch) === host.name
  return patchList(VirtualHostSchema, hosts, hostPatches, context, matchesHost).map((original) => {
    const here = routePatches.filter(({ patch }) => matchesHost(original, patch))
    if (here.length === 0) return original
    const host = clone(VirtualHostSchema, original)
    host.routes = patchList(RouteSchema, host.routes, here, context, matchesRoute, {
      matched: (patch) => patch.match?.routeConfiguration?.vhost?.route !== undefined,
    })
    return checked(VirtualHostSchema, original, host) as VirtualHost
  })
}

function matchesRoute(route: Route, patch: ConfigPatch): boolean {
  const match = patch.match?.routeConfiguration?.vhost?.route
  if (match?.name && match.name !== route.name) return false
  const actions = { ROUTE: 'route', REDIRECT: 'redirect', DIRECT_RESPONSE: 'directResponse', ANY: undefined } as const
  const action = actions[match?.action ?? 'ANY']
  return action === undefined || route.action.case === action
}

/** Virtual hosts that patches add to a route configuration. */
export function addedVirtualHosts(route: string, context: PatchContext): VirtualHost[] {
  const patches = patchesOf(context, 'VIRTUAL_HOST').filter((entry) => matchesRouteName(route, entry) && adds(entry))
  return patches.flatMap((patch) => readPatch(VirtualHostSchema, patch, context) ?? [])
}

/** What ROUTE_CONFIGURATION patches merge into a route configuration, as bytes to put behind it. */
export function routeConfigurationExtra(route: string, context: PatchContext): Uint8Array {
  const patches = patchesOf(context, 'ROUTE_CONFIGURATION').filter((entry) => matchesRouteName(route, entry))
  if (patches.length === 0) return new Uint8Array()
  const extra = empty(RouteConfigurationSchema)
  for (const patch of patches) {
    const value = readPatch(RouteConfigurationSchema, patch, context)
    if (value) mergeInto(RouteConfigurationSchema, extra, value)
  }
  extra.name = ''
  return toBinary(RouteConfigurationSchema, extra)
}

/** All route patches on whole route configurations (gateways). */
export function routePatcher(context: PatchContext): Patcher<RouteConfiguration> | undefined {
  const patches = (['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE'] as const).flatMap((applyTo) => patchesOf(context, applyTo))
  if (patches.length === 0) return undefined
  return {
    objects: objectsOf(patches),
    apply(original) {
      let route = clone(RouteConfigurationSchema, original)
      for (const patch of patchesOf(context, 'ROUTE_CONFIGURATION')) {
        if (!matchesRouteName(route.name, patch)) continue
        const value = readPatch(RouteConfigurationSchema, patch, context)
        if (value) route = merged(RouteConfigurationSchema, route, value, patch, context)
      }
      route.virtualHosts = [...patchVirtualHosts(route.virtualHosts, route.name, context), ...addedVirtualHosts(route.name, context)]
      return checked(RouteConfigurationSchema, original, route)
    },
  }
}

/** EXTENSION_CONFIG patches as resources (`envoy.config.core.v3.TypedExtensionConfig`), delivered by name. */
export function extensionConfigs(context: PatchContext): Draft<TypedExtensionConfig>[] {
  return added(TypedExtensionConfigSchema, patchesOf(context, 'EXTENSION_CONFIG'), context)
}
