/** Which connections of a writer are sent something, and when: trials and permits (docs/resources.md, Q2), one response after the other. */
import { Patience, trialBytes } from '../../../src/push/pacing/patience.ts'
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

/** How long pushes are begun at a time, in milliseconds: what came meanwhile is heard then. */
const turnMs = 20

/** What pushes need of their writer. */
export interface PushParts {
  readonly permits: SharedPermits
  readonly metrics: WriterMetrics
  /** Milliseconds after which a type that flow control holds back is looked at again; undefined = nothing is held back. */
  readonly flowControl: number | undefined
  /** A response is under way: {@link Pushes.charge} is to be called as time passes. */
  busy(): void
  /** The frame of a response with secrets, which is cleared when it has left. */
  secretFrame(response: Response, delta: boolean): Buffer
  /** A connection is ended for what it asked. Throws what is not its fault. */
  refuse(connection: Connection, error: unknown): void
}

/** The connections of a writer that are to be sent something, and those that are being sent something. */
export class Pushes {
  readonly #parts: PushParts
  readonly #throttle: Throttle<Connection>
  readonly #patience = new Patience()
  /** Connections with a response on its way out. */
  readonly #sending = new Set<Connection>()
  #working = false

  constructor(parts: PushParts) {
    this.#parts = parts
    this.#throttle = new Throttle(parts.permits)
  }

  /** A change that was first seen at a time concerns a connection; {@link work} starts what is queued. */
  changed(connection: Connection, at: number): void {
    connection.changedAt = connection.changedAt === 0 ? at : Math.min(connection.changedAt, at)
    this.#throttle.add(connection, monotonicMs(), !connection.trusted)
  }

  /** Has a connection looked at that asked for something, or that may be sent what was held back. */
  wake(connection: Connection): void {
    if (connection.pushing) return this.#pump(connection)
    this.#throttle.add(connection, monotonicMs(), !connection.trusted)
    this.work()
  }

  /** Starts pushes as far as permits go. */
  work(): void {
    // A push that is done at once gets here again from within; the loop that runs takes what follows.
    if (this.#working) return
    this.#working = true
    const started = monotonicMs()
    for (let next = this.#take(); next; next = this.#take()) {
      this.#start(next.thing, next.since)
      if (monotonicMs() - started < turnMs) continue
      after(0, () => this.work()).unref()
      break
    }
    this.#working = false
  }

  /** Releases the permits of those early that take too long, so that they keep nobody waiting. Returns whether anything is under way. */
  charge(ms: number): boolean {
    for (const connection of this.#sending) {
      const { sending, stream } = connection
      if (!sending || this.#throttle.isPaused(connection)) continue
      sending.elapsedMs += ms
      this.#parts.permits.alive()
      const bytes = this.#throttle.isOnTrial(connection) ? Math.min(trialBytes, sending.bytes) : sending.bytes
      if (this.#patience.isOver({ elapsed: sending.elapsedMs, still: stream.stillMs, bytes })) this.#goWithout(connection)
    }
    this.work()
    return this.#sending.size > 0
  }

  /** Connections that take nothing of a response at present, or that are sent one without a permit because they are slow. */
  slow(): SlowConnection[] {
    return [...this.#sending].flatMap((connection) => slowConnection(connection, this.#throttle.releasedEarly.has(connection)) ?? [])
  }

  /** A connection is over. */
  drop(connection: Connection): void {
    connection.heldTimer?.cancel()
    this.#sending.delete(connection)
    this.#throttle.drop(connection)
    connection.pushing = false
  }

  /** The next connection to push to. When all permits are out, it looks again as soon as one comes back. */
  #take() {
    const { permits } = this.#parts
    const next = this.#throttle.take()
    if (next) return next
    if (this.#throttle.waiting === 0) permits.satisfied()
    if (this.#throttle.waiting === 0) return undefined
    // Said each time: the wait of an earlier time may still be under way although it got its permits some other way since.
    const since = permits.want()
    const freed = this.#throttle.take()
    if (!freed) permits.whenFreed(since, () => this.work())
    return freed
  }

  /** Begins a push, on trial or with a permit, or goes on with one that has got its permit. */
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
    if (this.#throttle.isOnTrial(connection)) stream.try(trialBytes, () => this.#passed(connection))
    else stream.go()
    this.#pump(connection)
  }

  /** A connection has taken the bytes of its trial. */
  #passed(connection: Connection): void {
    connection.trusted = true
    this.#throttle.passed(connection, monotonicMs())
    this.work()
  }

  /** A connection is too slow to keep its permit, or to get one. Whether it reads is asked anew at its next push. */
  #goWithout(connection: Connection): void {
    connection.trusted = false
    this.#throttle.releaseEarly(connection)
    connection.stream.go()
  }

  /** Sends whatever is due, one response after the other; what comes meanwhile is seen when the last one has left. */
  #pump(connection: Connection): void {
    if (connection.sending || !connection.pushing) return
    // It was ended, and what it asked for is not to be refused once more.
    if (connection.stream.status !== undefined) return this.#done(connection, 'failed')
    const now = monotonicMs()
    const response = this.#next(connection, now)
    if (!response) return this.#done(connection, this.#held(connection, now) ? 'held' : 'complete')
    const { length } = response.plan
    const sending: Sending = { bytes: length, elapsedMs: 0, pausedMs: 0 }
    connection.sending = sending
    this.#sending.add(connection)
    this.#parts.busy()
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
      this.#patience.record(elapsed, length)
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

  /** Looks again when what is held back may go after all. Returns whether anything is. */
  #held(connection: Connection, now: number): boolean {
    connection.heldTimer?.cancel()
    connection.heldTimer = undefined
    if (!connection.session.isDue()) return false
    const { flowControl } = this.#parts
    const until = connection.session.heldUntil(now) ?? (flowControl !== undefined ? now + flowControl : undefined)
    if (until !== undefined) connection.heldTimer = deadlineAfter(until - now, () => this.wake(connection))
    return true
  }

  /** A push has come to an end: everything has left, or the rest is held back and belongs to the next one, or the stream takes no more. */
  #done(connection: Connection, end: 'complete' | 'held' | 'failed'): void {
    if (!connection.pushing) return
    connection.pushing = false
    const { pushedSince, changedAt } = connection
    if (pushedSince > 0 && end === 'complete') this.#parts.metrics.convergence.observe(Math.max(0, monotonicMs() - pushedSince) / 1000)
    if (pushedSince > 0 && end === 'held') connection.changedAt = changedAt === 0 ? pushedSince : Math.min(changedAt, pushedSince)
    this.#throttle.done(connection, !connection.trusted)
    this.work()
  }
}
