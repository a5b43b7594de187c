/** WorkloadEntry: a workload that ServiceEntries of its namespace select by labels. */
import { type Read, record, reject } from '../shape.ts'
import { workloadAddress, workloadFields } from '../shapes/workload.ts'
import { type Kind, networkingVersions } from './kind.ts'

const spec = record({ address: workloadAddress, ...workloadFields }, (value, path, report) => {
  if (!value.address && !value.network) reject(report, `${path}.address`, 'required without a network, but missing')
})

/** The kind WorkloadEntry. */
export const workloadEntry = {
  name: 'WorkloadEntry',
  plural: 'workloadentries',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace',
  selects: undefined,
} satisfies Kind<'WorkloadEntry', WorkloadEntrySpec>

export type WorkloadEntrySpec = Read<typeof spec>
