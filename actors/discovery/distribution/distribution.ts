/**
 * What became of the configuration: consumes the pushes of the push queue (`PushEvent`), what it withdraws from proxies (`ObjectsWithdrawn`), and the reports of the writers (`ProxiesReported`),
 * and, while it is
 * watched, what happens to their proxies (`ProxyEventsReported`); answers which proxies have which version, and what became of the last pushes; emits to
 * the status writer how many proxies have which push (`ProxiesReached`); logs what changes of configuration did. It runs on the main thread, where it delays no push.
 * When it dies, the writers report all of their proxies again, and the pushes before are forgotten.
 */
import { randomBytes } from 'node:crypto'
import type { DistributionCommand, ProxiesReported, PushEvent, PushUpdates } from '../../../protocols/messages/distribution.ts'
import type { ObjectsWithdrawn, ProxiesReached } from '../../../protocols/messages/object-status.ts'
import type { ProxyEvent, ProxyEventsAnswer, ProxyEventsReported } from '../../../protocols/messages/proxy-events.ts'
import { type KnownProxy, ProxyVersions } from '../../../src/push/distribution/proxy-versions.ts'
import { PushRecord } from '../../../src/push/distribution/push-record.ts'
import { nodeMessage } from '../../../src/xds/status/status-messages.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { Counter, gaugesOf } from '../../runtime/metrics.ts'
import { within } from '../../runtime/timers.ts'
import { ChangeLog } from './change-log.ts'
import { ProxyEvents } from './proxy-events.ts'
import { ReachedPushes } from './reached-pushes.ts'

/** The number of pushes that are kept. */
const keptPushes = 100
/** Maximum time for which a later change is waited for, in milliseconds: well below the deadline of questions. */
const longestWaitMs = 3000

type Message = PushEvent | ObjectsWithdrawn | ProxiesReported | ProxyEventsReported

/** The versions that a proxy has acknowledged, as `config_distribution` shows them. */
export interface ProxyDigests {
  readonly connection: string
  readonly nodeId: string
  readonly namespace: string
  /** By type URL the digest of all objects in the version that was acknowledged last. */
  readonly digests: Readonly<Record<string, string>>
}

type Sent = DistributionCommand | ProxiesReached

class Distribution implements Behaviour<Message, Sent> {
  readonly #versions = new ProxyVersions()
  readonly #reached = new ReachedPushes(this.#versions)
  readonly #pushes = new PushRecord(keptPushes, randomBytes(4).toString('hex'))
  readonly #events = new ProxyEvents()
  readonly #changes: ChangeLog
  readonly #reports: Counter
  /** Resolved with the next change of a push. */
  #next = Promise.withResolvers<void>()

  constructor({ metrics, log }: ActorContext<object>) {
    const gauge = gaugesOf(metrics)
    const [pushes, versions] = [this.#pushes, this.#versions]
    this.#changes = new ChangeLog(
      {
        outstandingOf: (push) => pushes.outstandingOf(push),
        outcome: (push) => pushes.outcome(push),
        isApplied: (push) => pushes.isApplied(push),
        get proxies() {
          return versions.size
        },
      },
      log('processing'),
    )
    this.#reports = new Counter({ name: 'pilot_distribution_reports_total', help: 'reports of writers about their proxies', registers: [metrics] })
    gauge('pilot_push_outstanding_proxies', 'proxies that owe an answer to the last push of changes', () => this.#pushes.outstanding)
  }

  readonly asks = {
    /** The events of proxies after a cursor; if there are none, waits for one up to `waitMs` milliseconds. */
    proxyEvents: (cursor: string, waitMs: number): Promise<ProxyEventsAnswer> => this.#events.since(cursor, waitMs),
    /** What each proxy has acknowledged. */
    digests: (): ProxyDigests[] =>
      Array.from(this.#versions.all(), ({ connection, nodeId, namespace, types }) => ({
        connection,
        nodeId,
        namespace,
        digests: Object.fromEntries(types.flatMap(({ typeUrl, version }) => (version ? [[typeUrl, version.digest]] : []))),
      })),
    /** The pushes that changed after a cursor; if there are none, waits for one up to `waitMs` milliseconds. */
    pushes: async (cursor: string, waitMs: number): Promise<PushUpdates> => {
      const until = monotonicMs() + Math.min(waitMs, longestWaitMs)
      for (;;) {
        const updates = this.#pushes.since(cursor, { monotonic: monotonicMs(), wall: wallClockMs() })
        const restMs = until - monotonicMs()
        if (updates.pushes.length > 0 || updates.dropped > 0 || !(restMs > 0)) return updates
        await within(restMs, this.#next.promise)
      }
    },
  }

  linked(peer: Peer<Sent>): void {
    if (peer.kind === 'status-writer') this.#reached.linked(peer)
    if (peer.kind !== 'xds-writer') return
    this.#reached.expects(peer.name)
    this.#events.linked(peer)
  }

  receive(message: Message, from: Peer<Sent>): void {
    const before = this.#pushes.sequence
    switch (message.type) {
      case 'PushPublished':
        this.#pushes.published(message.push)
        this.#changes.published(message.push)
        break
      case 'ObjectsWithdrawn':
        return this.#reached.withdrawn(message.objects)
      case 'NothingPublished':
        return this.#changes.unneeded(message.changes)
      case 'RefusalBlamed':
        this.#pushes.blamed(message.writer, message.connection, message.typeUrl, message.objects)
        break
      case 'ProxyEventsReported':
        return this.#events.receive(message, from)
      case 'ProxiesReported': {
        this.#reports.inc()
        const { reported, left } = this.#versions.report(from.name, message)
        this.#pushes.reported(from.name, reported)
        this.#pushes.left(from.name, left)
        this.#pushes.applied(this.#versions.appliedByAll)
        if (message.isWhole) this.#reached.knows(from.name)
        this.#reached.changed()
        this.#changes.changed()
        from.tell({ type: 'ReportTaken' }, 'taken')
      }
    }
    this.#tell(before)
  }

  unlinked({ kind, name }: Peer): void {
    if (kind === 'status-writer') this.#reached.unlinked()
    if (kind !== 'xds-writer') return
    const before = this.#pushes.sequence
    const left = this.#versions.drop(name)
    this.#pushes.left(name, left)
    this.#pushes.applied(this.#versions.appliedByAll)
    this.#reached.knows(name)
    this.#reached.changed()
    this.#changes.changed()
    this.#events.unlinked(name, left.map(disconnected))
    this.#tell(before)
  }

  #tell(before: number): void {
    if (this.#pushes.sequence === before) return
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }
}

/** The event of a proxy that has lost its stream with its writer. */
const disconnected = ({ nodeId, namespace }: KnownProxy): ProxyEvent => ({
  ...{ kind: 'disconnect', namespace, nodeId },
  message: nodeMessage({ id: nodeId, metadata: {}, locality: '' }),
})

/** The actor definition of the record of distribution. */
export const actor: ActorDefinition<object, Message, Sent> = {
  kind: 'distribution',
  start: (context) => new Distribution(context),
}
