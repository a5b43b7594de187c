/** A model of the API server for the registration of workloads, and a group with its workloads (docs/registration.md). */
import type { EntryOrder, EntryOutcome, RegisteringWorkload, WorkloadEntryData } from '../../protocols/messages/registration.ts'
import { entryData, groupData } from '../../src/orchestrator/registered-entry.ts'
import type { RegistrationSettings } from '../../src/orchestrator/registrations.ts'

/** The domain of the mesh. */
export const domain = 'mesh.io'
/** The grace period of the replicas. */
export const graceMs = 10_000
/** The settings of a replica. */
export const settings = (replica: string): RegistrationSettings => ({ replica, domain, graceMs, checksHealth: true, mostEntries: 300 })
/** The API group and version of entries and groups. */
export const place = { group: 'networking.mesh.io', version: 'v1' }
/** The id of the group. */
export const groupId = 'workloadgroups.networking.mesh.io shop/vms'
/** The group with a spec. */
export const groupOf = (spec: object) => groupData({ metadata: { name: 'vms', namespace: 'shop', uid: 'g1' } }, spec as never, place)
/** The group. */
export const vms = groupOf({
  metadata: { labels: { tier: 'group', app: 'ledger' }, annotations: { note: 'x' } },
  template: { serviceAccount: 'vm', labels: { app: 'template', tier: 'template', only: 'template' }, ports: { http: 7070 }, locality: 'eu/west' },
})
/** A workload that the group is for. */
export const workload = (address = '10.0.0.1', more: Partial<RegisteringWorkload> = {}): RegisteringWorkload => ({
  ...{ workloadGroup: 'vms', namespace: 'shop', node: 'vm', address, network: '', locality: '', labels: {}, isProbed: true },
  callers: [{ namespace: 'shop', account: 'vm' }],
  ...more,
})

/** An object as it is stored. */
export type Stored = { metadata: Record<string, unknown>; spec?: unknown; status?: unknown }

/** A merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  return result
}

/** The API server, as far as entries are concerned. */
export class ModelServer {
  readonly objects = new Map<string, Stored>()
  readonly log: string[] = []
  /** Called when an entry changes; undefined: it is gone. */
  readonly watchers = new Set<(name: string, entry: WorkloadEntryData | undefined) => void>()
  deleted: (name: string, object: Stored) => void = () => undefined
  #version = 0

  entry(name: string): WorkloadEntryData | undefined {
    const object = this.objects.get(name)
    return object && entryData(object as never, place, domain)
  }

  do(order: EntryOrder): EntryOutcome {
    const { name } = order
    const object = this.objects.get(name)
    const version = `${++this.#version}`
    if (order.verb === 'create') {
      if (object) return { outcome: 'conflict' }
      const made = order.object as Stored
      return this.#set(order.verb, name, { ...made, metadata: { ...made.metadata, uid: `u${version}`, resourceVersion: version } })
    }
    if (!object) return { outcome: 'gone' }
    const wanted = order.verb === 'delete' ? order : (order.patch.metadata as { uid: string; resourceVersion: string })
    if (wanted.uid !== object.metadata.uid || wanted.resourceVersion !== object.metadata.resourceVersion) return { outcome: 'conflict' }
    if (order.verb === 'delete') {
      this.log.push(`delete ${name}`)
      this.deleted(name, object)
      this.objects.delete(name)
      for (const tell of this.watchers) tell(name, undefined)
      return { outcome: 'done', entry: undefined }
    }
    const next = merged(object, order.patch) as Stored
    return this.#set(order.verb, name, { ...next, metadata: { ...next.metadata, resourceVersion: version } })
  }

  #set(verb: string, name: string, object: Stored): EntryOutcome {
    this.log.push(`${verb} ${name}`)
    this.objects.set(name, object)
    const entry = this.entry(name)
    for (const tell of this.watchers) tell(name, entry)
    return { outcome: 'done', entry }
  }
}
