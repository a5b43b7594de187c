/** Stands for election on one Lease: does what the state machine of the election says, and tells it what comes of that. */
import type { V1Lease } from '@kubernetes/client-node'
import { Election, type ElectionAction, type ElectionInput, electionTimes, type SeenLease } from '../../../src/orchestrator/election.ts'
import { groupResource, inNamespaces, named, type Resource } from '../../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../../src/orchestrator/responses.ts'
import { chance } from '../../runtime/chance.ts'
import { readClocks } from '../../runtime/clock.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { ApiFailure, CallName, ClusterApi } from '../cluster/cluster-api.ts'
import type { FollowedResource } from '../cluster/followed-resource.ts'

/** What a candidate needs, and whom it tells. */
export interface CandidateParts {
  readonly api: ClusterApi
  readonly namespace: string
  readonly lease: string
  /** Unique among all replicas and their starts. */
  readonly identity: string
  /** A term begins. */
  began(term: number): void
  /** The term is over. */
  ended(reason: string): void
  /** A request about the Lease has failed. */
  failed(reason: string): void
  /** Requests about the Lease succeed again. */
  recovered(): void
  /** The Lease cannot be watched: that it was given back is noticed when it is read next. */
  unwatched(reason: string): void
}

/** The time of elections goes on while the machine sleeps: somebody else may have taken the Lease meanwhile. */
const electionMs = (): number => readClocks().boot
/** How long an orderly end waits for a request that is under way, in milliseconds. */
const pollMs = 20

const resource = 'leases.coordination.k8s.io'

/** One Lease, as it is watched. */
function leaseNamed(namespace: string, name: string): Resource {
  const all = groupResource('Lease', 'coordination.k8s.io', 'v1', 'leases')
  const [ofNamespace = all] = inNamespaces(all, [namespace])
  return named(ofNamespace, name)
}

/** A candidate for one Lease. */
export class LeaseCandidate {
  readonly #parts: CandidateParts
  readonly #election: Election
  /** The Lease as it was last read or written, with the labels that others have put on it. */
  #lease: V1Lease | undefined
  #wait: Timer | undefined
  #check: Timer | undefined
  /** The watch of the Lease, which only tells that it was given back: who leads follows from what is read and written. */
  readonly #watch: FollowedResource<V1Lease>
  #isUnderWay = false
  #hasFailed = false
  #hasStarted = false

  constructor(parts: CandidateParts) {
    this.#parts = parts
    this.#election = new Election(parts.identity, chance)
    this.#watch = this.#watched()
  }

  /** Whether this process leads at this moment. */
  get isLeading(): boolean {
    return this.#election.leadsAt(electionMs())
  }

  /** Stands for election, for the first time or again. */
  start(): void {
    if (this.#hasStarted) return this.#tell({ type: 'resume' })
    this.#hasStarted = true
    this.#tell({ type: 'due' })
    this.#watch.start(0)
  }

  /** Stands no more, until it is started again. The term is over when this returns. */
  stop(reason: string): void {
    this.#wait?.cancel()
    this.#tell({ type: 'stop', reason })
  }

  /** Ends the watch of the Lease. */
  close(): void {
    this.#watch.close()
  }

  /**
   * Gives the Lease back, so that another one takes it at once. Called after {@link LeaseCandidate.stop}, when nothing is being written any more;
   * without effect when it has been started again.
   */
  async release(): Promise<void> {
    while (this.#isUnderWay) await new Promise<void>((resolve) => after(pollMs, resolve))
    this.#tell({ type: 'release' })
    while (this.#isUnderWay) await new Promise<void>((resolve) => after(pollMs, resolve))
  }

  #watched(): FollowedResource<V1Lease> {
    const { api, namespace, lease, unwatched } = this.#parts
    const nothing = () => undefined
    return api.followed<V1Lease>(leaseNamed(namespace, lease), {
      read: (value) => {
        const known = keyAndVersion(value)
        return known && { key: known[0], version: known[1], object: value as V1Lease }
      },
      set: (_, { spec }) => {
        if (!spec?.holderIdentity) this.#tell({ type: 'released' })
      },
      failed: (verb, _, reason) => unwatched(`${verb} of ${resource} ${namespace}/${lease} failed: ${reason}`),
      // A Lease that is gone is no Lease that was given back.
      ...{ remove: nothing, same: nothing, complete: nothing, recovered: nothing, audited: nothing, auditFailed: nothing, settled: nothing },
    })
  }

  #tell(input: ElectionInput): void {
    for (const action of this.#election.take(input, electionMs())) this.#do(action)
    this.#check?.cancel()
    const { until } = this.#election
    if (until !== undefined) this.#check = after(until - electionMs() + 1, () => this.#tell({ type: 'check' })).unref()
  }

  #do(action: ElectionAction): void {
    switch (action.type) {
      case 'lead':
        return this.#parts.began(action.term)
      case 'yield':
        return this.#parts.ended(action.reason)
      case 'wait':
        this.#wait?.cancel()
        this.#wait = after(action.ms, () => this.#tell({ type: 'due' })).unref()
        return
      case 'read':
        return this.#request(this.#read())
      case 'write':
        return this.#request(this.#write(action))
    }
  }

  #request(request: Promise<ElectionInput>): void {
    this.#isUnderWay = true
    request
      .catch((error: ApiFailure): ElectionInput => {
        this.#hasFailed = true
        this.#parts.failed(error.message)
        // A connection that has died silently is noticed late.
        if (error.code === 0) this.#parts.api.reconnect()
        return { type: 'failed' }
      })
      .then((input) => {
        this.#isUnderWay = false
        this.#tell(input)
        // A Lease that can be read may be one that cannot be written, which is asked next.
        if (input.type === 'failed' || !this.#hasFailed || this.#isUnderWay) return
        this.#hasFailed = false
        this.#parts.recovered()
      })
  }

  async #read(): Promise<ElectionInput> {
    const { api, namespace, lease: name } = this.#parts
    try {
      const lease = await api.call(
        this.#name('get'),
        (library) => library.CoordinationV1Api,
        (leases) => leases.readNamespacedLease({ namespace, name }),
      )
      this.#lease = lease
      return { type: 'read', lease: seen(lease) }
    } catch (error) {
      if (!(error as ApiFailure).isMissing) throw error
      return { type: 'read', lease: undefined }
    }
  }

  async #write({ over, change }: Extract<ElectionAction, { type: 'write' }>): Promise<ElectionInput> {
    const { api, namespace, lease: name, identity } = this.#parts
    const { V1MicroTime } = await import('@kubernetes/client-node')
    const before = over === undefined ? undefined : this.#lease
    const now = new V1MicroTime()
    const isNew = change === 'acquire'
    const body: V1Lease = {
      ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
      metadata: over === undefined ? { name, namespace } : { ...before?.metadata, name, namespace, resourceVersion: over },
      spec: {
        ...before?.spec,
        holderIdentity: change === 'release' ? '' : identity,
        leaseDurationSeconds: electionTimes.leaseMs / 1000,
        renewTime: now,
        leaseTransitions: (before?.spec?.leaseTransitions ?? 0) + (isNew && before ? 1 : 0),
        ...(isNew ? { acquireTime: now } : {}),
      },
    }
    try {
      const lease = await api.call(
        this.#name(over === undefined ? 'create' : 'update'),
        (library) => library.CoordinationV1Api,
        (leases) =>
          over === undefined ? leases.createNamespacedLease({ namespace, body }) : leases.replaceNamespacedLease({ namespace, name, body }),
      )
      this.#lease = lease
      const version = lease.metadata?.resourceVersion
      return version ? { type: 'written', version } : { type: 'failed' }
    } catch (error) {
      const failure = error as ApiFailure
      // A Lease that is to be replaced and is gone was removed; the namespace of one that is to be made may be missing.
      if (failure.isConflict || (failure.isMissing && over !== undefined)) return { type: 'conflict' }
      throw error
    }
  }

  #name(verb: CallName['verb']): CallName {
    const { namespace, lease } = this.#parts
    return { verb, resource, object: `${namespace}/${lease}` }
  }
}

function seen({ metadata, spec }: V1Lease): SeenLease {
  return {
    version: metadata?.resourceVersion ?? '',
    holder: spec?.holderIdentity ?? '',
    durationMs: (spec?.leaseDurationSeconds ?? 0) * 1000,
  }
}
