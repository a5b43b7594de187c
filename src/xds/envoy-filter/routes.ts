/** Applies patches to route configurations, virtual hosts and routes (docs/resources.md, F4). */
import { clone, toBinary } from '@bufbuild/protobuf'
import { type Route, RouteSchema, type VirtualHost, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'
import { qualify } from '../../snapshot/virtual-services.ts'
import type { Patcher } from '../draft.ts'
import { mergeInto } from './merge.ts'
import { empty } from './packed.ts'
import {
  adds,
  checked,
  isMerge,
  merged,
  objectsOf,
  type Patch,
  type PatchContext,
  type PatchedList,
  patchesOf,
  patchList,
  readPatch,
  turns,
} from './patches.ts'

/**
 * Matches `http.<port>`, followed by the bind address if there is one, and `https.<port>.<port name>.<gateway>.<namespace>`; the name of a
 * Gateway may contain dots.
 */
const gatewayRoute = /^http\.(?<plain>\d+)(?:\..+)?$|^https\.(?<secure>\d+)\.(?<portName>[^.]*)\.(?<gateway>.+)\.(?<owner>[^.]+)$/

/**
 * Whether a patch matches the name of a route configuration. Matches of port name and gateway apply to gateways only; for sidecars they are
 * ignored.
 */
function matchesRouteName(name: string, { patch, namespace }: Patch, context: PatchContext['context']): boolean {
  const match = patch.match?.routeConfiguration
  if (!match) return true
  if (match.name && match.name !== name) return false
  const { plain, secure, portName, gateway, owner } = gatewayRoute.exec(name)?.groups ?? {}
  const port = plain ?? secure ?? /^inbound\|(\d+)\|/.exec(name)?.[1] ?? /(\d+)$/.exec(name)?.[1]
  if (match.portNumber && String(match.portNumber) !== port) return false
  if (context !== 'GATEWAY') return true
  if (match.portName && match.portName !== portName) return false
  return !match.gateway || qualify(match.gateway, namespace) === `${owner}/${gateway}`
}

const onRoute = (route: string, context: PatchContext, applyTo: ConfigPatch['applyTo']): Patch[] =>
  patchesOf(context, applyTo).filter((entry) => matchesRouteName(route, entry, context.context))

function matchesHost({ name, domains }: VirtualHost, patch: ConfigPatch): boolean {
  const { name: wanted, domainName } = patch.match?.routeConfiguration?.vhost ?? {}
  return (!wanted || wanted === name) && (!domainName || domains.includes(domainName))
}

const hosts: PatchedList<typeof VirtualHostSchema> = {
  schema: VirtualHostSchema,
  matches: matchesHost,
  names: () => false,
  byNameOnly: false,
  turns: turns.changesFirst,
}

const routes: PatchedList<typeof RouteSchema> = {
  schema: RouteSchema,
  matches: matchesRoute,
  names: (patch) => patch.match?.routeConfiguration?.vhost?.route !== undefined,
  byNameOnly: false,
  turns: turns.changesFirst,
}

function matchesRoute(route: Route, patch: ConfigPatch): boolean {
  const match = patch.match?.routeConfiguration?.vhost?.route
  if (match?.name && match.name !== route.name) return false
  const actions = { ROUTE: 'route', REDIRECT: 'redirect', DIRECT_RESPONSE: 'directResponse', ANY: undefined } as const
  const action = actions[match?.action ?? 'ANY']
  return action === undefined || route.action.case === action
}

/** Applies VIRTUAL_HOST (merge, remove, replace) and HTTP_ROUTE patches to virtual hosts of one route configuration. */
export function patchVirtualHosts(virtualHosts: readonly VirtualHost[], route: string, context: PatchContext): VirtualHost[] {
  const hostPatches = onRoute(route, context, 'VIRTUAL_HOST').filter((entry) => !adds(entry))
  const routePatches = onRoute(route, context, 'HTTP_ROUTE').filter(({ operation }) => operation !== 'REPLACE')
  if (hostPatches.length + routePatches.length === 0) return [...virtualHosts]
  return patchList(hosts, virtualHosts, hostPatches, context).map((original) => {
    const here = routePatches.filter(({ patch }) => matchesHost(original, patch))
    if (here.length === 0) return original
    const host = clone(VirtualHostSchema, original)
    host.routes = patchList(routes, host.routes, here, context)
    return checked(VirtualHostSchema, original, host) as VirtualHost
  })
}

/** Returns the virtual hosts that patches add to a route configuration. */
export function addedVirtualHosts(route: string, context: PatchContext): VirtualHost[] {
  return onRoute(route, context, 'VIRTUAL_HOST')
    .filter(adds)
    .flatMap((patch) => readPatch(VirtualHostSchema, patch, context) ?? [])
}

/** Returns the encoded fields that ROUTE_CONFIGURATION patches merge into a route configuration, to be appended to it. */
export function routeConfigurationExtra(route: string, context: PatchContext): Uint8Array {
  const patches = onRoute(route, context, 'ROUTE_CONFIGURATION').filter(isMerge)
  if (patches.length === 0) return new Uint8Array()
  const extra = empty(RouteConfigurationSchema)
  for (const patch of patches) {
    const value = readPatch(RouteConfigurationSchema, patch, context)
    if (value) mergeInto(RouteConfigurationSchema, extra, value, patch.operation === 'MERGE' ? 'grow' : 'replaced')
  }
  extra.name = ''
  return toBinary(RouteConfigurationSchema, extra)
}

/**
 * Adds virtual hosts of patches, without the domains that other hosts have: Envoy refuses a route configuration in which a domain occurs
 * twice.
 */
function withHosts(present: readonly VirtualHost[], more: readonly VirtualHost[]): VirtualHost[] {
  const taken = new Set(present.flatMap(({ domains }) => domains.map((domain) => domain.toLowerCase())))
  const left = more.flatMap((host) => {
    host.domains = host.domains.filter((domain) => {
      const isNew = !taken.has(domain.toLowerCase())
      taken.add(domain.toLowerCase())
      return isNew
    })
    return host.domains.length > 0 ? host : []
  })
  return [...present, ...left]
}

/**
 * Returns a patcher that applies all route patches to whole route configurations: those of gateways and those inlined in inbound listeners.
 */
export function routePatcher(context: PatchContext): Patcher<RouteConfiguration> | undefined {
  const patches = (['ROUTE_CONFIGURATION', 'VIRTUAL_HOST', 'HTTP_ROUTE'] as const).flatMap((applyTo) => patchesOf(context, applyTo))
  if (patches.length === 0) return undefined
  return {
    objects: objectsOf(patches),
    apply(original) {
      let route = clone(RouteConfigurationSchema, original)
      for (const patch of onRoute(route.name, context, 'ROUTE_CONFIGURATION').filter(isMerge)) {
        const value = readPatch(RouteConfigurationSchema, patch, context)
        if (value) route = merged(RouteConfigurationSchema, route, value, patch, context)
      }
      route.virtualHosts = withHosts(patchVirtualHosts(route.virtualHosts, route.name, context), addedVirtualHosts(route.name, context))
      return checked(RouteConfigurationSchema, original, route)
    },
  }
}
