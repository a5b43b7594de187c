/**
 * Keeps the status of the configuration objects of a cluster while this process leads (docs/status.md): takes the objects from their source
 * (`MeshObjectChanged`), the pushes that have them from the push queue (`ObjectsPublished`), what proxies have taken and refuse from the actor `distribution`
 * (`ProxiesReached`) and what analysis says from whoever emits it (`ObjectAnalysed`), and asks the main thread to write. No actor waits for it.
 */
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type {
  AskedGeneration,
  CountedProxies,
  MeshObjectEvent,
  ObjectAnalysed,
  ObjectsPublished,
  ProxiesReached,
  StatusOutcome,
  StatusWriterConfig,
} from '../../../protocols/messages/object-status.ts'
import { type DueStatus, ObjectStatuses } from '../../../src/status/object-statuses.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter, gaugesOf } from '../../runtime/metrics.ts'
import type { ObjectRule } from '../../runtime/register.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { FollowedTerm } from './followed-term.ts'

/** When the other replicas are asked for counts, in milliseconds: of what is new, of what not all proxies have, and otherwise for what they refuse. */
const askMs = { first: 200, again: 1000, idle: 10_000 }

/** The number of writes under way at a time. */
const mostAtOnce = 16

type Message = MeshObjectEvent | ObjectsPublished | ProxiesReached | ObjectAnalysed

/** What sources and analysis tell in replays. The keys of analysis have a prefix, since a peer may be both. */
const told: ObjectRule<Message> = {
  objectOf(message) {
    if (message.type === 'MeshObjectChanged') return { key: `o${message.id}`, there: message.object !== undefined }
    return message.type === 'ObjectAnalysed' ? { key: `a${message.key}`, there: message.messages !== undefined } : undefined
  },
  withdrawal: (key) =>
    key.startsWith('o')
      ? { type: 'MeshObjectChanged', id: key.slice(1), object: undefined }
      : { type: 'ObjectAnalysed', key: key.slice(1), messages: undefined },
}

class StatusWriter implements Behaviour<Message, never> {
  readonly objects = told
  readonly #context: ActorContext<StatusWriterConfig>
  readonly #statuses: ObjectStatuses
  readonly #term: FollowedTerm
  readonly #writes: Counter<'outcome'>
  readonly asks = {
    /** The proxies of this replica, and those that have generations of objects. Throws while they are not known. */
    counted: (asked: readonly AskedGeneration[]): CountedProxies => {
      const counted = this.#statuses.counted(asked, monotonicMs())
      if (!counted) throw new Error('it has just started: its proxies connect')
      return counted
    },
  }
  #underWay = 0
  /** The next question to the other replicas, and when it is asked. */
  #asking: Timer | undefined
  #askAt = 0
  #isAsking = false
  #timer: Timer | undefined
  /** Whether the timer is for what has been told in this turn. */
  #isSoon = false
  /** The last reason why nothing could be written. */
  #trouble = ''

  constructor(context: ActorContext<StatusWriterConfig>) {
    const { config, metrics, log, askFor } = context
    const now = monotonicMs()
    this.#context = context
    this.#statuses = new ObjectStatuses(config, now + config.settleMs, now)
    this.#writes = new Counter({
      name: 'pilot_status_writes_total',
      help: 'attempts to write the status of configuration objects',
      labelNames: ['outcome'] as const,
      registers: [metrics],
    })
    const gauge = gaugesOf(metrics)
    gauge('pilot_status_waiting_objects', 'configuration objects whose status is to be looked at or written', () =>
      this.#term.now === 0 ? 0 : this.#statuses.counts.waiting,
    )
    gauge('pilot_status_open_objects', 'configuration objects that not all proxies have', () =>
      this.#term.now === 0 ? 0 : this.#statuses.counts.open,
    )
    this.#term = new FollowedTerm({
      ...{ ask: askFor, duty: 'status', log: log('status') },
      changed: () => {
        this.#statuses.again()
        this.#askOthers(askMs.first)
        this.#work()
      },
    })
  }

  unlinked({ kind }: Peer): void {
    if (kind === 'distribution') this.#statuses.reached(undefined)
  }

  receive(message: Message): void {
    switch (message.type) {
      case 'MeshObjectChanged':
        this.#statuses.set(message.id, message.object)
        break
      case 'ObjectsPublished':
        this.#statuses.published(message.push, message.objects, monotonicMs())
        break
      case 'ProxiesReached':
        this.#statuses.withdrawn(message.withdrawn)
        this.#statuses.reached(message.reached)
        break
      case 'ObjectAnalysed':
        this.#statuses.analysed(message.key, message.messages)
    }
    this.#soon()
  }

  async drain(): Promise<void> {
    this.#term.close()
    this.#timer?.cancel()
    this.#asking?.cancel()
  }

  /** Works when the messages of this turn have been taken. */
  #soon(): void {
    if (this.#isSoon) return
    this.#later(0)
    this.#isSoon = true
  }

  #later(ms: number): void {
    this.#timer?.cancel()
    this.#timer = after(ms, () => this.#work()).unref()
  }

  /** Writes what is due. */
  #work(): void {
    this.#timer?.cancel()
    this.#isSoon = false
    // What another replica writes, or nobody has to, is no trouble of this one.
    if (this.#term.now === 0) return this.#untroubled()
    const date = `${new Date(wallClockMs()).toISOString().slice(0, 19)}Z`
    while (this.#underWay < mostAtOnce) {
      const due = this.#statuses.next(monotonicMs(), date)
      if (!due) break
      this.#underWay++
      void this.#write(due)
    }
    this.#askOthers(this.#statuses.waitsForOthers ? askMs.first : this.#statuses.toAsk().length > 0 ? askMs.again : askMs.idle)
    const waitMs = this.#statuses.waitMs(monotonicMs())
    if (this.#underWay < mostAtOnce && waitMs !== undefined) this.#later(waitMs)
    if (this.#underWay === 0 && waitMs === undefined) this.#untroubled()
  }

  /** Has the other replicas asked for their counts and what their proxies refuse, within this time. */
  #askOthers(ms: number): void {
    const { others, reconciled } = this.#context.config
    const at = monotonicMs() + ms
    if (!others || !reconciled || this.#isAsking || (this.#asking && this.#askAt <= at)) return
    this.#asking?.cancel()
    this.#askAt = at
    this.#asking = after(ms, async () => {
      this.#asking = undefined
      this.#isAsking = true
      const asked = this.#statuses.toAsk()
      try {
        if (this.#term.now !== 0) this.#statuses.othersCounted(asked, await this.#context.askFor(patient, 'othersCounted', asked))
      } catch (error) {
        this.#context.log('status').debug(`the other replicas cannot be asked: ${(error as Error).message}`)
      }
      this.#isAsking = false
      this.#soon()
    }).unref()
  }

  async #write(due: DueStatus): Promise<void> {
    const { group, version, plural, namespace, name } = due.object
    const outcome = await this.#context
      .askFor(patient, 'writeStatus', { term: this.#term.now, group, version, plural, namespace, name, patch: due.patch })
      .catch((error: Error): StatusOutcome => ({ outcome: 'failed', reason: error.message, concerns: 'all' }))
    this.#underWay--
    this.#writes.inc({ outcome: outcome.outcome })
    this.#statuses.ended(due, outcome, monotonicMs(), chance())
    const what = `${plural}.${group} ${namespace}/${name}`
    if (outcome.outcome === 'failed') this.#failed(outcome, what)
    else this.#context.log('status').debug(`the status of ${what}: ${outcome.outcome}`)
    if (outcome.outcome === 'written') this.#untroubled()
    this.#soon()
  }

  #failed({ reason, concerns }: Extract<StatusOutcome, { outcome: 'failed' }>, what: string): void {
    const line = `the status of ${concerns === 'object' ? what : 'configuration objects'} cannot be written: ${reason}; it is tried again`
    if (line === this.#trouble) return
    this.#trouble = line
    this.#context.log('status').error(line)
    this.#context.note(attentionNote, [line])
  }

  #untroubled(): void {
    if (this.#trouble === '') return
    this.#trouble = ''
    this.#context.note(attentionNote, [])
  }
}

/** The actor definition of the writer of statuses. */
export const actor: ActorDefinition<StatusWriterConfig, Message, never> = {
  kind: 'status-writer',
  start: (context) => new StatusWriter(context),
}
