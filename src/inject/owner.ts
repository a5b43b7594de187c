/** The workload that a pod belongs to (docs/injection.md, N6). */
import type { Pod } from './pod.ts'

/** A workload: its kind, API version and name. */
export interface Owner {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Returns the workload of a pod: what controls it, and where that is a ReplicaSet of a Deployment or a Job of a CronJob, which have names that
 * end in a hash or in a time, that Deployment or CronJob. A pod that nothing controls is a workload of its own.
 */
export function ownerOf({ metadata, apiVersion, kind }: Pod): Owner {
  const own: Owner = {
    apiVersion: text(apiVersion) || 'v1',
    kind: text(kind) || 'Pod',
    name: metadata.name ?? (metadata.generateName ?? '').replace(/-$/, ''),
  }
  const controller = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (controller === undefined) return own
  const owner = { apiVersion: text(controller.apiVersion), kind: text(controller.kind), name: text(controller.name) }
  const hash = metadata.labels?.['pod-template-hash']
  if (owner.kind === 'ReplicaSet' && hash !== undefined && hash !== '' && owner.name.endsWith(`-${hash}`))
    return { apiVersion: 'apps/v1', kind: 'Deployment', name: owner.name.slice(0, -hash.length - 1) }
  const [, cronJob] = owner.kind === 'Job' ? (/^(.+)-\d{8,10}$/.exec(owner.name) ?? []) : []
  if (cronJob !== undefined) return { apiVersion: 'batch/v1', kind: 'CronJob', name: cronJob }
  if (
    owner.kind === 'ReplicationController' &&
    metadata.labels?.deploymentconfig !== undefined &&
    owner.name.startsWith(`${metadata.labels.deploymentconfig}-`)
  )
    return { apiVersion: 'apps.openshift.io/v1', kind: 'DeploymentConfig', name: metadata.labels.deploymentconfig }
  return owner
}
