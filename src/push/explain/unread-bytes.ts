/** Which destinations cannot read what a proxy sends to them: TLS at a port of plain text, or plain text at a port of TLS. */
import type { Protocol } from '../../../protocols/data.ts'
import type { Arrival, Routing } from '../../../protocols/messages/explain.ts'
import { isHttp, isOpaqueTls } from '../../model/protocol.ts'
import type { View } from '../../snapshot/view.ts'
import { clusterParts, isSniName } from '../../xds/names.ts'

/** The protocols of the ports that clusters are of, by cluster, as a view declares them. Those of unknown services are left out. */
export function portProtocols({ service }: Pick<View, 'service'>, clusters: readonly string[]): Record<string, Protocol> {
  return Object.fromEntries(
    clusters.flatMap((cluster) => {
      const { host, port } = clusterParts(cluster)
      const found = service(host)?.service.ports.find(({ number }) => number === Number(port))
      return found ? [[cluster, found.protocol] as const] : []
    }),
  )
}

/** A routing with the destinations that cannot read what arrives, which then takes no request. `protocols`: of `portProtocols`. */
export function withUnreadBytes(routing: Routing, protocols: Readonly<Record<string, Protocol>>): Routing {
  const unread = new Map(routing.arrivals.map((arrival) => [arrival.cluster, unreadBy(arrival, protocols[arrival.cluster])]))
  const because = (cluster: string) => unread.get(cluster) ?? ''
  const arrivals = routing.arrivals.filter(({ cluster }) => because(cluster) === '')
  if (arrivals.length === routing.arrivals.length) return routing
  const clusters = routing.clusters.map((each) => (because(each.name) === '' ? each : { ...each, because: because(each.name) }))
  const read = { ...routing, clusters, arrivals, reason: [routing.reason, ...new Set([...unread.values()].filter(Boolean))].join('; ') }
  if (arrivals.length > 0) return read
  return { ...read, status: routing.arrivals.some(({ request }) => request.protocol === 'http') ? 503 : 0, decidedBy: 'cluster' }
}

/** Why a workload cannot read what arrives; empty: it can, or its protocol is not known. */
function unreadBy({ cluster, tlsOf }: Arrival, protocol: Protocol | undefined): string {
  const { host, port } = clusterParts(cluster)
  // What comes by AUTO_PASSTHROUGH is mutual TLS of the mesh, which ends at the proxy of the workload.
  if (protocol === undefined || isSniName(cluster)) return ''
  const at = `port ${port} of ${host} is ${protocol}`
  if (tlsOf.length > 1) return `${at}: the TLS of the client arrives within that which the proxy begins (trafficPolicy.tls of a DestinationRule)`
  if (isHttp(protocol) && tlsOf[0] === 'client') return `${at}: plain text is expected there, and TLS arrives, which nothing on the way ends`
  if (isOpaqueTls(protocol) && tlsOf.length === 0)
    return `${at}: TLS is expected there, and plain text arrives (a DestinationRule with trafficPolicy.tls.mode SIMPLE begins TLS)`
  return ''
}
