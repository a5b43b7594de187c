/** What proxies of the destination do with a request, by their mutual TLS and policies: what `authz` of each says, with the identity of the caller. */
import { isIPv6 } from 'node:net'
import type { DescribedRequest } from '../../../protocols/messages/described-request.ts'
import type { Arrival } from '../../../protocols/messages/explain.ts'
import { append } from '../../../src/model/lists.ts'
import { compare } from '../../../src/model/order.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import type { ReferencedExplanation } from '../../../src/policy/explain.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import { explanationOf, type Sees } from './mesh-answers.ts'
import type { PageSources, Placed } from './page-sources.ts'

type Proxy = Placed<ConnectionStatus>

/** What a proxy of the destination does with a request. */
export interface JudgedProxy {
  readonly nodeId: string
  readonly cluster: string
  readonly address: string
  readonly port: number
  /** The address that it was taken to see as the source. */
  readonly sourceIp: string
  /** What the client receives of it. */
  readonly status: number
  readonly explanation: ReferencedExplanation
}

/** The proxies of the destination that were judged, and in a sentence what was not. */
export interface JudgedDestination {
  readonly proxies: readonly JudgedProxy[]
  readonly notJudged: string
  /** Whether some of them was judged for each cluster that may take the request. */
  readonly isWhole: boolean
}

/** The maximum number of proxies that are judged, of each cluster and of all. */
const mostOfCluster = 5
const mostProxies = 10

/** A proxy of the destination, and what arrives there. */
interface Found {
  readonly proxy: Proxy
  readonly arrival: Arrival
  readonly endpoint: Arrival['endpoints'][number]
}

/** Judges what arrives at clusters by proxies that are connected. Those that the caller may not see are not named. */
export async function judgedDestination(sources: PageSources, caller: Proxy, arrivals: readonly Arrival[], sees: Sees): Promise<JudgedDestination> {
  if (arrivals.length === 0) return { proxies: [], notJudged: '', isWhole: false }
  const { rows } = await sources.allConnections()
  const sidecars = byAddress(rows.filter(({ nodeId }) => nodeId.startsWith('sidecar~')))
  const found = arrivals.map((arrival) => proxiesAt(arrival, sidecars))
  const all = found.flat()
  const seen = found.map((each) => each.filter(({ proxy }) => sees(proxy.namespace)).slice(0, mostOfCluster))
  const chosen = seen.flat().slice(0, mostProxies)
  const judged = await Promise.all(chosen.map((each) => judgedBy(sources, caller, each)))
  const proxies = judged.filter((each) => each !== undefined)
  const notJudged =
    all.length === 0
      ? 'no proxy of the destination is connected here, so its policies are not judged'
      : proxies.length > 0
        ? proxies.length < all.length
          ? `${proxies.length} of its ${all.length} connected proxies were judged`
          : ''
        : chosen[0]
          ? `its policies are not judged, since the identity of the caller is not known here: authz ${nameOfNode(chosen[0].proxy.nodeId)} --principal <identity> says`
          : 'its policies are not judged: its proxies are of namespaces that you may not see'
  return { proxies, notJudged, isWhole: arrivals.every(({ cluster }) => proxies.some((each) => each.cluster === cluster)) }
}

/** Proxies by each of their addresses. */
function byAddress(proxies: readonly Proxy[]): Map<string, Proxy[]> {
  const found = new Map<string, Proxy[]>()
  for (const proxy of proxies)
    for (const address of new Set([proxy.nodeId.split('~')[1] ?? '', ...(proxy.addresses ?? [])].map(canonical))) append(found, address, proxy)
  return found
}

/** An address as it is compared: those of IPv6 have several spellings. */
const canonical = (address: string): string => (isIPv6(address) ? new URL(`http://[${address}]`).hostname : address)

/** The proxies at the endpoints of a cluster. An address that several proxies have names none of them. */
function proxiesAt(arrival: Arrival, sidecars: ReadonlyMap<string, readonly Proxy[]>): Found[] {
  const found = arrival.endpoints.flatMap((endpoint) => {
    const [proxy, ...others] = sidecars.get(canonical(endpoint.address)) ?? []
    return proxy && others.length === 0 ? { proxy, arrival, endpoint } : []
  })
  const once = [...new Map(found.map((each) => [each.proxy, each])).values()]
  return once.sort((one, other) => compare(nameOfNode(one.proxy.nodeId), nameOfNode(other.proxy.nodeId)))
}

/** What a proxy does with what arrives; undefined where that cannot be said. */
async function judgedBy(sources: PageSources, caller: Proxy, { proxy, arrival, endpoint }: Found): Promise<JudgedProxy | undefined> {
  const identity = caller.identities[0]?.replace(/^spiffe:\/\//, '')
  if (endpoint.isIdentified && identity === undefined) return undefined
  const { address, port, isIdentified, sni } = endpoint
  const { cluster, request } = arrival
  const from = caller.nodeId.split('~')[1] ?? ''
  const described: DescribedRequest = {
    ...request,
    ...{ sourceIp: from, remoteIp: caller.nodeId.startsWith('router~') ? '' : from, destinationIp: address, destinationPort: port, sni },
    ...{ peer: isIdentified ? identity : undefined, claims: undefined, metadata: {} },
  }
  const explanation = await explanationOf(sources, proxy, described).catch(() => ({}))
  if (!('considered' in explanation)) return undefined
  const { status, decidedBy } = explanation as ReferencedExplanation
  // A connection that the destination closes is an unreachable upstream for the proxy that sends a request.
  const isClosed = status === 0 && decidedBy !== 'external authorizer'
  return {
    nodeId: proxy.nodeId,
    ...{ cluster, address, port, sourceIp: from },
    status: isClosed && request.protocol === 'http' ? 503 : status,
    explanation: explanation as ReferencedExplanation,
  }
}
