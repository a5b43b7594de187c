/**
 * Schedules the pushes of a writer: which connection is sent a response next, with trials and permits (docs/resources.md, Q2), one
 * response per connection at a time.
 */
import { PermitTimeout, trialBytes } from '../../../src/push/pacing/permit-timeout.ts'
import type { SharedPermits } from '../../../src/push/pacing/permits.ts'
import { Throttle } from '../../../src/push/pacing/throttle.ts'
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
  readonly permits: SharedPermits
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
  readonly #throttle: Throttle<Connection>
  readonly #permitTimeout = new PermitTimeout()
  /** Connections with a response that is being sent. */
  readonly #sending = new Set<Connection>()
  #working = false

  constructor(parts: PushParts) {
    this.#parts = parts
    this.#throttle = new Throttle(parts.permits)
  }

  /** Queues a connection for a change first seen at `at` (monotonic milliseconds). {@link work} starts the queued pushes. */
  changed(connection: Connection, at: number): void {
    connection.changedAt = connection.changedAt === 0 ? at : Math.min(connection.changedAt, at)
    this.#throttle.add(connection, monotonicMs(), !connection.trusted)
  }

  /** Checks a connection that sent a request, or for which the wait of flow control is over, and pushes what is due. */
  wake(connection: Connection): void {
    if (connection.pushing) return this.#pump(connection)
    this.#throttle.add(connection, monotonicMs(), !connection.trusted)
    this.work()
  }

  /** Starts queued pushes until the permits are used up. */
  work(): void {
    // A push that completes synchronously calls this method again; the outer loop continues with the next one.
    if (this.#working) return
    this.#working = true
    const started = monotonicMs()
    for (let next = this.#take(); next; next = this.#take()) {
      this.#start(next.item, next.since)
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
      const { sending, stream } = connection
      if (!sending || this.#throttle.isPaused(connection)) continue
      sending.elapsedMs += ms
      this.#parts.permits.alive()
      const bytes = this.#throttle.isOnTrial(connection) ? Math.min(trialBytes, sending.bytes) : sending.bytes
      if (this.#permitTimeout.isOver({ elapsed: sending.elapsedMs, still: stream.stillMs, bytes })) this.#continueWithoutPermit(connection)
    }
    this.work()
    return this.#sending.size > 0
  }

  /** Connections that make no progress on a response at present, or that are sent one without a permit because they are slow. */
  slow(): SlowConnection[] {
    return [...this.#sending].flatMap((connection) => slowConnection(connection, this.#throttle.releasedEarly.has(connection)) ?? [])
  }

  /** Removes a closed connection. */
  drop(connection: Connection): void {
    connection.heldTimer?.cancel()
    this.#sending.delete(connection)
    this.#throttle.drop(connection)
    connection.pushing = false
  }

  /** Returns the next connection to push to. When all permits are in use, {@link work} is called again as soon as one is released. */
  #take() {
    const { permits } = this.#parts
    const next = this.#throttle.take()
    if (next) return next
    if (this.#throttle.waiting === 0) permits.satisfied()
    if (this.#throttle.waiting === 0) return undefined
    // Repeated each time: an earlier wait may still be pending although its permit was acquired in another way since.
    const since = permits.want()
    const freed = this.#throttle.take()
    if (!freed) permits.whenFreed(since, () => this.work())
    return freed
  }

  /** Begins a push, on trial or with a permit, or continues a push that waited for its permit. */
  #start(connection: Connection, since: number): void {
    const { stream, sending } = connection
    const now = monotonicMs()
    if (sending) sending.pausedMs += now - since
    if (!connection.pushing) {
      if (connection.changedAt > 0) this.#parts.metrics.queueTime.observe((now - since) / 1000)
      connection.pushedSince = connection.changedAt
      connection.changedAt = 0
      connection.pushing = true
    }
    if (this.#throttle.isOnTrial(connection)) stream.beginTrial(trialBytes, () => this.#passed(connection))
    else stream.endTrial()
    this.#pump(connection)
  }

  /** The bytes of a connection's trial have been delivered: the connection is trusted and waits for a permit. */
  #passed(connection: Connection): void {
    connection.trusted = true
    this.#throttle.passed(connection, monotonicMs())
    this.work()
  }

  /** A slow connection loses its permit, or gets none, and is sent the rest without one. Its next push begins with a trial. */
  #continueWithoutPermit(connection: Connection): void {
    connection.trusted = false
    this.#throttle.releaseEarly(connection)
    connection.stream.endTrial()
  }

  /** Sends due responses one after the other. Changes that come while one is being sent are seen after it. */
  #pump(connection: Connection): void {
    if (connection.sending || !connection.pushing) return
    // The stream was ended, and an invalid request must not be reported twice.
    if (connection.stream.status !== undefined) return this.#done(connection, 'failed')
    const now = monotonicMs()
    const response = this.#next(connection, now)
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
      this.#permitTimeout.record(elapsed, length)
      this.#pump(connection)
    })
  }

  #next(connection: Connection, now: number): Response | undefined {
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
    if (!connection.pushing) return
    connection.pushing = false
    const { pushedSince, changedAt } = connection
    if (end === 'complete') this.#parts.settled(connection)
    if (pushedSince > 0 && end === 'complete') this.#parts.metrics.convergence.observe(Math.max(0, monotonicMs() - pushedSince) / 1000)
    if (pushedSince > 0 && end === 'held') connection.changedAt = changedAt === 0 ? pushedSince : Math.min(changedAt, pushedSince)
    this.#throttle.done(connection, !connection.trusted)
    this.work()
  }
}
