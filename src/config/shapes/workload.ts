/** Workloads as entries describe them. */
import { unixFault } from '../addresses.ts'
import { integer, map, record, text } from '../shape.ts'
import { labels } from './hosts.ts'

/** IP address, host name or `unix://` path of a workload. */
export const workloadAddress = text({ max: 1024, check: unixFault })

/** What is said of a workload beside its address. */
export const workloadFields = {
  ports: map(integer(1, 65_535)),
  labels,
  network: text(),
  locality: text(),
  weight: integer(0, 4_294_967_295),
  serviceAccount: text(),
}

/** A workload; where its address is not given, its network says where it is entered. */
export const workload = record({ address: workloadAddress, ...workloadFields })
