/**
 * The Lease by which other replicas know that this one lives, on the main thread (docs/registration.md, R9): renews it, lists those of all
 * replicas, and deletes it at an orderly end.
 */
import type { V1Lease } from '@kubernetes/client-node'
import type { PresenceAnswer, PresenceOrder } from '../../../protocols/messages/registration.ts'
import { presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { within } from '../../runtime/timers.ts'
import type { ApiFailure, CallName, ClusterApi } from '../cluster/cluster-api.ts'
import { entryAnswers } from './entry-calls.ts'

/** How long an orderly end waits for the deletion of the Lease, in milliseconds. */
const endMs = 2000
/** The number of Leases of dead replicas that are deleted between two renewals. */
const mostDeleted = 20
const resource = 'leases.coordination.k8s.io'
const prefix = 'mesh-replica-'

/** Where the Lease is, and whose it is. */
export interface PresenceParts {
  readonly api: ClusterApi
  readonly namespace: string
  readonly replica: string
  readonly domain: string
  readonly revision: string
  /** The pod that owns the Lease, so that the orchestrator deletes it when there is no such pod any more; undefined: none. */
  readonly pod?: { readonly name: string; readonly uid: string } | undefined
}

/** The presence of this replica. */
export class ReplicaPresence {
  readonly answers: BoundedAnswers<'replicaPresence' | 'callEntry'>
  readonly #parts: PresenceParts
  readonly #label: string
  /** Where other replicas ask this one; empty: nowhere. */
  address = ''
  /** Takes each list of all Leases, with the time at which it was asked for in monotonic milliseconds. */
  listed: (leases: PresenceAnswer, askedAt: number) => void = () => undefined
  /** The Lease as it was last written. */
  #lease: V1Lease | undefined
  #isClosed = false

  constructor(parts: PresenceParts) {
    this.#parts = parts
    this.answers = { replicaPresence: (order) => this.#present(order), ...entryAnswers(parts.api, parts.domain) }
    this.#label = `discovery.${parts.domain}/replica`
  }

  /** The name of this replica. */
  get replica(): string {
    return this.#parts.replica
  }

  /** Deletes the Lease, so that others know at once that this replica is gone. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { replica } = this.#parts
    if (this.#lease) await within(endMs, this.#delete({ name: replica, version: '' }))
    this.#lease = undefined
  }

  async #present({ dead }: PresenceOrder): Promise<PresenceAnswer> {
    if (this.#isClosed) throw new Error('the process ends')
    const askedAt = monotonicMs()
    await this.#renew()
    // The next renewal does not wait for many deletions.
    for (const lease of dead.slice(0, mostDeleted)) await this.#delete(lease)
    const { api, namespace } = this.#parts
    const { items } = await api.call(
      { verb: 'list', resource },
      (library) => library.CoordinationV1Api,
      (leases) => leases.listNamespacedLease({ namespace, labelSelector: `${this.#label}=true` }),
    )
    const leases = items.flatMap(({ metadata }) => {
      const { name = '', resourceVersion: version = '', annotations = {} } = metadata ?? {}
      const { [this.#annotation('address')]: address = '', [this.#annotation('revision')]: revision = '' } = annotations
      return name.startsWith(prefix) ? [{ name: name.slice(prefix.length), version, address, revision }] : []
    })
    this.listed(leases, askedAt)
    return leases
  }

  #annotation(name: string): string {
    return `discovery.${this.#parts.domain}/${name}`
  }

  async #renew(): Promise<void> {
    try {
      this.#lease = this.#lease ? await this.#update(this.#lease) : await this.#create()
    } catch (error) {
      const { isConflict, isMissing } = error as ApiFailure
      if (!isConflict && !isMissing) throw error
      // A call that seemed to have failed was carried out, or somebody has deleted the Lease.
      this.#lease = isMissing ? await this.#create() : await this.#update(await this.#read())
    }
  }

  #name(verb: CallName['verb'], name = this.#parts.replica): CallName {
    return { verb, resource, object: `${this.#parts.namespace}/${prefix}${name}` }
  }

  async #spec(): Promise<NonNullable<V1Lease['spec']>> {
    const { V1MicroTime } = await import('@kubernetes/client-node')
    return { holderIdentity: this.#parts.replica, leaseDurationSeconds: presenceTimes.deadMs / 1000, renewTime: new V1MicroTime() }
  }

  async #create(): Promise<V1Lease> {
    const { api, namespace, pod, replica } = this.#parts
    const spec = await this.#spec()
    const annotations = {
      [this.#annotation('revision')]: this.#parts.revision,
      ...(this.address !== '' && { [this.#annotation('address')]: this.address }),
    }
    const owners = pod && { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', ...pod }] }
    const metadata = { name: `${prefix}${replica}`, namespace, labels: { [this.#label]: 'true' }, annotations, ...owners }
    return api.call(
      this.#name('create'),
      (library) => library.CoordinationV1Api,
      (leases) => leases.createNamespacedLease({ namespace, body: { metadata, spec } }),
    )
  }

  async #update({ metadata }: V1Lease): Promise<V1Lease> {
    const { api, namespace, replica } = this.#parts
    const body: V1Lease = { ...(metadata && { metadata }), spec: await this.#spec() }
    return api.call(
      this.#name('update'),
      (library) => library.CoordinationV1Api,
      (leases) => leases.replaceNamespacedLease({ namespace, name: `${prefix}${replica}`, body }),
    )
  }

  #read(): Promise<V1Lease> {
    const { api, namespace, replica } = this.#parts
    return api.call(
      this.#name('get'),
      (library) => library.CoordinationV1Api,
      (leases) => leases.readNamespacedLease({ namespace, name: `${prefix}${replica}` }),
    )
  }

  /** Deletes a Lease, if it has this version; with an empty one in any. What does not succeed is tried again later, or is no matter. */
  async #delete({ name, version }: PresenceAnswer[number]): Promise<void> {
    const { api, namespace } = this.#parts
    const body = version === '' ? {} : { body: { preconditions: { resourceVersion: version } } }
    await api
      .call(
        this.#name('delete', name),
        (library) => library.CoordinationV1Api,
        (leases) => leases.deleteNamespacedLease({ namespace, name: `${prefix}${name}`, ...body }),
      )
      .catch(() => undefined)
  }
}
