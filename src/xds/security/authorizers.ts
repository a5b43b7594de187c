/** External authorizers that CUSTOM policies name, from `extensionProviders` of the mesh configuration (docs/resources.md, A9). */
import { isStandIn } from '../../config/stand-in.ts'
import { patternOf } from '../../policy/patterns.ts'
import { providerNamed } from '../../snapshot/authorizer-providers.ts'
import type { AuthorizationPolicy } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf } from '../message.ts'
import { outboundCluster } from '../names.ts'

/** An authorizer to which requests can be sent. */
export interface Authorizer {
  readonly kind: 'http' | 'grpc'
  readonly cluster: string
  readonly host: string
  readonly port: number
  /** Whether requests are allowed if the authorizer does not answer. */
  readonly failOpen: boolean
  /** The status of a denied request if the authorizer does not answer. */
  readonly statusOnError: number | undefined
  readonly pathPrefix: string
  /** The timeout of a check, in milliseconds. */
  readonly timeoutMs: number
  /** Whether the route is selected again after the authorizer has changed the request. */
  readonly clearRouteCache: boolean
  /** The part of the body that is sent to the authorizer; undefined: none. */
  readonly body: { readonly maxRequestBytes: number; readonly allowPartialMessage?: boolean; readonly packAsBytes?: boolean } | undefined
  readonly includeHeadersInCheck: readonly string[]
  readonly additionalHeaders: Readonly<Record<string, string>>
  readonly headersToDownstreamOnAllow: readonly string[]
  readonly headersToUpstreamOnAllow: readonly string[]
  readonly headersToDownstreamOnDeny: readonly string[]
}

/** The timeout of a check if the provider sets none, in milliseconds. */
const checkTimeoutMs = 600_000

/** The reason why a workload has no authorizer. */
interface NoAuthorizer {
  readonly reason: string
  /** Set if the fault was already reported when policies and mesh configuration were read. */
  readonly isReported?: true
}

/** Returns the authorizer of a workload, of which there can be only one, or the reason why there is none. */
export function authorizerOf(policies: readonly AuthorizationPolicy[], snapshot: MeshSnapshot): Authorizer | NoAuthorizer {
  const names = [...new Set(policies.map((policy) => (isStandIn(policy) ? '' : (policy.spec.provider?.name ?? ''))))]
  if (names.length > 1) return { reason: `policies name different providers: ${names.join(', ')}` }
  const [name = ''] = names
  const provider = providerNamed(snapshot.mesh, name)
  if ('reason' in provider) return { ...provider, isReported: true }
  const { http, given } = provider
  const slash = given.service.indexOf('/')
  const host = given.service.slice(slash + 1)
  const namespace = slash < 0 ? undefined : given.service.slice(0, slash)
  const state = snapshot.services.get(host)?.find(({ service }) => namespace === undefined || service.namespace === namespace)
  if (!state) return { reason: `extension provider ${JSON.stringify(name)}: there is no service ${given.service}` }
  if (!state.service.ports.some((port) => port.number === given.port))
    return { reason: `extension provider ${JSON.stringify(name)}: ${given.service} has no port ${given.port}` }
  const status = given.statusOnError === undefined ? undefined : Number(given.statusOnError)
  return {
    kind: http ? 'http' : 'grpc',
    cluster: outboundCluster(given.port, '', host),
    host,
    port: given.port,
    failOpen: given.failOpen ?? false,
    statusOnError: status,
    pathPrefix: http?.pathPrefix ?? '',
    timeoutMs: given.timeout ?? checkTimeoutMs,
    clearRouteCache: given.clearRouteCache ?? false,
    body: given.includeRequestBodyInCheck,
    // The second field is the former name of the first.
    includeHeadersInCheck: http?.includeRequestHeadersInCheck?.length ? http.includeRequestHeadersInCheck : (http?.includeHeadersInCheck ?? []),
    additionalHeaders: http?.includeAdditionalHeadersInCheck ?? {},
    headersToDownstreamOnAllow: http?.headersToDownstreamOnAllow ?? [],
    headersToUpstreamOnAllow: http?.headersToUpstreamOnAllow ?? [],
    headersToDownstreamOnDeny: http?.headersToDownstreamOnDeny ?? [],
  }
}

/** Returns an `envoy.config.core.v3.GrpcService`. The authority of gRPC requests must not contain `|`. */
export function grpcAuthorizer({ cluster, timeoutMs }: Authorizer) {
  return {
    targetSpecifier: { case: 'envoyGrpc' as const, value: { clusterName: cluster, authority: cluster.replaceAll('|', '_.') } },
    timeout: durationOf(timeoutMs),
  }
}

/** Returns an `envoy.extensions.filters.http.ext_authz.v3.HttpService`. */
export function httpAuthorizer(authorizer: Authorizer) {
  const { cluster, host, port, pathPrefix, timeoutMs, includeHeadersInCheck, additionalHeaders } = authorizer
  const { headersToUpstreamOnAllow, headersToDownstreamOnDeny, headersToDownstreamOnAllow } = authorizer
  const headersToAdd = Object.entries(additionalHeaders).map(([key, value]) => ({ key, value }))
  return {
    serverUri: { uri: `http://${host}:${port}`, httpUpstreamType: { case: 'cluster' as const, value: cluster }, timeout: durationOf(timeoutMs) },
    pathPrefix,
    ...(includeHeadersInCheck.length + headersToAdd.length > 0
      ? { authorizationRequest: { ...ifAny('allowedHeaders', includeHeadersInCheck), headersToAdd } }
      : {}),
    authorizationResponse: {
      ...ifAny('allowedUpstreamHeaders', headersToUpstreamOnAllow),
      ...ifAny('allowedClientHeaders', headersToDownstreamOnDeny),
      ...ifAny('allowedClientHeadersOnSuccess', headersToDownstreamOnAllow),
    },
  }
}

/** Returns a field with an `envoy.type.matcher.v3.ListStringMatcher` of header names, `x`, `x*` or `*x`; empty if there are none. */
function ifAny<Field extends string>(field: Field, names: readonly string[]) {
  const patterns = names.map((name) => {
    const pattern = patternOf(name)
    // Envoy does not support case-insensitive regular expressions.
    if (pattern.kind === 'any') return { matchPattern: { case: 'safeRegex' as const, value: { regex: '.*' } } }
    return { matchPattern: { case: pattern.kind, value: pattern.text }, ignoreCase: true }
  })
  return (patterns.length > 0 ? { [field]: { patterns } } : {}) as { readonly [Name in Field]?: { readonly patterns: typeof patterns } }
}
