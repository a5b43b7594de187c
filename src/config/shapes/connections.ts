/** Connection and locality settings, used in DestinationRules, Sidecars and the mesh configuration. */
import { duration, flag, integer, list, map, oneOf, type Read, record, reject, required, text, unused } from '../shape.ts'
import { largestUint32 } from './hosts.ts'

const shares = record({ from: required(text()), to: required(map(integer(1, 100))) }, ({ to }, path, report) => {
  const sum = Object.values(to).reduce((total, share) => total + share, 0)
  if (sum !== 100) reject(report, `${path}.to`, `the shares of localities add up to ${sum}, not 100`)
})

/** Whether one locality is the other or within it: `region/zone/sub-zone`, each part of which may be `*`, as may be all that follows. */
function overlap(one: string, other: string): boolean {
  const [parts, others] = [one.split('/'), other.split('/')]
  return parts.every((part, index) => part === '*' || others[index] === undefined || others[index] === '*' || part === others[index])
}

/** Returns the first locality that overlaps with one before it. */
const overlapping = (localities: readonly string[]): string | undefined =>
  localities.find((locality, index) => localities.slice(0, index).some((before) => overlap(locality, before)))

/** The shape of `localityLbSetting`. */
export const localityLbShape = record(
  {
    distribute: list(shares, { max: 1000 }),
    failover: list(record({ from: required(text()), to: required(text()) })),
    failoverPriority: unused(list(text()), 'endpoints are ranked by locality, not by labels'),
    enabled: flag,
  },
  ({ distribute = [], failover = [] }, path, report) => {
    if (distribute.length > 0 && failover.length > 0) reject(report, `${path}.failover`, 'excluded by distribute')
    const from = overlapping(distribute.map((share) => share.from))
    if (from !== undefined)
      reject(report, `${path}.distribute`, `${JSON.stringify(from.slice(0, 100))} overlaps with the locality of an entry before`)
    for (const [index, { from, to }] of failover.entries())
      if (from === to) reject(report, `${path}.failover[${index}].to`, 'is the same region as from')
  },
)

/** The shape of `tcpKeepalive`. Envoy uses whole seconds of 32 bits. */
export const tcpKeepaliveShape = record({
  probes: integer(0, largestUint32),
  time: duration(0, largestUint32 * 1000),
  interval: duration(0, largestUint32 * 1000),
})

export type LocalityLb = Read<typeof localityLbShape>

/** Limits and timeouts of connections to a workload. */
export const connectionPool = record({
  tcp: record({
    maxConnections: integer(1, 2_147_483_647),
    connectTimeout: duration(1),
    tcpKeepalive: tcpKeepaliveShape,
    maxConnectionDuration: duration(1),
    idleTimeout: duration(),
  }),
  http: record({
    http1MaxPendingRequests: integer(1, 2_147_483_647),
    http2MaxRequests: integer(1, 2_147_483_647),
    maxRequestsPerConnection: integer(0, 536_870_912),
    maxRetries: integer(0, 2_147_483_647),
    idleTimeout: duration(),
    h2UpgradePolicy: oneOf('DEFAULT', 'DO_NOT_UPGRADE', 'UPGRADE'),
    useClientProtocol: flag,
    maxConcurrentStreams: integer(1, 2_147_483_647),
    http2KeepAlive: record({ interval: required(duration(1)), timeout: required(duration(1)) }),
  }),
})
