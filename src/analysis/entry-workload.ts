/** Entries as workloads that selectors may match. */

import type { ConfigObject } from '../../protocols/data.ts'
import type { Workload } from '../../protocols/messages/analysis.ts'
import { mapping } from '../config/shape.ts'

/** Returns the workload that an entry is, or that the entries of a group are; undefined for other objects. */
export function entryWorkload({ kind, namespace, name, labels, annotations, place, spec }: ConfigObject): Workload | undefined {
  const given = mapping(spec)
  const own = kind === 'WorkloadEntry' ? given.labels : kind === 'WorkloadGroup' ? mapping(given.metadata).labels : undefined
  if (own === undefined && kind !== 'WorkloadEntry') return undefined
  return { kind, namespace, name, labels: { ...labels, ...(mapping(own) as Record<string, string>) }, annotations, place }
}
