/** How connections are kept and spread, in a rule and in the mesh configuration. */
import { duration, flag, integer, list, map, type Read, record, required, text, unused } from '../shape.ts'
import { largestUint32 } from './hosts.ts'

/** Shape of `localityLbSetting`. */
export const localityLbShape = record({
  distribute: list(record({ from: required(text()), to: required(map(integer(0, 100))) })),
  failover: list(record({ from: required(text()), to: required(text()) })),
  failoverPriority: unused(list(text())),
  enabled: flag,
})

/** Shape of `tcpKeepalive`. Envoy counts in whole seconds of 32 bits. */
export const tcpKeepaliveShape = record({
  probes: integer(0, largestUint32),
  time: duration(0, largestUint32 * 1000),
  interval: duration(0, largestUint32 * 1000),
})

export type LocalityLb = Read<typeof localityLbShape>
