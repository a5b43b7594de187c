/**
 * Schedules the pushes of a writer: which connection is sent a response next, with trials and permits (docs/resources.md, Q2), one
 * response per connection at a time.
 */
import { PushBudget } from '../../../src/push/pacing/budget.ts'
import { trialBytes } from '../../../src/push/pacing/permit-timeout.ts'
import type { PermitSource } from '../../../src/push/pacing/permits.ts'
import { responseFrame } from '../../../src/xds/stream/frames.ts'
import type { Response } from '../../../src/xds/stream/session.ts'
import { secretType } from '../../../src/xds/type-urls.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { after, deadlineAfter } from '../../runtime/timers.ts'
import type { Connection, Sending } from './connection.ts'
import { type SlowConnection, slowConnection } from './slow-connections.ts'
import type { WriterMetrics } from './writer-metrics.ts'

/** Maximum time for which pushes are started before the event loop handles other events, in milliseconds. */
const turnMs = 20

/** Dependencies and settings of {@link Pushes}. */
export interface PushParts {
  readonly permits: PermitSource
  readonly metrics: WriterMetrics
  /** After how many milliseconds a type that flow control holds back is checked again. Undefined: flow control is off. */
  readonly flowControlTimeoutMs: number | undefined
  /** Called when a response is being sent: {@link Pushes.charge} must be called periodically from then on. */
  busy(): void
  /** Returns the frame of a response with secrets; it is overwritten once it is sent. */
  secretFrame(response: Response, delta: boolean): Buffer
  /** Called when a response begins to be sent. */
  sent(connection: Connection, response: Response): void
  /** Called when everything was sent that a push made due. */
  settled(connection: Connection): void
  /** Ends a connection because of an invalid request. Rethrows errors that the client did not cause. */
  refuse(connection: Connection, error: unknown): void
}

/** The queue of connections that are due for a push, and the pushes under way. */
export class Pushes {
  readonly #parts: PushParts
  readonly #budget: PushBudget<Connection>
  /** Connections with a response that is being sent. */
  readonly #sending = new Set<Connection>()
  #working = false

  constructor(parts: PushParts) {
    this.#parts = parts
    this.#budget = new PushBudget(parts.permits)
  }

  /** Queues a connection for a change first seen at `at` (monotonic milliseconds). {@link work} starts the queued pushes. */
  changed(connection: Connection, at: number): void {
    connection.changedAt = connection.changedAt === 0 ? at : Math.min(connection.changedAt, at)
    this.#budget.due(connection, monotonicMs())
  }

  /** Checks a connection that sent a request, or for which the wait of flow control is over, and pushes what is due. */
  wake(connection: Connection): void {
    if (connection.turn.isUnderWay) return this.#pump(connection)
    this.#budget.due(connection, monotonicMs())
    this.work()
  }

  /** Starts queued pushes until the permits are used up. */
  work(): void {
    // A push that completes synchronously calls this method again; the outer loop continues with the next one.
    if (this.#working) return
    this.#working = true
    const started = monotonicMs()
    for (let next = this.#next(); next; next = this.#next()) {
      this.#start(next)
      if (monotonicMs() - started < turnMs) continue
      after(0, () => this.work()).unref()
      break
    }
    this.#working = false
  }

  /**
   * Charges the elapsed time to the responses being sent, and releases the permits of those that take too long. Returns whether any
   * response is being sent.
   */
  charge(ms: number): boolean {
    for (const connection of this.#sending) {
      const { sending, stream, turn } = connection
      if (!sending || turn.state === 'paused') continue
      sending.elapsedMs += ms
      // What is left is sent without a permit, and the next push begins with a trial.
      if (this.#budget.charge(connection, { elapsed: sending.elapsedMs, still: stream.stillMs, bytes: sending.bytes })) stream.endTrial()
    }
    this.work()
    return this.#sending.size > 0
  }

  /** Connections that make no progress on a response at present, or that are sent one without a permit because they are slow. */
  slow(): SlowConnection[] {
    return [...this.#sending].flatMap((connection) => slowConnection(connection, connection.turn.state === 'slow') ?? [])
  }

  /** Removes a closed connection. */
  drop(connection: Connection): void {
    connection.heldTimer?.cancel()
    this.#sending.delete(connection)
    this.#budget.gone(connection)
  }

  /** The next connection to push to. When all permits are in use, {@link work} is called again as soon as one is released. */
  #next(): Connection | undefined {
    return this.#budget.next(() => this.work())
  }

  /** Begins a push, on trial or with a permit, or continues a push that waited for its permit. */
  #start(connection: Connection): void {
    const { stream, sending, turn } = connection
    const waited = monotonicMs() - turn.since
    if (turn.isContinued) {
      if (sending) sending.pausedMs += waited
    } else {
      if (connection.changedAt > 0) this.#parts.metrics.queueTime.observe(waited / 1000)
      connection.pushedSince = connection.changedAt
      connection.changedAt = 0
    }
    if (turn.state === 'onTrial') stream.beginTrial(trialBytes, () => this.#passed(connection))
    else stream.endTrial()
    this.#pump(connection)
  }

  /** The bytes of a connection's trial have been delivered: it waits for a permit. */
  #passed(connection: Connection): void {
    this.#budget.passed(connection, monotonicMs())
    this.work()
  }

  /** Sends due responses one after the other. Changes that come while one is being sent are seen after it. */
  #pump(connection: Connection): void {
    if (connection.sending || !connection.turn.isUnderWay) return
    // The stream was ended, and an invalid request must not be reported twice.
    if (connection.stream.status !== undefined) return this.#done(connection, 'failed')
    const now = monotonicMs()
    const response = this.#response(connection, now)
    if (!response) return this.#done(connection, this.#scheduleHeldTypes(connection, now) ? 'held' : 'complete')
    const { length } = response.plan
    const sending: Sending = { bytes: length, elapsedMs: 0, pausedMs: 0 }
    connection.sending = sending
    this.#sending.add(connection)
    this.#parts.busy()
    this.#parts.sent(connection, response)
    const { delta } = connection.session
    const isSecret = response.typeUrl === secretType
    const frame = isSecret ? [this.#parts.secretFrame(response, delta)] : responseFrame(response, delta)
    connection.stream.write(frame, (failed) => {
      if (isSecret) for (const bytes of frame) bytes.fill(0)
      const elapsed = monotonicMs() - now - sending.pausedMs
      connection.sending = undefined
      this.#sending.delete(connection)
      this.#parts.metrics.sent(response.typeUrl, elapsed / 1000, length, failed)
      if (failed) return this.#done(connection, 'failed')
      this.#budget.delivered(elapsed, length)
      this.#pump(connection)
    })
  }

  #response(connection: Connection, now: number): Response | undefined {
    try {
      return connection.session.next(now)
    } catch (error) {
      this.#parts.refuse(connection, error)
      return undefined
    }
  }

  /** Schedules another check for types that are held back. Returns whether any type is. */
  #scheduleHeldTypes(connection: Connection, now: number): boolean {
    connection.heldTimer?.cancel()
    connection.heldTimer = undefined
    if (!connection.session.isDue()) return false
    const { flowControlTimeoutMs } = this.#parts
    const until = connection.session.heldUntil(now) ?? (flowControlTimeoutMs !== undefined ? now + flowControlTimeoutMs : undefined)
    if (until !== undefined) connection.heldTimer = deadlineAfter(until - now, () => this.wake(connection))
    return true
  }

  /** Ends a push: everything was sent, or the rest is held back and becomes part of the next push, or the stream failed. */
  #done(connection: Connection, end: 'complete' | 'held' | 'failed'): void {
    if (!connection.turn.isUnderWay) return
    const { pushedSince, changedAt } = connection
    if (end === 'complete') this.#parts.settled(connection)
    if (pushedSince > 0 && end === 'complete') this.#parts.metrics.convergence.observe(Math.max(0, monotonicMs() - pushedSince) / 1000)
    if (pushedSince > 0 && end === 'held') connection.changedAt = changedAt === 0 ? pushedSince : Math.min(changedAt, pushedSince)
    this.#budget.done(connection)
    this.work()
  }
}
