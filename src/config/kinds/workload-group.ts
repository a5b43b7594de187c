/** WorkloadGroup: a template for workloads that register themselves. */
import { anything, type Read, record, required, unused } from '../shape.ts'
import { labels } from '../shapes/hosts.ts'
import { workload } from '../shapes/workload.ts'
import { type Kind, networkingVersions } from './kind.ts'

/** The agent reads its probe at its start, before it knows of any group. */
const probeReason = 'agents have their probe from the configuration of their proxy (readinessProbe)'

const spec = record({ metadata: record({ labels, annotations: labels }), template: required(workload), probe: unused(anything, probeReason) })

/** The kind WorkloadGroup. */
export const workloadGroup = {
  name: 'WorkloadGroup',
  plural: 'workloadgroups',
  group: 'networking',
  versions: networkingVersions,
  spec,
  scope: 'namespace',
  selects: undefined,
} satisfies Kind<'WorkloadGroup', Read<typeof spec>>
