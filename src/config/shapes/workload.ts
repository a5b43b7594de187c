/** Workloads in ServiceEntries, WorkloadEntries and WorkloadGroups. */
import { unixFault } from '../addresses.ts'
import { integer, map, record, text } from '../shape.ts'
import { labels } from './hosts.ts'

/** The IP address, host name or `unix://` path of a workload. */
export const workloadAddress = text({ max: 1024, check: unixFault })

/** The fields of a workload other than its address. */
export const workloadFields = {
  ports: map(integer(1, 65_535)),
  labels,
  network: text(),
  locality: text(),
  weight: integer(0, 4_294_967_295),
  serviceAccount: text(),
}

/** A workload. Without an address it is reached through the gateway of its network. */
export const workload = record({ address: workloadAddress, ...workloadFields })
