/** Why a workload cannot be registered (docs/registration.md, R2), and what is said of machines that share an entry (R3). */
import type { RegisteringWorkload, WorkloadEntryData, WorkloadGroupData } from '../../protocols/messages/registration.ts'
import { isIp, leadsToCaller } from '../config/addresses.ts'
import { status } from '../model/status-codes.ts'

/** A name of users in a sentence. */
export const quoted = (text: string) => JSON.stringify(text.slice(0, 253))

/** The service account that a group is for. */
export function accountOf({ template }: WorkloadGroupData): string {
  const { serviceAccount } = template
  return typeof serviceAccount === 'string' && serviceAccount !== '' ? serviceAccount : 'default'
}

/** Why a workload cannot be registered; undefined: it can be. */
export function faultOf(
  workload: RegisteringWorkload,
  workloadGroup: WorkloadGroupData | undefined,
  name: string | undefined,
): { readonly code: number; readonly reason: string } | undefined {
  const { namespace, address, callers } = workload
  const shown = `WorkloadGroup ${quoted(workload.workloadGroup)} of namespace ${quoted(namespace)}`
  const fault = (code: number, reason: string) => ({ code, reason: `the workload cannot be registered: ${reason}` })
  if (callers?.length === 0)
    return fault(status.unauthenticated, 'its caller is not authenticated as a workload of this cluster; workloads register on the secured port')
  if (callers && !callers.some((caller) => caller.namespace === namespace))
    return fault(status.permissionDenied, `its identity is not of namespace ${quoted(namespace)}`)
  if (!workloadGroup) return fault(status.notFound, `${shown} does not exist`)
  const account = accountOf(workloadGroup)
  if (callers && !callers.some((caller) => caller.namespace === namespace && caller.account === account))
    return fault(status.permissionDenied, `${shown} is for service account ${quoted(account)}, which its identity is not of`)
  if (!isIp(address) || leadsToCaller(address)) return fault(status.invalidArgument, `others cannot reach it at ${quoted(address)}`)
  if (name === undefined) return fault(status.invalidArgument, `group, address and network ${quoted(workload.network)} make no name of an object`)
  return undefined
}

/** Why an object that exists is not the entry of a workload of a group. */
export function otherOwner({ registeredFor, namespace, name }: WorkloadEntryData, workloadGroup: string): string | undefined {
  if (registeredFor === workloadGroup) return undefined
  const whose = registeredFor === '' ? 'was not registered' : `is registered for WorkloadGroup ${quoted(registeredFor)}`
  return `the workload cannot be registered: WorkloadEntry ${namespace}/${name} exists and ${whose}`
}

/** What is said of a machine whose entry another replica has kept for a while. */
export function sharedElsewhere({ node }: RegisteringWorkload, { namespace, name, controller }: WorkloadEntryData): string {
  return `machine ${quoted(node)} is connected to this replica, and its WorkloadEntry ${namespace}/${name} is kept by replica ${quoted(controller)}, to which another machine with the same group, address and network has connected since: they share the entry, with the labels of the one that made it and the health of the one that connected last; give them addresses, networks or groups of their own`
}

/** What is said of two machines that have one entry. */
export function sharedBy({ workload: one }: { workload: RegisteringWorkload }, { workload: other }: { workload: RegisteringWorkload }): string {
  const { workloadGroup, namespace, address, network } = other
  const where = network === '' ? address : `${address} of network ${quoted(network)}`
  return `machines ${quoted(one.node)} and ${quoted(other.node)} register for WorkloadGroup ${quoted(workloadGroup)} of namespace ${quoted(namespace)} with the same address ${where}: they share one WorkloadEntry, with the labels of the one that made it and the health of the one that connected last; give them addresses, networks or groups of their own`
}
