/**
 * The other replicas of discovery (docs/operation.md, A1 to A6): which there are by their Leases, and what they answer. One that does not answer within
 * the bounds is named, and delays nobody for longer.
 */
import type { PresenceAnswer } from '../../../protocols/messages/registration.ts'
import type { OfOthers, ReplicaQuestion, ReplicaState } from '../../../protocols/messages/replicas.ts'
import { printable } from '../../../src/logging/layout.ts'
import { silence } from '../../../src/model/replica-silence.ts'
import { LiveReplicas, presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import { isAnswerOf, replicaAddress } from '../../../src/orchestrator/replica-answers.ts'
import { reasonOf } from '../../http/single-request.ts'
import { askReplica, replicaBounds } from './replica-port.ts'
import { Unavailable } from './unavailable.ts'

/** The number of replicas that are asked, and of questions to all of them that are under way at a time. */
const most = { replicas: 32, questions: 8 }

/** The time for the explanation of a resource, for which a thread is started, in milliseconds. */
const explanationMs = 5000

/** A replica that has what was asked for, and has not answered. */
export class SilentReplica extends Unavailable {
  constructor(replica: string, reason: string) {
    super(`replica ${replica} ${silence(reason)}: ${reason}`)
  }
}

/** Why a replica has not answered, on one line: it may have said anything. */
const toldReason = (error: unknown): string => printable(reasonOf(error)).slice(0, 300)

/** What the exchange depends on. */
export interface OtherReplicasParts {
  /** The name of this replica. */
  readonly own: string
  readonly revision: string
  readonly key: Buffer
  /** How a replica is asked, which tests change. */
  readonly ask?: typeof askReplica
}

/** The replicas of the same revision beside this one. */
export class OtherReplicas {
  readonly #parts: OtherReplicasParts
  readonly #live: LiveReplicas
  readonly #ask: typeof askReplica
  #others: PresenceAnswer = []
  #isListed = false
  #underWay = 0

  constructor(parts: OtherReplicasParts) {
    this.#parts = parts
    this.#ask = parts.ask ?? askReplica
    this.#live = new LiveReplicas(parts.own)
  }

  /** The name of this replica. */
  get own(): string {
    return this.#parts.own
  }

  /** Takes a list of the Leases of all replicas, which was asked for at `askedAt`. Times are monotonic milliseconds. */
  listed(leases: PresenceAnswer, askedAt: number, now: number): void {
    this.#isListed = true
    this.#live.listed(leases, [], askedAt, now)
    const { own, revision } = this.#parts
    const places = this.#places(leases)
    this.#others = leases
      .filter(({ name, address = '', revision: of = '' }) => name !== own && of === revision && this.#changedAt(name) >= (places.get(address) ?? 0))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  /** Whether the Leases have been listed: before that no other replica is known. */
  get isListed(): boolean {
    return this.#isListed
  }

  /** Whether the Lease of a replica has not been renewed for so long that its proxies are elsewhere. */
  isDead(name: string): boolean {
    return this.#live.deadSince(name) !== undefined
  }

  /** The Leases that nobody renews any more. */
  removable(now: number): PresenceAnswer {
    return this.#live.removable(new Set(), now)
  }

  /** When the Lease of a replica changed last that has an address, by address. Another one with that address has gone: its own does not change any more. */
  #places(leases: PresenceAnswer): Map<string, number> {
    const places = new Map<string, number>()
    for (const { name, address = '' } of leases) if (address !== '') places.set(address, Math.max(places.get(address) ?? 0, this.#changedAt(name)))
    return places
  }

  /** The Lease of this replica is always the later one. */
  #changedAt(name: string): number {
    return name === this.#parts.own ? Number.POSITIVE_INFINITY : (this.#live.changedAt(name) ?? 0)
  }

  /** Asks all others at once. Resolves within the bounds; which of them have not answered is in the answer. */
  ask<Value>(question: ReplicaQuestion, ...details: readonly unknown[]): Promise<OfOthers<Value>> {
    return this.askEach<Value>(question, () => details)
  }

  /** The same, with details of its own for each replica. */
  async askEach<Value>(question: ReplicaQuestion, detailsFor: (replica: string) => readonly unknown[]): Promise<OfOthers<Value>> {
    const isTooMuch = this.#underWay >= most.questions
    this.#underWay++
    // One whose Lease is not renewed is not asked, and takes no place.
    const further = new Set(this.#others.filter(({ name }) => !this.isDead(name)).slice(most.replicas))
    try {
      const answers: { replica: string; value: Value }[] = []
      const replicas = await Promise.all(
        this.#others.map(async (lease): Promise<ReplicaState> => {
          const { name } = lease
          try {
            if (isTooMuch) throw new Error('it was not asked: too many questions are under way here')
            if (further.has(lease)) throw new Error(`it was not asked: there are more than ${most.replicas} other replicas`)
            answers.push({ replica: name, value: (await this.#askOne(name, question, detailsFor(name))) as Value })
            return { name, answered: true, reason: '' }
          } catch (error) {
            return { name, answered: false, reason: toldReason(error) }
          }
        }),
      )
      return { answers, replicas }
    } finally {
      this.#underWay--
    }
  }

  /** Asks one of them. Rejects with {@link SilentReplica} when it is unknown, dead, or does not answer within the bounds. */
  async askOne(name: string, question: ReplicaQuestion, ...details: readonly unknown[]): Promise<unknown> {
    try {
      return await this.#askOne(name, question, details)
    } catch (error) {
      throw new SilentReplica(name, toldReason(error))
    }
  }

  async #askOne(name: string, question: ReplicaQuestion, details: readonly unknown[]): Promise<unknown> {
    const lease = this.#others.find((other) => other.name === name)
    if (!lease) throw new Error(`there is no replica ${name} any more`)
    if (this.isDead(name)) throw new Error(`its Lease has not been renewed for ${presenceTimes.deadMs / 1000} s`)
    const address = replicaAddress(lease.address ?? '')
    if (!address) throw new Error('its Lease has no address (MESHD_REPLICA_ADDRESS)')
    const bounds = { ...replicaBounds, ...(question === 'explainResource' && { ms: explanationMs }) }
    const value = await this.#ask({ ...address, key: this.#parts.key }, question, details, bounds)
    if (!isAnswerOf(question, value)) throw new Error('its answer has another form than it should: it may be another version')
    return value
  }
}
