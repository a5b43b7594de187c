/** Where a proxy sends a request, of which `mesh.admin.v1.AdminService` and `/debug/routing` are two views. */
import type { ObjectReference, Protocol } from '../../../protocols/data.ts'
import type { DescribedRequest, SentRequest } from '../../../protocols/messages/described-request.ts'
import type { Routing } from '../../../protocols/messages/explain.ts'
import { count } from '../../../src/model/counts.ts'
import type { ReferencedExplanation } from '../../../src/policy/explain.ts'
import { serverNameOf } from '../../../src/push/explain/asked-host.ts'
import { type LostEndpoints, withLostEndpoints } from '../../../src/push/explain/lost-endpoints.ts'
import type { RouteFields } from '../../../src/push/explain/route-fields.ts'
import { connectionOf } from '../../../src/push/explain/sent-connection.ts'
import { type UnhealthyEntries, withUnhealthyEntries } from '../../../src/push/explain/unhealthy-entries.ts'
import { withUnreadBytes } from '../../../src/push/explain/unread-bytes.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import { type JudgedProxy, judgedDestination } from './destination-answers.ts'
import { explanationOf, type Sees } from './mesh-answers.ts'
import type { PageSources, Placed } from './page-sources.ts'

/**
 * Returns a described request as one that is sent, or a string with the reason when it cannot be. Defaults are http, the port of the scheme, and
 * the host as the server name of TLS.
 */
export function sentRequestOf(described: DescribedRequest, scheme: string): SentRequest | string {
  const by = scheme || 'http'
  if (by !== 'http' && by !== 'https') return `scheme: ${JSON.stringify(by.slice(0, 100))} is neither http nor https`
  if (!described.path.startsWith('/')) return 'path: a path starts with a slash'
  const { host, sni, destinationPort } = described
  if (host === '') return 'host: a request that is sent needs one'
  const isTls = by === 'https'
  return { ...described, scheme: by, destinationPort: destinationPort || (isTls ? 443 : 80), sni: isTls ? sni || serverNameOf(host) : '' }
}

/** Where a request goes, with the objects that routes were made from, and what the policies of a gateway say before. */
export interface RoutingAnswer {
  readonly policies: ReferencedExplanation | undefined
  /** The proxies of the destination that were judged, and whether all of them refuse what may arrive there. */
  readonly destinations: readonly JudgedProxy[]
  readonly isRefused: boolean
  /** What was taken to judge policies by, and may be otherwise. */
  readonly assumed: readonly string[]
  readonly routing: Omit<Routing, 'tried' | 'arrivals' | 'protocol' | 'assumed'> & {
    readonly tried: readonly (Omit<Routing['tried'][number], 'match' | 'virtualService'> & Made)[]
    readonly unused: readonly (Made & { readonly reason: string })[]
  }
}

/** The object and the field that a route was made from. */
interface Made {
  readonly object: ObjectReference | undefined
  readonly field: string
}

/** The types of the resources that lead from a listener to endpoints. */
const types = [listenerType, routeType, virtualHostType, clusterType, endpointType]

/** Says where a proxy sends a request. */
export async function routingOf(sources: PageSources, proxy: Placed<ConnectionStatus>, request: SentRequest, sees: Sees): Promise<RoutingAnswer> {
  const all = await sources.resourcesOf(proxy)
  const resources = Object.fromEntries(types.map((type) => [type, (all[type] ?? []).map(({ name, element }) => ({ name, element }))]))
  const { namespace, nodeId, envoy, missingSecrets = [] } = proxy
  const domain = dnsDomainOf(nodeId, namespace)
  const isGateway = nodeId.startsWith('router~')
  const sent = await sources.explanations.route({ request, resources, namespace, domain, isGateway, envoy, missingSecrets })
  const sentTo = sent.arrivals.map(({ cluster }) => cluster)
  const read = withUnreadBytes(sent, await ofClusters<Protocol>(sources, proxy, 'portProtocols', sentTo))
  const empty = read.clusters.filter(({ because, endpoints }) => because !== '' && endpoints === 0).map(({ name }) => name)
  const unhealthy = await ofClusters<UnhealthyEntries[string]>(sources, proxy, 'unhealthyEntries', empty)
  const lost = await ofClusters<LostEndpoints[string]>(sources, proxy, 'lostEndpoints', empty)
  const { tried, arrivals, protocol, assumed, ...routing } = withLostEndpoints(withUnhealthyEntries(read, unhealthy, sees), lost, sees)
  const routes = tried.map((route) => ({ ...route, port: request.destinationPort }))
  const from = (await sources.ofProxy('routeFields', proxy, routes)) as Partial<RouteFields> & {
    readonly references?: Record<string, ObjectReference>
  }
  const madeFrom = (virtualService: string, field: string): Made => ({ object: from.references?.[virtualService], field })
  const { proxies, notJudged, isWhole } = await judgedDestination(sources, proxy, arrivals, sees)
  const refusing = proxies.filter(isRefusal)
  const isRefused = isWhole && refusing.length === proxies.length
  const verdict = verdictOf(proxies.length, refusing.length)
  const policies = isGateway ? await policiesOf(sources, proxy, protocol === 'tcp' ? connectionOf(request) : request) : undefined
  return {
    ...{ destinations: proxies, isRefused, policies, assumed: [...assumed, ...assumedOf(policies, request), ...assumedThere(proxies)] },
    routing: {
      ...routing,
      reason: [routing.reason, ...verdict, ...(notJudged === '' ? [] : [notJudged])].join('; '),
      tried: tried.map(({ match: _, virtualService, ...route }, index) => ({ ...route, ...madeFrom(virtualService, from.fields?.[index] ?? '') })),
      unused: (from.unused ?? []).map(({ virtualService, field, reason }) => ({ ...madeFrom(virtualService, field), reason })),
    },
  }
}

/** What the push queue of a proxy says of clusters, by cluster; nothing where it is at a replica of an earlier version. */
async function ofClusters<Said>(
  sources: PageSources,
  proxy: Placed<ConnectionStatus>,
  question: 'portProtocols' | 'unhealthyEntries' | 'lostEndpoints',
  clusters: readonly string[],
): Promise<Readonly<Record<string, Said>>> {
  if (clusters.length === 0) return {}
  const said = await sources.ofProxy(question, proxy, clusters).catch(() => undefined)
  return (said ?? {}) as Readonly<Record<string, Said>>
}

/** What is said where policies of a gateway are on the address of the client, and it was not given. */
const assumedOf = (policies: ReferencedExplanation | undefined, { sourceIp }: SentRequest): string[] =>
  policies?.looksAtSource && sourceIp === '' ? ['policies of the gateway on the source address (ipBlocks): no address of the client was given'] : []

/** What is said where policies of the destination are on the address of the caller. */
function assumedThere(proxies: readonly JudgedProxy[]): string[] {
  const [judged] = proxies.filter(({ explanation }) => explanation.looksAtSource)
  if (!judged) return []
  return [
    `policies of the destination on the source address (ipBlocks): it is taken to be ${judged.sourceIp}, that of the caller's node; behind NAT, or on one machine, connections may come from another`,
  ]
}

/** Whether a proxy of the destination refuses a request. An external authorizer has the last word on what it is asked about. */
const isRefusal = ({ explanation: { status, decidedBy } }: JudgedProxy): boolean => status !== 200 && decidedBy !== 'external authorizer'

/** What the judged proxies of the destination do, in words. */
function verdictOf(judged: number, refusing: number): string[] {
  if (judged === 0) return []
  if (refusing === 0) return [judged === 1 ? 'the proxy there lets it in' : 'the proxies there that were judged let it in']
  return [`${refusing} of ${count(judged, 'judged proxy', 'judged proxies')} there ${refusing === 1 ? 'refuses' : 'refuse'} it`]
}

/** The DNS domain of the mesh as a proxy names it: its node id ends with `<namespace>.svc.<domain>`. */
function dnsDomainOf(nodeId: string, namespace: string): string {
  const named = nodeId.split('~')[3] ?? ''
  const own = `${namespace}.svc.`
  return named.startsWith(own) ? named.slice(own.length) : 'cluster.local'
}

async function policiesOf(
  sources: PageSources,
  proxy: Placed<ConnectionStatus>,
  request: DescribedRequest,
): Promise<ReferencedExplanation | undefined> {
  const explanation = await explanationOf(sources, proxy, request)
  return 'considered' in explanation ? (explanation as ReferencedExplanation) : undefined
}
