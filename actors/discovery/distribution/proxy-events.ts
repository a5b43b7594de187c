/**
 * Collects the events of proxies of all writers (`ProxyEventsReported`) while somebody asks for them, and keeps the last ones
 * (docs/xds-protocol.md, "Streams about the service").
 */
import { randomBytes } from 'node:crypto'
import type { DistributionCommand } from '../../../protocols/messages/distribution.ts'
import type { ProxyEvent, ProxyEventsAnswer, ProxyEventsReported } from '../../../protocols/messages/proxy-events.ts'
import { Recent } from '../../../src/model/recent.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer, within } from '../../runtime/timers.ts'

/** The events that are kept: their number and their size in bytes. */
const kept = { items: 20_000, bytes: 16_777_216 }
/** How long events are collected after the last question, in milliseconds. */
const leaseMs = 15_000
/** Maximum time for which an event is waited for in one question, in milliseconds: well below the deadline of questions. */
const longestWaitMs = 3000

/** The writers and what they report. */
export class ProxyEvents {
  readonly #record = new Recent<ProxyEvent>(kept, randomBytes(4).toString('hex'), ({ message }) => message.length)
  readonly #writers = new Map<string, Peer<DistributionCommand>>()
  /** The writers that have confirmed that they report. */
  readonly #reporting = new Set<string>()
  #lease: Timer | undefined
  /** Resolved with the next event or confirmation. */
  #next = Promise.withResolvers<void>()

  /** Whether somebody has asked for events of late. */
  get isWanted(): boolean {
    return this.#lease !== undefined
  }

  linked(writer: Peer<DistributionCommand>): void {
    this.#writers.set(writer.name, writer)
    if (this.isWanted) writer.tell({ type: 'ReportProxyEvents', isWanted: true, isLate: true }, 'report-events')
  }

  /** A writer has ended. `left`: its proxies, which have lost their streams with it. */
  unlinked(writer: string, left: readonly ProxyEvent[]): void {
    this.#writers.delete(writer)
    this.#reporting.delete(writer)
    if (this.isWanted) for (const event of left) this.#record.add(event)
    this.#tell()
  }

  receive({ events, isGap }: ProxyEventsReported, from: Peer<DistributionCommand>): void {
    from.tell({ type: 'ProxyEventsTaken' }, 'events-taken')
    if (!this.isWanted) return
    this.#reporting.add(from.name)
    if (isGap) this.#record.gap()
    for (const event of events) this.#record.add(event)
    this.#tell()
  }

  /**
   * The events after a cursor; if there are none, waits for one up to `waitMs` milliseconds. With an empty cursor resolves, as soon as all
   * writers report, with the cursor to begin from; throws an Error when one does not.
   */
  async since(cursor: string, waitMs: number): Promise<ProxyEventsAnswer> {
    this.#extend()
    const until = monotonicMs() + Math.min(waitMs, longestWaitMs)
    for (;;) {
      const isFirst = cursor === ''
      const { items: events, ...place } = this.#record.since(isFirst ? this.#record.cursor : cursor)
      const answer = { events, ...place }
      const silent = [...this.#writers.keys()].filter((name) => !this.#reporting.has(name))
      if (isFirst ? silent.length === 0 : answer.events.length > 0 || answer.isGap) return answer
      const restMs = until - monotonicMs()
      if (restMs > 0) await within(restMs, this.#next.promise)
      else if (isFirst) throw new Error(`${silent.join(', ')} does not report events`)
      else return answer
    }
  }

  #extend(): void {
    const isNew = !this.isWanted
    this.#lease?.cancel()
    this.#lease = after(leaseMs, () => {
      this.#lease = undefined
      this.#reporting.clear()
      this.#record.gap()
      this.#tellWriters(false)
    }).unref()
    if (isNew) this.#tellWriters(true)
  }

  #tellWriters(isWanted: boolean): void {
    for (const writer of this.#writers.values()) writer.tell({ type: 'ReportProxyEvents', isWanted, isLate: false }, 'report-events')
  }

  #tell(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }
}
