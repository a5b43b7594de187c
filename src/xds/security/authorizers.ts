/** External authorizers: what CUSTOM policies name, from `extensionProviders` of the mesh configuration (docs/resources.md, A9). */
import { isStandIn } from '../../config/stand-in.ts'
import type { AuthorizationPolicy } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { durationOf } from '../message.ts'
import { outboundCluster } from '../names.ts'

/** An authorizer that requests can be sent to. */
export interface Authorizer {
  readonly kind: 'http' | 'grpc'
  readonly cluster: string
  readonly host: string
  readonly port: number
  /** Requests pass when it does not answer. */
  readonly failOpen: boolean
  /** Status when it does not answer and requests do not pass. */
  readonly statusOnError: number | undefined
  readonly pathPrefix: string
  readonly includeHeadersInCheck: readonly string[]
  readonly headersToUpstreamOnAllow: readonly string[]
  readonly headersToDownstreamOnDeny: readonly string[]
}

/** How long an authorizer may take, in milliseconds. */
const checkTimeoutMs = 600_000

/** The one authorizer of a workload, or why there is none. */
export function authorizerOf(policies: readonly AuthorizationPolicy[], snapshot: MeshSnapshot): Authorizer | { readonly reason: string } {
  const names = [...new Set(policies.map((policy) => (isStandIn(policy) ? '' : (policy.spec.provider?.name ?? ''))))]
  if (names.length > 1) return { reason: `policies name different providers: ${names.join(', ')}` }
  const [name = ''] = names
  const provider = snapshot.mesh.extensionProviders?.find((known) => known.name === name)
  if (!provider) return { reason: `the mesh configuration has no extension provider ${JSON.stringify(name)}` }
  const given = provider.envoyExtAuthzHttp ?? provider.envoyExtAuthzGrpc
  if (!given) return { reason: `extension provider ${JSON.stringify(name)} is not an external authorizer` }
  const slash = given.service.indexOf('/')
  const host = given.service.slice(slash + 1)
  const namespace = slash < 0 ? undefined : given.service.slice(0, slash)
  const state = snapshot.services.get(host)?.find(({ service }) => namespace === undefined || service.namespace === namespace)
  if (!state) return { reason: `extension provider ${JSON.stringify(name)}: there is no service ${given.service}` }
  if (!state.service.ports.some((port) => port.number === given.port))
    return { reason: `extension provider ${JSON.stringify(name)}: ${given.service} has no port ${given.port}` }
  const status = given.statusOnError === undefined ? undefined : Number(given.statusOnError)
  const http = provider.envoyExtAuthzHttp
  return {
    kind: http ? 'http' : 'grpc',
    cluster: outboundCluster(given.port, '', host),
    host,
    port: given.port,
    failOpen: given.failOpen ?? false,
    statusOnError: status,
    pathPrefix: http?.pathPrefix ?? '',
    includeHeadersInCheck: http?.includeHeadersInCheck ?? [],
    headersToUpstreamOnAllow: http?.headersToUpstreamOnAllow ?? [],
    headersToDownstreamOnDeny: http?.headersToDownstreamOnDeny ?? [],
  }
}

/** `envoy.config.core.v3.GrpcService`; what gRPC takes for an authority has no pipes. */
export function grpcAuthorizer({ cluster }: Authorizer) {
  return {
    targetSpecifier: { case: 'envoyGrpc' as const, value: { clusterName: cluster, authority: cluster.replaceAll('|', '_.') } },
    timeout: durationOf(checkTimeoutMs),
  }
}

/** `envoy.extensions.filters.http.ext_authz.v3.HttpService`. */
export function httpAuthorizer(authorizer: Authorizer) {
  const { cluster, host, port, pathPrefix } = authorizer
  const exactly = (names: readonly string[]) => ({
    patterns: names.map((name) => ({ matchPattern: { case: 'exact' as const, value: name }, ignoreCase: true })),
  })
  return {
    serverUri: { uri: `http://${host}:${port}`, httpUpstreamType: { case: 'cluster' as const, value: cluster }, timeout: durationOf(checkTimeoutMs) },
    pathPrefix,
    ...(authorizer.includeHeadersInCheck.length > 0 ? { authorizationRequest: { allowedHeaders: exactly(authorizer.includeHeadersInCheck) } } : {}),
    authorizationResponse: {
      ...(authorizer.headersToUpstreamOnAllow.length > 0 ? { allowedUpstreamHeaders: exactly(authorizer.headersToUpstreamOnAllow) } : {}),
      ...(authorizer.headersToDownstreamOnDeny.length > 0 ? { allowedClientHeaders: exactly(authorizer.headersToDownstreamOnDeny) } : {}),
    },
  }
}
