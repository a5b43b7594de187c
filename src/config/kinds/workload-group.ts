/** WorkloadGroup: a template for workloads that register themselves. */
import { anything, type Read, record, required } from '../shape.ts'
import { labels } from '../shapes/hosts.ts'
import { workload } from '../shapes/workload.ts'
import { type Kind, networkingVersions } from './kind.ts'

const spec = record({ metadata: record({ labels, annotations: labels }), template: required(workload), probe: anything })

/** The kind WorkloadGroup. */
export const workloadGroup = {
  name: 'WorkloadGroup',
  plural: 'workloadgroups',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace',
  selects: undefined,
  without: 'workloads are not registered automatically',
} satisfies Kind<'WorkloadGroup', Read<typeof spec>>
