/** Translates rules of VirtualServices to `envoy.config.route.v3.Route` (docs/resources.md, R6 to R9, R14 to R18). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import {
  RedirectAction_RedirectResponseCode,
  type RetryPolicySchema,
  type RouteAction_HashPolicySchema,
  type RouteActionSchema,
  type RouteSchema,
} from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { CorsPolicySchema } from '../../../protocols/gen/envoy/extensions/filters/http/cors/v3/cors_pb.js'
import { HTTPFaultSchema } from '../../../protocols/gen/envoy/extensions/filters/http/fault/v3/fault_pb.js'
import { PreviousHostsPredicateSchema } from '../../../protocols/gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js'
import { PreviousPrioritiesConfigSchema } from '../../../protocols/gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.js'
import type { HttpMatch, HttpRoute } from '../../config/kinds/virtual-service.ts'
import { type HeaderChanges, type HeaderOperations, isAuthority, isFixed } from '../../config/shapes/headers.ts'
import type { Destination } from '../../config/shapes/hosts.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import type { MergedRule } from '../../snapshot/destination-rules.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import { policyFor } from '../clusters/traffic-policy.ts'
import { durationOf, pack } from '../message.ts'
import { destinationCluster, destinationPort } from '../names.ts'
import { appliesToRequests, isCatchAll, matchAll, type Place, routeMatch, stringMatcher, tooLarge, tooLargeIn, withoutPlace } from './matches.ts'

/** The initial fields of a route. */
export type RouteInit = MessageInitShape<typeof RouteSchema>
type RouteAction = MessageInitShape<typeof RouteActionSchema>
type RetryPolicy = MessageInitShape<typeof RetryPolicySchema>
type HashPolicy = MessageInitShape<typeof RouteAction_HashPolicySchema>

/** The context of routes: where they apply, and what they may refer to. */
export interface RouteContext extends Place {
  readonly snapshot: MeshSnapshot
  /** Whether TLS of the requests is terminated by this proxy. */
  readonly secure?: boolean
  /** The maximum program size of a regular expression that the proxies accept. */
  readonly largestProgram: number
  /** Called with the reason if a route, or a part of one, is left out. */
  leftOut(virtualService: ResolvedVirtualService, reason: string): void
  service(host: string): ServiceState | undefined
  rule(state: ServiceState): MergedRule | undefined
}

/** Returns the routes of a VirtualService in order. The list ends at a rule that matches every request. */
export function routesOf(service: ResolvedVirtualService, context: RouteContext): RouteInit[] {
  const routes: RouteInit[] = []
  const isTooLarge = (rule: HttpRoute, index: number, match: HttpMatch | undefined) => {
    const reason = tooLargeIn(rule, match, context.largestProgram)
    if (reason) context.leftOut(service, `http[${index}].${reason}`)
    return reason !== undefined
  }
  for (const [index, rule] of service.http.entries()) {
    if (!rule.match?.length) {
      if (!isTooLarge(rule, index, undefined)) routes.push(routeOf(rule, undefined, service, context))
      return routes
    }
    for (const match of rule.match) {
      if (!appliesToRequests(match, context) || isTooLarge(rule, index, match)) continue
      routes.push(routeOf(rule, match, service, context))
      if (isCatchAll(withoutPlace(match))) return routes
    }
  }
  return routes
}

function routeOf(rule: HttpRoute, match: HttpMatch | undefined, service: ResolvedVirtualService, context: RouteContext): RouteInit {
  const only = rule.route?.length === 1 ? rule.route[0] : undefined
  const route: RouteInit = {
    name: [rule.name, match?.name].filter(Boolean).join('.'),
    match: routeMatch(match),
    statPrefix: match?.statPrefix ?? '',
    metadata: {
      filterMetadata: {
        istio: {
          config: `/apis/networking.${context.snapshot.settings.names.domain}/v1alpha3/namespaces/${service.namespace}/virtual-service/${service.name}`,
        },
      },
    },
    ...headerFields([rule.headers, only?.headers]),
    typedPerFilterConfig: filterConfigs(rule, service, context),
  }
  if (rule.redirect) route.action = { case: 'redirect', value: redirectOf(rule.redirect, context) }
  else if (rule.directResponse) {
    const body = rule.directResponse.body
    const content =
      body?.bytes !== undefined
        ? { case: 'inlineBytes' as const, value: new Uint8Array(Buffer.from(body.bytes, 'base64')) }
        : { case: 'inlineString' as const, value: body?.string ?? '' }
    route.action = { case: 'directResponse', value: { status: rule.directResponse.status, ...(body ? { body: { specifier: content } } : {}) } }
  } else {
    route.action = { case: 'route', value: routeActionOf(rule, context) }
    const destination = rule.route?.[0]?.destination
    route.decorator = { operation: `${destination?.host ?? ''}:${destination ? portOf(destination, context) : context.port}/*` }
  }
  return route
}

/** Returns the cluster of a destination. */
export function clusterOf(destination: Destination, context: RouteContext): string {
  return destinationCluster(destination, context.port, context.service)
}

const portOf = (destination: Destination, context: RouteContext): number => destinationPort(destination, context.port, context.service)

function routeActionOf(rule: HttpRoute, context: RouteContext): RouteAction {
  const targets = (rule.route ?? []).filter((entry, _, all) => all.length === 1 || (entry.weight ?? 0) > 0)
  const features = context.snapshot.settings.features
  const timeout = rule.timeout ?? features.MESH_DEFAULT_REQUEST_TIMEOUT
  const hashPolicy = distinct(targets.flatMap(({ destination }) => hashPolicyOf(destination, context)))
  const action: RouteAction = {
    ...timeouts(timeout),
    ...retryField(rule, targets.length === 1 && hashPolicy.length > 0),
    requestMirrorPolicies: mirrorsOf(rule, context),
    hashPolicy,
    ...rewriteFields(rule),
  }
  const [only] = rule.route ?? []
  if (only && rule.route?.length === 1) {
    action.clusterSpecifier = { case: 'cluster', value: clusterOf(only.destination, context) }
  } else {
    const clusters = targets.map((target) => ({
      name: clusterOf(target.destination, context),
      weight: target.weight ?? 0,
      ...headerFields([target.headers]),
      ...hostRewrite(authorityOf(target.headers)),
    }))
    action.clusterSpecifier = { case: 'weightedClusters', value: { clusters } }
  }
  return action
}

/**
 * Returns timeouts in milliseconds, 0: none. A timeout that a gRPC client requests is limited to this one. `max_stream_duration` is not
 * used, since Envoy would then ignore `timeout`.
 */
const timeouts = (timeout: number) => ({ timeout: durationOf(timeout), maxGrpcTimeout: durationOf(timeout) })

function rewriteFields({ rewrite, headers, route }: HttpRoute) {
  const regex = rewrite?.uriRegexRewrite
  const path = regex
    ? { regexRewrite: { pattern: { regex: regex.match }, substitution: regex.rewrite } }
    : rewrite?.uri !== undefined
      ? { prefixRewrite: rewrite.uri }
      : {}
  const host = rewrite?.authority || authorityOf(headers) || (route?.length === 1 ? authorityOf(route[0]?.headers) : '')
  return { ...path, ...hostRewrite(host) }
}

const hostRewrite = (host: string) => (host ? { hostRewriteSpecifier: { case: 'hostRewriteLiteral' as const, value: host } } : {})

/** Returns the host that header changes give to requests; empty for none. Headers to set take precedence over headers to add. */
function authorityOf(headers: HeaderChanges | undefined): string {
  const { set = {}, add = {} } = headers?.request ?? {}
  return [...Object.entries(set), ...Object.entries(add)].find(([name, host]) => isAuthority(name) && host !== '')?.[1] ?? ''
}

const redirectCodes: Readonly<Record<number, RedirectAction_RedirectResponseCode>> = {
  301: RedirectAction_RedirectResponseCode.MOVED_PERMANENTLY,
  302: RedirectAction_RedirectResponseCode.FOUND,
  303: RedirectAction_RedirectResponseCode.SEE_OTHER,
  307: RedirectAction_RedirectResponseCode.TEMPORARY_REDIRECT,
  308: RedirectAction_RedirectResponseCode.PERMANENT_REDIRECT,
}

function redirectOf(redirect: NonNullable<HttpRoute['redirect']>, { port, secure }: RouteContext) {
  const asked = redirect.derivePort === 'FROM_REQUEST_PORT' ? port : redirect.port
  // The default port of the scheme is left out (RFC 9110, section 4.2).
  const usual = (redirect.scheme || (secure ? 'https' : 'http')) === 'https' ? 443 : 80
  return {
    hostRedirect: redirect.authority ?? '',
    ...(redirect.prefixRewrite
      ? { pathRewriteSpecifier: { case: 'prefixRewrite' as const, value: redirect.prefixRewrite } }
      : redirect.uri !== undefined
        ? { pathRewriteSpecifier: { case: 'pathRedirect' as const, value: redirect.uri } }
        : {}),
    ...(redirect.scheme ? { schemeRewriteSpecifier: { case: 'schemeRedirect' as const, value: redirect.scheme } } : {}),
    ...(asked !== undefined && asked !== usual ? { portRedirect: asked } : {}),
    responseCode: redirectCodes[redirect.redirectCode ?? 301] ?? RedirectAction_RedirectResponseCode.MOVED_PERMANENTLY,
  }
}

const previousHosts = (() => {
  let made: Any | undefined
  return () => (made ??= pack(PreviousHostsPredicateSchema, {}))
})()

/** Returns the retry policy of routes without retry settings: two retries, on other hosts. */
export function defaultRetryPolicy(): RetryPolicy {
  return {
    numRetries: 2,
    retryOn: 'connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes',
    retriableStatusCodes: [503],
    retryHostPredicate: [{ name: 'envoy.retry_host_predicates.previous_hosts', configType: { case: 'typedConfig', value: previousHosts() } }],
    hostSelectionRetryMaxAttempts: 5n,
  }
}

function retryField(rule: HttpRoute, isHashed: boolean): { retryPolicy?: RetryPolicy } {
  const retries = rule.retries
  // If a hash selects the host, a retry on another host would miss the state that the client's earlier requests left on the first.
  const initial = isHashed ? { ...defaultRetryPolicy(), retryHostPredicate: [] } : defaultRetryPolicy()
  if (!retries) return { retryPolicy: initial }
  if ((retries.attempts ?? 0) === 0) return {}
  const policy = initial
  policy.numRetries = retries.attempts ?? 2
  if (retries.retryOn) {
    const conditions = retries.retryOn
      .split(',')
      .map((entry) => entry.trim())
      .filter(Boolean)
    const codes = conditions.filter((entry) => /^\d+$/.test(entry)).map(Number)
    const names = conditions.filter((entry) => !/^\d+$/.test(entry))
    if (codes.length > 0 && !names.includes('retriable-status-codes')) names.push('retriable-status-codes')
    policy.retryOn = names.join(',')
    policy.retriableStatusCodes = codes
  }
  if (retries.perTryTimeout !== undefined) policy.perTryTimeout = durationOf(retries.perTryTimeout)
  if (retries.retryIgnorePreviousHosts === false) policy.retryHostPredicate = []
  if (retries.backoff !== undefined) policy.retryBackOff = { baseInterval: durationOf(retries.backoff) }
  if (retries.retryRemoteLocalities) {
    policy.retryPriority = {
      name: 'envoy.retry_priorities.previous_priorities',
      configType: { case: 'typedConfig', value: pack(PreviousPrioritiesConfigSchema, { updateFrequency: 2 }) },
    }
  }
  return { retryPolicy: policy }
}

function mirrorsOf(rule: HttpRoute, context: RouteContext) {
  const single = rule.mirror
    ? [
        {
          destination: rule.mirror,
          percentage: rule.mirrorPercentage ?? (rule.mirrorPercent !== undefined ? { value: rule.mirrorPercent } : undefined),
        },
      ]
    : []
  return [...single, ...(rule.mirrors ?? [])]
    .map(({ destination, percentage }) => ({ destination, percent: percentage ? (percentage.value ?? 0) : 100 }))
    .filter(({ percent }) => percent > 0)
    .map(({ destination, percent }) => ({
      cluster: clusterOf(destination, context),
      runtimeFraction: { defaultValue: fraction(percent) },
      traceSampled: false,
    }))
}

/** Returns a percentage with a precision of four decimals. */
function fraction(percent: number) {
  return { numerator: Math.round(percent * 10_000), denominator: 2 }
}

/** Returns the policies without repetitions, since several destinations may use the same hash. */
function distinct(policies: readonly HashPolicy[]): HashPolicy[] {
  const byText = new Map(
    policies.map((policy) => [JSON.stringify(policy, (_, value) => (typeof value === 'bigint' ? String(value) : value)), policy]),
  )
  return [...byText.values()]
}

function hashPolicyOf(destination: Destination, context: RouteContext): HashPolicy[] {
  const state = context.service(destination.host)
  const rule = state && context.rule(state)
  if (!rule) return []
  const subset = rule.subsets.find((entry) => entry.name === destination.subset)
  const hash = policyFor(rule, subset, portOf(destination, context)).loadBalancer?.consistentHash
  if (hash?.httpHeaderName) return [{ policySpecifier: { case: 'header', value: { headerName: hash.httpHeaderName } } }]
  if (hash?.httpCookie) {
    const { name, path = '', ttl, attributes = [] } = hash.httpCookie
    return [{ policySpecifier: { case: 'cookie', value: { name, path, ...(ttl !== undefined ? { ttl: durationOf(ttl) } : {}), attributes } } }]
  }
  if (hash?.useSourceIp) return [{ policySpecifier: { case: 'connectionProperties', value: { sourceIp: true } } }]
  return hash?.httpQueryParameterName ? [{ policySpecifier: { case: 'queryParameter', value: { name: hash.httpQueryParameterName } } }] : []
}

/** Returns header changes in the given order, without pseudo headers and the host ({@link isFixed}). */
function headerFields(changes: readonly (HeaderChanges | undefined)[]) {
  const entries = (values: Readonly<Record<string, string>> | undefined, appendAction: number) =>
    Object.entries(values ?? {})
      .filter(([key]) => !isFixed(key))
      .map(([key, value]) => ({ header: { key, value }, appendAction }))
  const options = (operations: HeaderOperations | undefined) => [...entries(operations?.set, 2), ...entries(operations?.add, 0)]
  const removed = (operations: HeaderOperations | undefined) => (operations?.remove ?? []).filter((key) => !isFixed(key))
  if (changes.every((headers) => !headers)) return {}
  return {
    requestHeadersToAdd: changes.flatMap((headers) => options(headers?.request)),
    requestHeadersToRemove: changes.flatMap((headers) => removed(headers?.request)),
    responseHeadersToAdd: changes.flatMap((headers) => options(headers?.response)),
    responseHeadersToRemove: changes.flatMap((headers) => removed(headers?.response)),
  }
}

function filterConfigs(rule: HttpRoute, service: ResolvedVirtualService, context: RouteContext): Record<string, Any> {
  const configs: Record<string, Any> = {}
  const injected = faultOf(rule)
  if (injected) configs['envoy.filters.http.fault'] = pack(HTTPFaultSchema, injected)
  const cors = rule.corsPolicy
  if (cors) {
    const origins = cors.allowOrigins ?? (cors.allowOrigin ?? []).map((exact) => (exact === '*' ? { regex: '.*' } : { exact }))
    const fitting = origins.filter((origin) => {
      const reason = tooLarge(origin, 'corsPolicy.allowOrigins.regex', context.largestProgram)
      if (reason) context.leftOut(service, reason)
      return reason === undefined
    })
    configs['envoy.filters.http.cors'] = pack(CorsPolicySchema, {
      allowOriginStringMatch: fitting.map(stringMatcher),
      allowMethods: (cors.allowMethods ?? []).join(','),
      allowHeaders: (cors.allowHeaders ?? []).join(','),
      exposeHeaders: (cors.exposeHeaders ?? []).join(','),
      ...(cors.maxAge !== undefined ? { maxAge: String(Math.round(cors.maxAge / 1000)) } : {}),
      ...(cors.allowCredentials !== undefined ? { allowCredentials: cors.allowCredentials } : {}),
      ...(cors.unmatchedPreflights === 'IGNORE' ? { forwardNotMatchingPreflights: false } : {}),
    })
  }
  return configs
}

/** Returns the faults that a rule injects; undefined if none applies to any share of the requests. */
function faultOf({ fault }: HttpRoute): MessageInitShape<typeof HTTPFaultSchema> | undefined {
  const { delay, abort } = fault ?? {}
  const delayed = delay?.percentage ? (delay.percentage.value ?? 0) : (delay?.percent ?? 0)
  const aborted = abort?.percentage?.value ?? 0
  const error =
    abort?.httpStatus !== undefined
      ? { case: 'httpStatus' as const, value: abort.httpStatus }
      : abort?.grpcStatus !== undefined
        ? { case: 'grpcStatus' as const, value: abort.grpcStatus }
        : undefined
  const injected = {
    ...(delay?.fixedDelay !== undefined && delayed > 0
      ? { delay: { faultDelaySecifier: { case: 'fixedDelay' as const, value: durationOf(delay.fixedDelay) }, percentage: fraction(delayed) } }
      : {}),
    ...(error && aborted > 0 ? { abort: { errorType: error, percentage: fraction(aborted) } } : {}),
  }
  return injected.delay || injected.abort ? injected : undefined
}

/** Returns the only route of a service without a VirtualService. */
export function defaultRoute(cluster: string, operation: string, state: ServiceState | undefined, context: RouteContext): RouteInit {
  const timeout = context.snapshot.settings.features.MESH_DEFAULT_REQUEST_TIMEOUT
  return {
    name: 'default',
    match: matchAll,
    decorator: { operation },
    action: {
      case: 'route',
      value: {
        clusterSpecifier: { case: 'cluster', value: cluster },
        ...timeouts(timeout),
        retryPolicy: defaultRetryPolicy(),
        hashPolicy: state ? hashPolicyOf({ host: state.service.hostname, port: { number: context.port } }, context) : [],
      },
    },
  }
}
