/**
 * The elections of this process, on the main thread: for each duty that a part of the service has, one Lease in the namespace of the control
 * plane (docs/operation.md, L1 to L5). Other threads ask for the term (`leadership`).
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Duty } from '../../../protocols/messages/leadership.ts'
import { leaseName } from '../../../src/orchestrator/duties.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Counter, Gauge, type MetricRegistry } from '../../runtime/metrics.ts'
import { after, type Timer, within } from '../../runtime/timers.ts'
import { ClusterApi, type RequestSettings } from '../cluster/cluster-api.ts'
import type { ClusterConnection } from '../cluster/cluster-connection.ts'
import { Leadership } from './leadership.ts'
import { LeaseCandidate } from './lease-candidate.ts'
import { standWhileReady, type UnreadyTimes, unreadyTimes } from './stand-while-ready.ts'

/** What elections are made of. */
export interface ElectionsParts {
  readonly connection: Pick<ClusterConnection, 'access'>
  readonly settings: RequestSettings
  /** What leaders write with. */
  readonly api: ClusterApi
  /** What they write with for duties whose writes must not delay others. */
  readonly apiOf?: { readonly [Each in Duty]?: ClusterApi }
  /** The namespace of the control plane, and its revision. */
  readonly namespace: string
  readonly revision: string
  /** How this process is named in Leases; empty or undefined: as its machine. */
  readonly name?: string
  readonly log: Logger
  readonly metrics: MetricRegistry
}

/** The election of one duty. */
interface Standing {
  readonly lease: string
  readonly candidate: LeaseCandidate
  readonly leadership: Leadership
}

/** The longest time, in milliseconds, of a request about a Lease: two must fit into the time until which a Lease has to be renewed. */
const callMs = 4000
/** How long an orderly end waits for what is being written, and for the Leases to be given back, in milliseconds. */
const endMs = { writes: 3000, release: 2000 }

/** Stands for election, for each duty that is asked for, from the moment at which the process is ready ({@link Elections.stand}). */
export class Elections {
  readonly answers: BoundedAnswers<'leadership'> = {
    leadership: (duty, known, asking) => this.#changed(duty, known, asking?.signal, asking?.restMs() ?? 0),
  }
  readonly #parts: ElectionsParts
  /** Leases have a connection and a budget of their own, so that a leader with much to write does not lose its Lease by that. */
  readonly #api: ClusterApi
  readonly #identity: string
  readonly #standing = new Map<Duty, Standing>()
  readonly #terms: Counter<'lease'>
  readonly #failures: Counter<'lease'>
  #looking: Timer | undefined
  #isStanding = false
  #isClosed = false

  constructor(parts: ElectionsParts) {
    this.#parts = parts
    this.#identity = `${parts.name || hostname()}_${randomUUID()}`
    this.#api = new ClusterApi(parts.connection, parts.settings, callMs)
    this.#api.logTo(parts.log('klog'))
    const common = { labelNames: ['lease'] as const, registers: [parts.metrics] }
    const standing = () => this.#standing.values()
    new Gauge({
      name: 'pilot_leader_election_leading',
      help: 'whether this process leads, by Lease',
      ...common,
      collect() {
        for (const { lease, leadership } of standing()) this.set({ lease }, leadership.term > 0 ? 1 : 0)
      },
    })
    this.#terms = new Counter({ name: 'pilot_leader_election_terms_total', help: 'terms in which this process led, by Lease', ...common })
    this.#failures = new Counter({ name: 'pilot_leader_election_failures_total', help: 'failed requests about Leases', ...common })
  }

  /** Stands for election while the process is ready ({@link standWhileReady}), until this is closed. */
  standWhile(isReady: () => boolean, times: Partial<UnreadyTimes> = {}): void {
    this.#looking = standWhileReady({ elections: this, isReady, log: this.#parts.log('orch'), times: { ...unreadyTimes, ...times } })
  }

  /**
   * Stands for election from now on: the process is ready, and knows what it would write. Before, it would keep the Lease from replicas that
   * serve already, and do nothing with it.
   */
  stand(): void {
    if (this.#isStanding || this.#isClosed) return
    this.#isStanding = true
    for (const { candidate } of this.#standing.values()) candidate.start()
  }

  /**
   * Leads no more and stands for election no more, until {@link Elections.stand} is called again. Waits for what is being written and gives the
   * Leases back, as {@link Elections.close} does.
   */
  async withdraw(reason: string): Promise<void> {
    if (!this.#isStanding) return
    this.#isStanding = false
    await this.#giveBack(reason)
  }

  /** Returns the leadership of a duty, for which the process stands for election as soon as it may. */
  of(duty: Duty): Leadership {
    const known = this.#standing.get(duty)
    if (known) return known.leadership
    const { apiOf, namespace, revision } = this.#parts
    const api = apiOf?.[duty] ?? this.#parts.api
    const lease = leaseName(duty, revision)
    const leadership: Leadership = new Leadership({ duty, api, isLeading: () => candidate.isLeading })
    const candidate = new LeaseCandidate({ api: this.#api, namespace, lease, identity: this.#identity, ...this.#eventsOf(lease, leadership) })
    this.#standing.set(duty, { lease, candidate, leadership })
    if (this.#isStanding && !this.#isClosed) candidate.start()
    return leadership
  }

  /** Leads no more, waits for what is being written, and gives the Leases back, so that other replicas take them at once. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#looking?.cancel()
    this.#isStanding = false
    for (const { candidate } of this.#standing.values()) candidate.close()
    await this.#giveBack('the process ends')
    this.#api.close()
  }

  async #giveBack(reason: string): Promise<void> {
    const all = [...this.#standing.values()]
    for (const { candidate } of all) candidate.stop(reason)
    await Promise.all(
      all.map(async ({ candidate, leadership }) => {
        await within(endMs.writes, leadership.settled())
        // What has not ended may still be carried out: then the Lease runs out by itself.
        if (leadership.isSettled && !this.#isStanding) await within(endMs.release, candidate.release())
      }),
    )
  }

  #eventsOf(lease: string, leadership: Leadership) {
    const log = this.#parts.log('orch')
    const where = `lease ${this.#parts.namespace}/${lease}`
    let [said, unwatched] = ['', '']
    return {
      began: (term: number) => {
        this.#terms.inc({ lease })
        log.info(`${where}: this replica (${this.#identity}) leads (${leadership.duty})`)
        leadership.begin(term)
      },
      ended: (reason: string) => {
        leadership.end(!this.#isStanding)
        log.info(`${where}: this replica leads no more (${leadership.duty}): ${reason}`)
      },
      failed: (reason: string) => {
        this.#failures.inc({ lease })
        if (this.#isClosed || reason === said) return
        said = reason
        log.error(`${where}: ${reason}; ${leadership.term > 0 ? 'it leads on until the lease would have to be renewed' : 'it does not lead'}`)
      },
      recovered: () => {
        said = ''
        log.info(`${where}: requests succeed again`)
      },
      unwatched: (reason: string) => {
        if (this.#isClosed || reason === unwatched) return
        unwatched = reason
        log.warn(`${where}: ${reason}; that another replica gives it back is noticed within 9 s`)
      },
    }
  }

  async #changed(duty: Duty, known: number, signal = AbortSignal.abort(), restMs: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = after(restMs / 2, resolve)
    const [ended, over] = [new AbortController(), () => ended.abort()]
    signal.addEventListener('abort', over)
    void promise.then(over)
    try {
      return await this.of(duty).changed(known, ended.signal)
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', over)
    }
  }
}
