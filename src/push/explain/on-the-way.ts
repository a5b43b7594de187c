/**
 * What a proxy does with a request by the settings of its route and by the filters before it: answers in place of the destination, delays,
 * changes and copies. Filters whose work is not known here are named.
 */
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { type Any, type Duration, durationMs } from '@bufbuild/protobuf/wkt'
import type { HeaderValueOption } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import type {
  Route,
  RouteAction,
  VirtualHost,
  WeightedCluster_ClusterWeight,
} from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { RouteConfiguration } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { CorsPolicySchema, CorsSchema } from '../../../protocols/gen/envoy/extensions/filters/http/cors/v3/cors_pb.js'
import { ExtAuthzSchema } from '../../../protocols/gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.js'
import { type HTTPFault, HTTPFaultSchema } from '../../../protocols/gen/envoy/extensions/filters/http/fault/v3/fault_pb.js'
import { FilterConfigSchema as GrpcStatsSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.js'
import { GrpcWebSchema } from '../../../protocols/gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.js'
import { JwtAuthenticationSchema } from '../../../protocols/gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.js'
import { RBACSchema } from '../../../protocols/gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.js'
import { RouterSchema } from '../../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import type { HttpConnectionManager } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import type { FractionalPercent } from '../../../protocols/gen/envoy/type/v3/percent_pb.js'
import { codeName } from '../../model/status-codes.ts'
import { hostOf } from '../../xds/names.ts'
import { defaultRetryPolicy } from '../../xds/routes/http-routes.ts'
import { clusterType } from '../../xds/type-urls.ts'
import { onText, type RoutedRequest, replaced } from './matched-route.ts'

/** The places that a request passes, from the listener to its route. */
export interface Passed {
  readonly manager: HttpConnectionManager
  readonly table: RouteConfiguration
  readonly host: VirtualHost
  readonly route: Route
}

/** What happens on the way. */
export interface OnTheWay {
  /** What the client receives of a filter before the route does its part; undefined: the route decides. */
  readonly answer: { readonly status: number; readonly reason: string } | undefined
  /** What is done with the request and the answer of the destination. */
  readonly changes: readonly string[]
  /** The filters that may answer or change the request, and whose work is not known here. */
  readonly unjudged: readonly string[]
}

const faultName = 'envoy.filters.http.fault'
const corsName = 'envoy.filters.http.cors'

/** The filters whose work is told here, or that only count. */
const judgedFilters: ReadonlySet<string> = new Set(
  [CorsSchema, HTTPFaultSchema, RouterSchema, GrpcWebSchema, GrpcStatsSchema].map(({ typeName }) => typeName),
)
/** The filters of policies, by name: gateways have them, and their policies are judged by themselves. */
const policyFilters: ReadonlyMap<string, string> = new Map([
  ['envoy.filters.http.rbac', RBACSchema.typeName],
  ['envoy.filters.http.ext_authz', ExtAuthzSchema.typeName],
  ['envoy.filters.http.jwt_authn', JwtAuthenticationSchema.typeName],
])

/** Says what happens to a request on the way through a proxy. `unreached`: why a cluster can take no request; empty: it can. */
export function onTheWay(passed: Passed, request: RoutedRequest, isGateway: boolean, unreached: (cluster: string) => string): OnTheWay {
  const { action } = passed.route
  const fault = faultOf(passed)
  const cors = action.case === 'route' ? configOf(passed, corsName, CorsPolicySchema) : undefined
  const preflight = cors?.config && preflightAnswer(cors.config.allowOriginStringMatch, cors.config.forwardNotMatchingPreflights, request)
  const { answer, changes } = faultEffects(fault?.config)
  return {
    answer: preflight ?? answer,
    changes: [...(preflight ? [] : changes), ...(action.case === 'route' ? actionChanges(passed, action.value, request, unreached) : [])],
    unjudged: [...unjudgedFilters(passed.manager, isGateway), ...[fault, cors].flatMap((found) => (found?.isUnknown ? [found.name] : []))],
  }
}

interface FoundConfig<Config> {
  readonly name: string
  /** Undefined: it is of a form that is not known here. */
  readonly config: Config | undefined
  readonly isUnknown: boolean
}

/** The settings of a filter for a route: the closest count. Undefined: it has none, or the listener does not have the filter. */
function configOf<Schema extends DescMessage>(
  { manager, table, host, route }: Passed,
  name: string,
  schema: Schema,
): FoundConfig<MessageShape<Schema>> | undefined {
  if (!manager.httpFilters.some((filter) => filter.name === name && !filter.disabled)) return undefined
  const packed = [route, host, table].map(({ typedPerFilterConfig }) => typedPerFilterConfig[name]).find((config) => config !== undefined)
  if (!packed) return undefined
  const config = typeOf(packed) === schema.typeName ? fromBinary(schema, packed.value) : undefined
  return { name, config, isUnknown: config === undefined }
}

/** The faults of a route. Those with conditions of their own, which only patches have, are not known here. */
function faultOf(passed: Passed): FoundConfig<HTTPFault> | undefined {
  const found = configOf(passed, faultName, HTTPFaultSchema)
  const { upstreamCluster = '', headers = [], downstreamNodes = [], maxActiveFaults } = found?.config ?? {}
  const hasConditions = upstreamCluster !== '' || headers.length > 0 || downstreamNodes.length > 0 || maxActiveFaults !== undefined
  return found && hasConditions ? { ...found, config: undefined, isUnknown: true } : found
}

const typeOf = ({ typeUrl }: Any): string => typeUrl.slice(typeUrl.lastIndexOf('/') + 1)

function unjudgedFilters({ httpFilters }: HttpConnectionManager, isGateway: boolean): string[] {
  return httpFilters
    .filter(({ name, disabled, configType }) => {
      const type = configType.case === 'typedConfig' ? typeOf(configType.value) : ''
      return !disabled && !judgedFilters.has(type) && !(isGateway && policyFilters.get(name) === type)
    })
    .map(({ name }) => name)
}

/** The share of requests, in percent. */
function percentOf(share: FractionalPercent | undefined): number {
  const { numerator = 0, denominator = 0 } = share ?? {}
  return Math.min(100, (numerator * 100) / ([100, 10_000, 1_000_000][Number(denominator)] ?? 100))
}

const shareText = (percent: number): string => (percent >= 100 ? 'all requests' : `${percent} % of the requests`)

const spanText = (duration: Duration | undefined): string => `${(duration ? durationMs(duration) : 0) / 1000} s`

/** What the faults of a route do. Each request that is aborted waits before, if it is among those that are delayed. */
function faultEffects(fault: HTTPFault | undefined): Pick<OnTheWay, 'answer' | 'changes'> {
  const { delay, abort } = fault ?? {}
  const delayed = delay?.faultDelaySecifier.case === 'fixedDelay' ? percentOf(delay.percentage) : 0
  const aborted = percentOf(abort?.percentage)
  const error = abort?.errorType
  const status = error?.case === 'httpStatus' ? error.value : error?.case === 'grpcStatus' ? 200 : 0
  const shown = error?.case === 'grpcStatus' ? `the gRPC status ${error.value} (${codeName(error.value)})` : String(status)
  const waits =
    delayed > 0 ? [`${shareText(delayed)} wait ${spanText(delay?.faultDelaySecifier.value as Duration)} first (fault.delay of the route)`] : []
  if (status === 0 || aborted === 0) return { answer: undefined, changes: waits }
  if (aborted >= 100) return { answer: { status, reason: `the route answers all requests with ${shown} (fault.abort)` }, changes: waits }
  return { answer: undefined, changes: [...waits, `${shareText(aborted)} are answered with ${shown} (fault.abort of the route)`] }
}

/** What the proxy answers to the preflight request of a browser; undefined: it is none, or is sent on. */
function preflightAnswer(
  origins: Parameters<typeof onText>[0][],
  forwards: boolean | undefined,
  { method, headers }: RoutedRequest,
): OnTheWay['answer'] {
  const [origin, asked] = ['origin', 'access-control-request-method'].map((name) => headers[name]?.join(',') ?? '') as [string, string]
  if (method !== 'OPTIONS' || origin === '' || asked === '') return undefined
  const isAllowed = origins.some((matcher) => onText(matcher, origin).holds)
  if (isAllowed) return { status: 200, reason: `the route answers preflight requests, and allows origin ${origin} (corsPolicy)` }
  if (forwards !== false) return undefined
  return { status: 200, reason: `the route answers preflight requests, and does not allow origin ${origin} (corsPolicy): browsers refuse` }
}

/** What a route that sends requests on does with them. */
function actionChanges(
  { table, host, route }: Passed,
  action: RouteAction,
  request: RoutedRequest,
  unreached: (cluster: string) => string,
): string[] {
  const targets = action.clusterSpecifier.case === 'weightedClusters' ? action.clusterSpecifier.value.clusters : []
  const places = [...targets, route, host, table]
  const path = pathSentOn(route, action, request)
  const hosts = [...new Set([action, ...targets].map(literalHost).filter(Boolean))]
  const timeout = action.timeout ? durationMs(action.timeout) : 15_000
  return [
    ...(path === request.path ? [] : [`the path is sent as ${path}`]),
    ...(hosts.length === 0 ? [] : [`the host is sent as ${hosts.join(' or ')}`]),
    ...headerChanges(
      'request',
      places.flatMap(({ requestHeadersToAdd }) => requestHeadersToAdd),
      places.flatMap(({ requestHeadersToRemove }) => requestHeadersToRemove),
    ),
    ...headerChanges(
      'response',
      places.flatMap(({ responseHeadersToAdd }) => responseHeadersToAdd),
      places.flatMap(({ responseHeadersToRemove }) => responseHeadersToRemove),
    ),
    ...action.requestMirrorPolicies.map(({ cluster, runtimeFraction }) => {
      const share = runtimeFraction ? percentOf(runtimeFraction.defaultValue) : 100
      const because = unreached(cluster)
      if (because !== '') return `nothing is mirrored: ${because} (mirror)`
      return `${shareText(share)} are sent to ${hostOf(clusterType, cluster) || cluster} too, whose answers do not count (mirror)`
    }),
    ...(timeout === 0 ? [] : [`the client receives 504 when there is no answer within ${timeout / 1000} s (timeout)`]),
    ...retryText(action),
  ]
}

/** The host that a route or a destination writes into requests; empty: none. */
const literalHost = ({ hostRewriteSpecifier }: RouteAction | WeightedCluster_ClusterWeight): string =>
  hostRewriteSpecifier.case === 'hostRewriteLiteral' ? hostRewriteSpecifier.value : ''

function headerChanges(side: string, added: readonly HeaderValueOption[], removed: readonly string[]): string[] {
  const names = (list: readonly string[]) => [...new Set(list)].join(', ')
  const set = names(added.flatMap(({ header }) => header?.key ?? []))
  return [
    ...(set === '' ? [] : [`${side} headers are set: ${set}`]),
    ...(removed.length === 0 ? [] : [`${side} headers are removed: ${names(removed)}`]),
  ]
}

/** The retries of a route, where they are not those of routes without settings. */
function retryText({ retryPolicy }: RouteAction): string[] {
  if (!retryPolicy) return ['failed requests are not tried again (retries)']
  const usual = defaultRetryPolicy()
  const { numRetries = 1, retryOn, perTryTimeout } = retryPolicy
  const each = perTryTimeout ? `, ${spanText(perTryTimeout)} each` : ''
  if (numRetries === usual.numRetries && retryOn === usual.retryOn && each === '') return []
  return [`failed requests are tried up to ${numRetries} more times${each}, on ${retryOn} (retries)`]
}

/** The path that a route sends on, without the query. */
function pathSentOn({ match }: Route, { prefixRewrite, regexRewrite }: RouteAction, { path }: RoutedRequest): string {
  if (regexRewrite) return replaced(regexRewrite.pattern?.regex ?? '', regexRewrite.substitution, path)
  const { case: kind, value } = match?.pathSpecifier ?? {}
  if (prefixRewrite === '') return path
  return kind === 'prefix' || kind === 'pathSeparatedPrefix' ? prefixRewrite + path.slice((value as string).length) : prefixRewrite
}
/** A request as a destination of a route receives it, as far as the route changes it. A header whose value is made by Envoy is left out. */
export function requestSentOn({ table, host, route }: Passed, cluster: string, request: RoutedRequest): RoutedRequest {
  if (route.action.case !== 'route') return request
  const action = route.action.value
  const targets = action.clusterSpecifier.case === 'weightedClusters' ? action.clusterSpecifier.value.clusters : []
  const target = targets.find(({ name }) => name === cluster)
  const places = [...(target ? [target] : []), route, host, table]
  const headers: Record<string, readonly string[]> = { ...request.headers }
  for (const { requestHeadersToAdd, requestHeadersToRemove } of places) {
    for (const name of requestHeadersToRemove) delete headers[name.toLowerCase()]
    for (const { header, appendAction } of requestHeadersToAdd)
      addHeader(headers, header?.key.toLowerCase() ?? '', header?.value ?? '', Number(appendAction))
  }
  return {
    ...request,
    headers,
    path: pathSentOn(route, action, request),
    authority: literalHost(action) || (target && literalHost(target)) || request.authority,
  }
}

/** Adds a header as `envoy.config.core.v3.HeaderValueOption.HeaderAppendAction` says: 0 appends, 1 adds what is not there, 3 overwrites what is, 2 does either. */
function addHeader(headers: Record<string, readonly string[]>, name: string, value: string, action: number): void {
  const before = headers[name]
  if ((action === 1 && before !== undefined) || (action === 3 && before === undefined)) return
  if (value.includes('%')) delete headers[name]
  else headers[name] = action === 0 && before !== undefined ? [...before, value] : [value]
}
