/** WorkloadEntry: a workload that ServiceEntries of its namespace select by its labels. */
import { type Read, record, required } from '../shape.ts'
import { workloadAddress, workloadFields } from '../shapes/workload.ts'
import { type Kind, networkingVersions } from './kind.ts'

const spec = record({ address: required(workloadAddress), ...workloadFields })

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
