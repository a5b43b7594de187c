/**
 * Registers workloads that name their WorkloadGroup (docs/registration.md): takes connected workloads and their health from the writers
 * (`WorkloadEvent`) and groups and entries from their source (`RegistrationObjectEvent`), and asks the main thread to create, change and delete
 * WorkloadEntries. Tells the writers which workloads cannot be registered (`RegistrationRefused`). No actor waits for it.
 */
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type {
  EntryOutcome,
  RegistrarConfig,
  RegistrationObjectEvent,
  RegistrationRefused,
  WorkloadEvent,
} from '../../../protocols/messages/registration.ts'
import { presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import { type DueCall, type EntryChange, Registrations } from '../../../src/orchestrator/registrations.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Counter, gaugesOf } from '../../runtime/metrics.ts'
import type { ObjectRule } from '../../runtime/register.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The number of calls under way at a time. */
const mostAtOnce = 16
/** The number of entries that machines share of which that is said at a time. */
const mostShared = 10

/** Said when workloads connect and no source tells of groups. */
const unsourced =
  'no workload is registered: no WorkloadGroup is read, since the configuration does not come from the cluster (no orch:// among the configSources of the mesh configuration, or --configDir)'

type Message = WorkloadEvent | RegistrationObjectEvent

/** What sources and writers tell in replays. Connections have a prefix: no id of an object begins with it. */
const told: ObjectRule<Message> = {
  objectOf(message) {
    switch (message.type) {
      case 'WorkloadConnected':
        return { key: `c|${message.connection}`, there: true }
      case 'WorkloadDisconnected':
        return { key: `c|${message.connection}`, there: false }
      case 'WorkloadHealthReported':
        return undefined
      case 'WorkloadGroupChanged':
        return { key: `g|${message.id}`, there: message.workloadGroup !== undefined }
      case 'WorkloadEntryChanged':
        return { key: `e|${message.id}`, there: message.entry !== undefined }
    }
  },
  withdrawal(key) {
    const id = key.slice(2)
    if (key.startsWith('c|')) return { type: 'WorkloadDisconnected', connection: id }
    return key.startsWith('g|')
      ? { type: 'WorkloadGroupChanged', id, workloadGroup: undefined }
      : { type: 'WorkloadEntryChanged', id, entry: undefined }
  },
}

class Registrar implements Behaviour<Message, RegistrationRefused> {
  readonly objects = told
  readonly #context: ActorContext<RegistrarConfig>
  readonly #log: ScopedLogger
  readonly #registrations: Registrations
  readonly #calls: Counter<'change' | 'outcome'>
  readonly #writers = new Map<string, Peer<RegistrationRefused>>()
  /** The writers that have told of all of their connections once. */
  readonly #told = new Set<string>()
  #underWay = 0
  #timer: Timer | undefined
  #presence: Timer | undefined
  #isSoon = false
  #isEnded = false
  /** The sources of groups and entries. */
  readonly #sources = new Set<string>()
  /** Why nothing is registered, the last reason why nothing could be written, and why the replicas are not known. */
  #idle = ''
  #trouble = ''
  #unknown = ''
  /** What is said of entries that several machines share. */
  #shared: readonly string[] = []
  /** Why nothing can be written, as it was noted last. */
  #attended = ''

  constructor(context: ActorContext<RegistrarConfig>) {
    const { config, metrics, log } = context
    this.#context = context
    this.#log = log('wle')
    this.#registrations = new Registrations(config, monotonicMs())
    this.#calls = new Counter({
      name: 'pilot_workload_entry_calls_total',
      help: 'calls about WorkloadEntries of workloads that register themselves, by what they change and what came of them',
      labelNames: ['change', 'outcome'] as const,
      registers: [metrics],
    })
    const gauge = gaugesOf(metrics)
    gauge('pilot_registered_workloads', 'connected workloads that register themselves', () => this.#registrations.counts.connected)
    gauge('pilot_kept_workload_entries', 'WorkloadEntries that this replica keeps', () => this.#registrations.counts.kept)
    gauge('pilot_waiting_workload_entries', 'WorkloadEntries about which a call is due, now or later', () => this.#registrations.counts.waiting)
    // Questions are answered once the actor has started.
    this.#presence = after(0, () => void this.#present())
  }

  linked(peer: Peer<RegistrationRefused>): void {
    if (peer.kind === 'xds-writer') return void this.#writers.set(peer.name, peer)
    this.#sources.add(peer.name)
    this.#checkSources()
  }

  unlinked(peer: Peer): void {
    if (peer.kind !== 'xds-writer') return
    this.#writers.delete(peer.name)
    this.#registrations.ended(peer.name, monotonicMs())
    this.#soon()
  }

  /** A source is no more among those of the mesh configuration. */
  forgotten({ name }: Peer): void {
    this.#sources.delete(name)
  }

  synced(peer: Peer): void {
    if (peer.kind === 'xds-writer') this.#told.add(peer.name)
    else this.#registrations.knowsObjects(monotonicMs())
    if (this.#told.size >= this.#context.config.writers) this.#registrations.knowsConnections()
    this.#soon()
  }

  receive(message: Message, { name }: Peer): void {
    const [registrations, now] = [this.#registrations, monotonicMs()]
    switch (message.type) {
      case 'WorkloadConnected':
        registrations.connected(name, message.connection, message.workload, message.health, now)
        this.#checkSources()
        break
      case 'WorkloadDisconnected':
        registrations.disconnected(name, message.connection, now)
        break
      case 'WorkloadHealthReported':
        registrations.reported(name, message.connection, message.health)
        break
      case 'WorkloadGroupChanged':
        registrations.setGroup(message.id, message.workloadGroup, now)
        break
      case 'WorkloadEntryChanged':
        registrations.setEntry(message.id, message.entry, now)
    }
    this.#soon()
  }

  /** Writes nothing more: the workloads connect to other replicas, which take their entries over. */
  async drain(): Promise<void> {
    this.#isEnded = true
    this.#timer?.cancel()
    this.#presence?.cancel()
  }

  /** Works when the messages of this turn have been taken. */
  #soon(): void {
    if (this.#isSoon) return
    this.#later(0)
    this.#isSoon = true
  }

  #later(ms: number): void {
    this.#timer?.cancel()
    if (!this.#isEnded) this.#timer = after(ms, () => this.#work()).unref()
  }

  /** Refuses what cannot be registered, and makes the calls that are due. */
  #work(): void {
    this.#timer?.cancel()
    this.#isSoon = false
    const at = new Date(wallClockMs()).toISOString()
    while (this.#underWay < mostAtOnce) {
      const due = this.#registrations.next(monotonicMs(), at)
      if (!due) break
      this.#underWay++
      void this.#call(due)
    }
    for (const { writer, connection, code, reason } of this.#registrations.takeRefused())
      this.#writers.get(writer)?.tell({ type: 'RegistrationRefused', connection, code, reason }, `refused|${connection}`)
    this.#tellShared()
    const waitMs = this.#registrations.waitMs(monotonicMs())
    if (this.#underWay < mostAtOnce && waitMs !== undefined) this.#later(Math.max(1, waitMs))
  }

  async #call(due: DueCall): Promise<void> {
    const { order, change } = due
    const outcome = await this.#context
      .askFor(patient, 'callEntry', order)
      .catch((error: Error): EntryOutcome => ({ outcome: 'failed', reason: error.message, concerns: 'all' }))
    this.#underWay--
    this.#calls.inc({ change, outcome: outcome.outcome })
    this.#registrations.answered(due, outcome, monotonicMs(), chance())
    const what = `WorkloadEntry ${order.namespace}/${order.name}`
    if (outcome.outcome === 'failed') this.#failed(outcome, `${what} cannot be ${said[change]}`)
    else this.#log[outcome.outcome === 'done' && change !== 'health' ? 'info' : 'debug'](`${what}: ${said[change]}: ${outcome.outcome}`)
    if (outcome.outcome !== 'failed') this.#succeeded()
    this.#soon()
  }

  #failed({ reason, concerns }: Extract<EntryOutcome, { outcome: 'failed' }>, what: string): void {
    const line = `${concerns === 'object' ? what : 'WorkloadEntries cannot be written'}: ${reason}; it is tried again`
    if (line === this.#trouble) return
    this.#trouble = line
    this.#log.error(line)
    if (concerns === 'all') this.#attend(line)
  }

  #succeeded(): void {
    if (this.#trouble === '') return
    this.#trouble = ''
    this.#attend()
  }

  /** Says that connected workloads wait, where no source tells of groups. Configuration is served once the sources are linked. */
  #checkSources(): void {
    const idle = this.#sources.size > 0 ? '' : unsourced
    if (idle === this.#idle) return
    this.#idle = idle
    if (idle !== '') this.#log.error(idle)
    this.#attend()
  }

  /** Says which machines share an entry, as long as they do. */
  #tellShared(): void {
    const { shared } = this.#registrations
    if (shared.length === this.#shared.length && shared.every((line, index) => line === this.#shared[index])) return
    for (const line of shared.filter((each) => !this.#shared.includes(each)).slice(0, mostShared)) this.#log.warn(line)
    this.#shared = shared
    this.#attend(this.#attended)
  }

  #attend(trouble = ''): void {
    this.#attended = trouble
    this.#context.note(
      attentionNote,
      [this.#idle, trouble, ...this.#shared.slice(0, mostShared)].filter((line) => line !== ''),
    )
  }

  /** Renews the Lease of this replica and looks at those of others, again and again. */
  async #present(): Promise<void> {
    const askedAt = monotonicMs()
    const { keepers, replicas } = this.#registrations
    try {
      const leases = await this.#context.askFor(patient, 'replicaPresence', { dead: replicas.removable(keepers, askedAt) })
      this.#registrations.listed(leases, keepers, askedAt, monotonicMs())
      if (this.#unknown !== '') this.#log.info('the Leases of replicas can be renewed and listed again')
      this.#unknown = ''
      this.#soon()
    } catch (error) {
      const reason = (error as Error).message
      this.#registrations.unlisted(monotonicMs())
      if (reason !== this.#unknown && !this.#isEnded)
        this.#log.error(
          `which replicas live is not known: ${reason}; nothing is registered before it is known once, and others may take this replica for dead`,
        )
      this.#unknown = reason
    }
    if (!this.#isEnded) this.#presence = after(presenceTimes.everyMs, () => void this.#present()).unref()
  }
}

const said: Readonly<Record<EntryChange, string>> = {
  create: 'created',
  'take over': 'taken over',
  mark: 'marked as disconnected',
  delete: 'deleted',
  health: 'given its health',
}

/** The actor definition of the registrar. */
export const actor: ActorDefinition<RegistrarConfig, Message, RegistrationRefused> = {
  kind: 'registrar',
  start: (context) => new Registrar(context),
}
