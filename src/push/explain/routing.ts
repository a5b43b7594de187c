/** Where a proxy sends a request by the resources that it was sent. Every answer about it comes from here. */
import { type JsonObject, toJsonString } from '@bufbuild/protobuf'
import { type Route, RouteMatchSchema, VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { DescribedRequest, SentRequest } from '../../../protocols/messages/described-request.ts'
import type { RoutedCluster, Routing, RoutingInput, TriedRoute } from '../../../protocols/messages/explain.ts'
import { suggestion } from '../../model/edit-distance.ts'
import { completeHost } from '../../model/match.ts'
import { normalizePath, pathFault } from '../../policy/paths.ts'
import { blackHole, hostOf, passthrough } from '../../xds/names.ts'
import { clusterType, routeType, virtualHostType } from '../../xds/type-urls.ts'
import { hostNameOf, isAddress } from './asked-host.ts'
import { hostFor, type JudgedRoute, joinsValues, judged, type RoutedRequest } from './matched-route.ts'
import { onTheWay, type Passed, requestSentOn } from './on-the-way.ts'
import { endpointsOf, isOwnTls, routedCluster } from './routed-cluster.ts'
import { connectionOf } from './sent-connection.ts'
import { missingText, SentResources } from './sent-resources.ts'
import {
  isCatchAll,
  isPlain,
  isRedirected,
  type LeadsTo,
  needsClientCertificate,
  portsOf,
  secretsOfChain,
  takenConnection,
  unreachedAt,
  type WeightedCluster,
} from './taken-connection.ts'

/** The maximum number of routes that are told of. */
const mostRoutes = 200
/** The maximum number of destinations that a reason names. */
const mostHosts = 3

/** What is said of a request before its status is known. */
type Unanswered = Omit<Routing, 'status' | 'decidedBy' | 'reason'>

/** Says where a proxy sends a request. */
export function routing(input: RoutingInput): Routing {
  const sent = new SentResources(input)
  const { request } = input
  const asked = {
    host: hostNameOf(request.host),
    port: request.destinationPort,
    isTls: request.scheme === 'https',
    serverName: request.sni.toLowerCase(),
  }
  const hosts = namesOf(asked.host, input)
  const knows = (leadsTo: LeadsTo) => isFor(leadsTo, hosts, request.host, sent)
  const listeners = sent.listeners()
  const unreached = unreachedAt(listeners, asked.port).map(
    ({ name }) => ` but ${name}, which no connection reaches: it is not bound, and nothing is redirected to loopback (bind with captureMode DEFAULT)`,
  )
  const others = `no listener has port ${asked.port}${unreached.join('')}; there are listeners for ${portsOf(listeners).join(', ') || 'none'}`
  const taken = takenConnection(listeners, asked, knows)
  const nowhere: Unanswered = {
    ...{ listener: '', filterChain: '', routes: '', virtualHost: '', domain: '' },
    ...{ tried: [], untold: 0, clusters: [], arrivals: [], changes: [], unjudged: [], isKnown: false, hosts, protocol: 'http', assumed: [] },
  }
  if (!taken) return { ...nowhere, status: 0, decidedBy: 'listener', reason: others }
  const { listener, chain, leadsTo } = taken
  const at: Unanswered = {
    ...{ ...nowhere, listener: listener.name, filterChain: chain?.name ?? '', isKnown: knows(leadsTo) },
    protocol: leadsTo.kind === 'http' ? 'http' : 'tcp',
    assumed: asked.isTls && chain && needsClientCertificate(chain) ? [presentsCertificate] : [],
  }
  if (!chain) return { ...at, status: 0, decidedBy: 'listener', reason: 'no filter chain of the listener matches' }
  const missing = asked.isTls ? sent.missing(secretsOfChain(chain)) : []
  if (missing.length > 0) return { ...at, status: 0, decidedBy: 'listener', reason: `the TLS handshake fails: ${missingText(missing, 'Gateway')}` }
  if (asked.isTls && leadsTo.kind === 'http' && isPlain(chain)) return { ...at, status: 0, decidedBy: 'listener', reason: plainPort(asked.port) }
  if (leadsTo.kind === 'unknown')
    return { ...at, status: 200, decidedBy: 'unknown', reason: `what the filter ${leadsTo.filter} does is not known here` }
  if (leadsTo.kind === 'clusters') {
    return sentTo(at, leadsTo.clusters, sent, isCatchAll(listener) ? `${others}; ` : '', {
      request: connectionOf(request),
      isTls: asked.isTls && isPlain(chain),
    })
  }
  const { manager } = leadsTo
  const unread = pathFault(request.path, manager.normalizePath ?? false)
  if (unread !== undefined) return { ...at, status: 400, decidedBy: 'listener', reason: unread }
  const table = tableOf(leadsTo, sent)
  if (!table) return { ...at, status: 404, decidedBy: 'listener', reason: 'the proxy does not have the routes of the listener' }
  return routed({ ...at, routes: table.name }, { ...input, table, manager }, request, sent)
}

const presentsCertificate =
  'the TLS of the port: the client is taken to present a certificate that the proxy accepts; connections of clients without one are closed'

const plainPort = (port: number): string => `port ${port} is plain text: the proxy reads requests of http there, and none by TLS (https)`

/** The names that a host may stand for: itself, and full names in the namespace of the proxy and in others. */
function namesOf(host: string, { namespace, domain }: RoutingInput): string[] {
  if (isAddress(host)) return [host]
  const ends = host.includes('.') ? [`.svc.${domain}`, `.${domain}`] : []
  return [...new Set([host, completeHost(host, namespace, domain), ...ends.filter((end) => !host.endsWith(end)).map((end) => `${host}${end}`)])]
}

/** Whether a connection leads to a host: to a cluster of it, or to routes that have it. */
function isFor(leadsTo: LeadsTo, names: readonly string[], host: string, sent: SentResources): boolean {
  if (leadsTo.kind === 'clusters') return leadsTo.clusters.some(({ name }) => names.includes(hostOf(clusterType, name)))
  const table = tableOf(leadsTo, sent)
  const found = table && hostFor(table.virtualHosts, authorityIn(table, host))
  return found !== undefined && found.domain !== '*'
}

type Manager = Extract<LeadsTo, { readonly kind: 'http' }>['manager']

/** The headers of a request with those that the connection manager sets before it routes, and whose values are known. A gateway does not believe its client about the scheme. */
function withOwnHeaders(
  { headers, scheme }: SentRequest,
  { useRemoteAddress, xffNumTrustedHops, generateRequestId }: Manager,
): SentRequest['headers'] {
  const isBelieved = !useRemoteAddress || xffNumTrustedHops > 0
  return {
    ...(generateRequestId !== false && { 'x-request-id': ['(made by Envoy)'] }),
    ...{ 'x-forwarded-proto': [scheme] },
    ...headers,
    ...(!isBelieved && { 'x-forwarded-proto': [scheme] }),
  }
}

/** A request as the routes of a connection manager see it. */
function asRouted(request: SentRequest, manager: Manager, joins: boolean): RoutedRequest {
  const { normalizePath: normalizes, mergeSlashes, pathWithEscapedSlashesAction, stripTrailingHostDot } = manager
  const [, path = '/', query = ''] = /^([^?#]*)\??([^#]*)/.exec(request.path) ?? []
  const decodes = Number(pathWithEscapedSlashesAction) === 4
  const normalization = !normalizes ? 'NONE' : decodes ? 'DECODE_AND_MERGE_SLASHES' : mergeSlashes ? 'MERGE_SLASHES' : 'BASE'
  return {
    ...{ method: request.method, scheme: request.scheme, query },
    authority: stripTrailingHostDot ? request.host.replace(/\.(:\d+)?$/, '$1') : request.host,
    path: normalizePath(path, normalization),
    ...{ headers: withOwnHeaders(request, manager), joinsValues: joins },
  }
}

/** The routes that a connection leads to, with the virtual hosts that are resources of their own; undefined: the proxy does not have them. */
function tableOf(leadsTo: LeadsTo, sent: SentResources): RouteConfiguration | undefined {
  if (leadsTo.kind !== 'http') return undefined
  const { routeSpecifier } = leadsTo.manager
  if (routeSpecifier.case === 'routeConfig') return routeSpecifier.value
  const name = routeSpecifier.case === 'rds' ? routeSpecifier.value.routeConfigName : ''
  const table = sent.named(routeType, name, RouteConfigurationSchema)
  const own = sent.below(virtualHostType, `${name}/`, VirtualHostSchema)
  return table && (own.length === 0 ? table : { ...table, virtualHosts: [...table.virtualHosts, ...own] })
}

const authorityIn = ({ ignorePortInHostMatching }: RouteConfiguration, host: string): string =>
  ignorePortInHostMatching ? host.replace(/:\d+$/, '') : host

/** The routes that a request comes to, and the connection manager that has them. */
type Entered = Pick<Passed, 'manager' | 'table'> & Pick<RoutingInput, 'isGateway' | 'envoy'>

function routed(at: Unanswered, { table, manager, isGateway, envoy }: Entered, described: SentRequest, sent: SentResources): Routing {
  const request = asRouted(described, manager, joinsValues(envoy))
  const hosts = table.virtualHosts
  const found = hostFor(hosts, authorityIn(table, request.authority))
  const others = suggestion(
    request.authority,
    hosts.flatMap(({ domains }) => domains),
  )
  const unknown = `no service or VirtualService that the proxy sees has ${request.authority}${others}`
  if (!found) return { ...at, isKnown: false, status: 404, decidedBy: 'virtual host', reason: unknown }
  const isKnown = found.domain !== '*' || !/^(allow_any|block_all|blackhole:\d+)$/.test(found.host.name)
  const known = { ...at, isKnown, virtualHost: found.host.name, domain: found.domain }
  if (Number(found.host.requireTls) > 0 && request.scheme === 'http')
    return { ...known, status: 301, decidedBy: 'virtual host', reason: 'the Gateway redirects to https (tls.httpsRedirect)' }
  const routes = judged(found.host, request)
  const index = routes.findIndex(({ holds }) => holds)
  const older = envoy ? [] : whereJoined(judged(found.host, { ...request, joinsValues: true }), index)
  const told = { ...known, tried: triedRoutes(routes, index), untold: Math.max(0, routes.length - mostRoutes), changes: older }
  const taking = routes[index]
  if (!taking) return { ...told, status: 404, decidedBy: 'route', reason: isKnown ? 'no route matches' : unknown }
  const passed = { manager, table, host: found.host, route: taking.route }
  const { answer, changes, unjudged } = onTheWay(passed, request, isGateway, (name) => routedCluster({ name, weight: 1 }, sent, false).because)
  const way = { changes: [...older, ...changes], unjudged }
  if (answer) return { ...told, ...way, ...answer, decidedBy: 'route' }
  const decided = answered({ ...told, ...way }, taking.route, sent, isKnown ? '' : `${unknown}; `, described)
  const sentOn = (cluster: string) => ({ ...described, ...arriving(passed, cluster, request) })
  return { ...decided, arrivals: decided.arrivals.map((arrival) => ({ ...arrival, request: sentOn(arrival.cluster) })) }
}

/** What is said where an older Envoy would choose otherwise, and the release is not known. */
function whereJoined(routes: readonly JudgedRoute[], taking: number): string[] {
  const index = routes.findIndex(({ holds }) => holds)
  if (index === taking) return []
  const other = index < 0 ? 'no route would take it' : `route ${index + 1}${named(routes[index])} would take it`
  return [`${other} if the Envoy, whose release is not known, is older than 1.39 and compares the values of a header as one text`]
}

/** What a request is when it is sent to a cluster. */
function arriving(passed: Passed, cluster: string, request: RoutedRequest): Pick<DescribedRequest, 'method' | 'host' | 'path' | 'headers'> {
  const { method, authority, path, query, headers } = requestSentOn(passed, cluster, request)
  return { method, host: authority, path: query === '' ? path : `${path}?${query}`, headers }
}

/** The routes in order; one that would match too is taken before. */
function triedRoutes(routes: readonly JudgedRoute[], taking: number): TriedRoute[] {
  const before = Math.max(0, Math.min(taking - mostRoutes + 1, routes.length - mostRoutes))
  return routes.slice(before, before + mostRoutes).map(({ route, holds, because }, offset) => {
    const index = before + offset
    const shadowed = holds && index > taking ? `route ${taking + 1}${named(routes[taking])} takes the request before it` : because
    return {
      name: route.name,
      virtualService: virtualServiceOf(route),
      match: route.match ? toJsonString(RouteMatchSchema, route.match) : '',
      matched: index === taking,
      because: shadowed,
    }
  })
}

const named = (judged: JudgedRoute | undefined): string => (judged && judged.route.name !== '' ? ` (${judged.route.name})` : '')

/** The VirtualService that a route was made from, `<namespace>/<name>`; empty: none. */
function virtualServiceOf({ metadata }: Route): string {
  const path = (metadata?.filterMetadata.istio as JsonObject | undefined)?.config
  const [, namespace, name] = /\/namespaces\/([^/]+)\/virtual-service\/([^/]+)$/.exec(typeof path === 'string' ? path : '') ?? []
  return namespace === undefined ? '' : `${namespace}/${name}`
}

const redirectStatus = [301, 302, 303, 307, 308]

function answered(at: Unanswered, { action }: Route, sent: SentResources, unknown: string, request: SentRequest): Routing {
  switch (action.case) {
    case 'directResponse':
      return { ...at, status: action.value.status, decidedBy: 'route', reason: `${unknown}the route answers by itself` }
    case 'redirect':
      return { ...at, status: redirectStatus[Number(action.value.responseCode)] ?? 301, decidedBy: 'route', reason: `${unknown}the route redirects` }
    case 'route': {
      const { clusterSpecifier } = action.value
      if (clusterSpecifier.case === 'cluster')
        return sentTo(at, [{ name: clusterSpecifier.value, weight: 1 }], sent, unknown, { request, isTls: false })
      if (clusterSpecifier.case === 'weightedClusters')
        return sentTo(
          at,
          clusterSpecifier.value.clusters.map(({ name, weight }) => ({ name, weight: weight ?? 0 })),
          sent,
          unknown,
          { request, isTls: false },
        )
      return {
        ...at,
        status: 200,
        decidedBy: 'unknown',
        reason: `${unknown}how the route chooses a cluster is not known here (${clusterSpecifier.case ?? 'no cluster'})`,
      }
    }
    default:
      return { ...at, status: 200, decidedBy: 'unknown', reason: `${unknown}what the route does is not known here (${action.case ?? 'no action'})` }
  }
}

/** What is sent to clusters, and whether it is TLS of the client that is passed on as it came. */
interface Carried {
  readonly request: SentRequest
  readonly isTls: boolean
}

/** What becomes of a request that is sent to clusters. One of several that can take it decides. */
function sentTo(at: Unanswered, clusters: readonly WeightedCluster[], sent: SentResources, unknown: string, { request, isTls }: Carried): Routing {
  const listeners = sent.listeners()
  const hasAddress = listeners.some((each) => each.name === at.listener && isRedirected(each, listeners))
  const told = { ...at, clusters: clusters.map((each) => routedCluster(each, sent, hasAddress)) }
  const isHttp = at.routes !== ''
  const only = clusters[0]?.name
  if (only === passthrough && told.clusters[0]?.because === '')
    return { ...told, status: 200, decidedBy: 'cluster', reason: `${unknown}the connection is passed on to the address that it was opened to` }
  if (only === blackHole)
    return { ...told, status: 0, decidedBy: 'cluster', reason: `${unknown}what is unknown is not passed on (outboundTrafficPolicy REGISTRY_ONLY)` }
  const usable = told.clusters.filter(({ because, weight }) => because === '' && weight > 0)
  if (usable.length === 0)
    return {
      ...told,
      status: isHttp ? 503 : 0,
      decidedBy: 'cluster',
      reason: `${unknown}${[...new Set(told.clusters.map(({ because }) => because))].join('; ')}`,
    }
  const arrivals = usable.map(({ name, tls }) => ({
    ...{ cluster: name, request },
    endpoints: endpointsOf(name, sent, isTls ? request.sni : ''),
    tlsOf: [...(isTls ? (['client'] as const) : []), ...(isOwnTls(tls) ? (['proxy'] as const) : [])],
  }))
  return { ...told, arrivals, status: 200, decidedBy: 'destination', reason: `${unknown}${sentOn(usable)}` }
}

/** Where a request goes. Whether it is let in is decided there, by policies of the proxies of the destination. */
function sentOn(clusters: readonly RoutedCluster[]): string {
  const hosts = [...new Set(clusters.map(({ name }) => hostOf(clusterType, name) || name))]
  const more = hosts.length > mostHosts ? ` and ${hosts.length - mostHosts} more` : ''
  return `it is sent to ${hosts.slice(0, mostHosts).join(', ')}${more}`
}
