/**
 * How responses leave a connection, and when one of its streams stands still. `node:http2` takes everything it is given at once
 * and then says nothing until all of it has left, so a stream hands over one piece at a time and the next when that one is gone.
 *
 * A stream makes progress when a piece has left, that is, when the kernel has accepted it; where it is the only one of its
 * connection with bytes outstanding, also when the connection sent anything or was granted anything by a window update. Time
 * without progress is charged while bytes are outstanding, by {@link SessionFlow.charge}.
 */
import type { FleetPace } from './fleet-pace.ts'
import { SliceCursor } from './slice-cursor.ts'

/** Sizes of pieces in bytes: the first, and what they double to while they leave promptly. */
interface PieceSizes {
  readonly smallest: number
  readonly largest: number
}

/** While this many bytes of a connection were handed over and have not left, no further piece is: a ping or another stream waits behind them. */
const connectionBytes = 1_048_576
/** Where a connection has several streams, only a piece that has left tells which of them made progress: small ones show a slow stream. */
const shared: PieceSizes = { smallest: 16_384, largest: 262_144 }
/** A stream alone makes progress as its connection does. Each piece costs CPU: 1 GB in pieces of 256 KiB a fifth more than in whole messages. */
const alone: PieceSizes = { smallest: 262_144, largest: connectionBytes }
/** Bytes that a connection must have sent to have made progress: pings and their answers are less. */
const smallestProgress = 1024
/** Within so many milliseconds a piece left promptly; after so many it was slow, and the next are small again. */
const promptMs = 100
const slowMs = 500

/** What a connection tells of itself. */
export interface Wire {
  /** Bytes that were handed to the socket. */
  readonly bytesWritten: number
  /** Bytes that came from the peer. */
  readonly bytesRead: number
  /** Bytes that the peer lets the connection send, over all streams. */
  readonly window: number
  /** Asks the peer for a sign of life, which counts in `bytesRead`. */
  probe(): void
}

/** What a stream is asked to do. */
export interface StreamPort {
  /** Hands buffers over. `left` hears when the kernel has accepted all of them, or that it will not. */
  send(piece: readonly Buffer[], left: (failed: boolean) => void): void
  /** The stream stood still for too long. At a message boundary it can end with a status, elsewhere it can only be reset. */
  stoodStill(reason: string, atBoundary: boolean): void
}

interface Job {
  readonly cursor: SliceCursor
  readonly length: number
  inFlight: number
  readonly done: (failed: boolean) => void
}

/** How long a stream may stand still, and how many pieces it may have handed over. */
export interface FlowLimits {
  readonly pace: FleetPace
  readonly pieces: number
  now(): number
}

/** What the owner of a connection hears. */
export interface SessionEvents {
  /** A stream has bytes outstanding: from now on time is to be charged. */
  busy(): void
  /** A stream stood still, and the peer gave no sign of life either. */
  dead(): void
}

/** The streams of one connection. */
export class SessionFlow {
  readonly #wire: Wire
  readonly #limits: FlowLimits
  readonly #events: SessionEvents
  readonly #streams = new Set<StreamFlow>()
  /** Streams that wait for others of the connection to have less in flight. */
  readonly #waiting = new Set<StreamFlow>()
  /** Bytes that have left, over all streams. */
  left = 0
  #inFlight = 0
  /** Where the connection stood at the last tick with progress; the window only if it was asked for. */
  #seen: { readonly written: number; readonly window?: number } | undefined
  /** The largest window that was seen: what the peer may be sent over all streams without granting anything. */
  #largestWindow = 0
  /** `bytesRead` when the peer was asked for a sign of life; undefined while nothing stands still. */
  #probedAt: number | undefined

  constructor(wire: Wire, limits: FlowLimits, events: SessionEvents) {
    this.#wire = wire
    this.#limits = limits
    this.#events = events
  }

  /** Opens a stream. */
  open(port: StreamPort): StreamFlow {
    const stream: StreamFlow = new StreamFlow(port, this.#limits, {
      began: () => this.#events.busy(),
      isAlone: () => this.#streams.size === 1,
      room: () => {
        const free = connectionBytes - this.#inFlight
        if (free <= 0) this.#waiting.add(stream)
        return free
      },
      use: (bytes) => (this.#inFlight += bytes),
      freed: (bytes) => {
        this.left += bytes
        this.#inFlight -= bytes
        for (const other of this.#waiting) {
          if (this.#inFlight >= connectionBytes) return
          this.#waiting.delete(other)
          other.pump()
        }
      },
    })
    this.#streams.add(stream)
    this.#largestWindow = Math.max(this.#largestWindow, this.#wire.window)
    return stream
  }

  /** Forgets a stream that was closed. */
  close(stream: StreamFlow): void {
    this.#streams.delete(stream)
    this.#waiting.delete(stream)
    stream.close()
  }

  /**
   * Charges the streams that stand still with some milliseconds, and ends those that did so for too long. While the window of the
   * connection is used up, those are charged that hold it. Returns whether any stream has bytes outstanding.
   */
  charge(ms: number): boolean {
    const busy = [...this.#streams].filter((stream) => stream.isBusy)
    if (busy.length === 0) return false
    const charged = this.#charged(busy)
    let longest = 0
    for (const stream of this.#streams) {
      if (stream.isBusy || charged.has(stream)) longest = Math.max(longest, stream.waited(ms, charged.has(stream)))
      else stream.progressed()
    }
    this.#judge(charged, longest)
    return true
  }

  /** Ends the streams that have bytes outstanding, since the connection is given up. */
  giveUp(reason: string): void {
    for (const stream of [...this.#streams]) if (stream.isBusy) stream.giveUp(reason)
  }

  /** Those that are to be charged, after looking where the connection stands: what it did since the last look is progress of the only stream there is. */
  #charged(busy: readonly StreamFlow[]): ReadonlySet<StreamFlow> {
    const { bytesWritten } = this.#wire
    const { written, window: before } = this.#seen ?? { written: bytesWritten }
    const sent = bytesWritten - written >= smallestProgress
    if (sent && busy.length === 1) busy[0]?.progressed()
    // Asking a connection for its window is dear, and needless while all of its streams make progress.
    if (busy.every(({ stillMs }) => stillMs === 0)) {
      this.#seen = { written: bytesWritten }
      return new Set(busy)
    }
    const { window } = this.#wire
    const moved = sent || (before !== undefined && window !== before)
    this.#seen = { written: moved ? bytesWritten : written, window }
    if (moved && busy.length === 1) busy[0]?.progressed()
    this.#largestWindow = Math.max(this.#largestWindow, window)
    const holders = window <= 0 && !moved ? this.#holders() : []
    return new Set(holders.length > 0 ? holders : busy)
  }

  /**
   * Who holds a window that is used up: streams that were sent something and have not said anything since. One that was sent more
   * since than the window ever held has granted some of it, and counts only where all have.
   */
  #holders(): readonly StreamFlow[] {
    const unread = [...this.#streams].filter((stream) => stream.unread > 0)
    const mute = unread.filter((stream) => stream.unread <= this.#largestWindow)
    return mute.length > 0 ? mute : unread
  }

  #judge(charged: ReadonlySet<StreamFlow>, longest: number): void {
    if (longest < this.#limits.pace.limitMs / 2) {
      this.#probedAt = undefined
      return
    }
    const { bytesRead } = this.#wire
    const standstillMs = this.#limits.pace.standstillMs(this.#limits.now())
    if (longest < standstillMs / 2) this.#probedAt = undefined
    else if (this.#probedAt === undefined) {
      this.#probedAt = bytesRead
      this.#wire.probe()
    }
    if (longest < standstillMs) return
    const dead = this.#probedAt === bytesRead
    for (const stream of charged) if (stream.chargedMs >= standstillMs) stream.giveUp('nothing was taken within the send timeout')
    if (dead) this.#events.dead()
  }
}

/** What a stream uses of its connection. */
interface Shared {
  /** Bytes are about to be outstanding. */
  began(): void
  isAlone(): boolean
  /** Bytes that may be handed over now. When there are none, the stream is told to go on once there are. */
  room(): number
  use(bytes: number): void
  freed(bytes: number): void
}

/** One stream's responses. */
export class StreamFlow {
  readonly #port: StreamPort
  readonly #limits: FlowLimits
  readonly #shared: Shared
  readonly #jobs: Job[] = []
  #pieces = 0
  /** Bytes of the next piece, as far as the pieces before tell. */
  #piece = 0
  #over = false
  /** Whether there was progress since the last tick, or the first bytes came to be outstanding. */
  #moved = false
  #finished: (() => void) | undefined
  /** While the stream is on trial: bytes that may still be handed over, and who hears when they have left. */
  #trial: { left: number; readonly passed: () => void } | undefined
  /** Milliseconds without progress while bytes were outstanding. */
  stillMs = 0
  /** Those among them with which this stream is charged. */
  chargedMs = 0
  /** Bytes that left since the peer last said anything on the stream. */
  unread = 0

  constructor(port: StreamPort, limits: FlowLimits, shared: Shared) {
    this.#port = port
    this.#limits = limits
    this.#shared = shared
  }

  /** Whether bytes are outstanding, and not only because this side keeps them. */
  get isBusy(): boolean {
    return this.#jobs.length > 0 && !this.#isPaused
  }

  /** Whether no message is half sent. */
  get isAtBoundary(): boolean {
    const [first] = this.#jobs
    return !first || (first.inFlight === 0 && first.cursor.left === first.length)
  }

  get #isPaused(): boolean {
    return this.#trial?.left === 0 && this.#pieces === 0
  }

  /** Bytes of responses that have not left yet. */
  get outstanding(): number {
    return this.#jobs.reduce((sum, job) => sum + job.cursor.left + job.inFlight, 0)
  }

  /** Sends buffers after those that wait. `done` hears when the last has left, or that they will not. */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void {
    if (this.#over) return done(true)
    const cursor = new SliceCursor(parts)
    if (cursor.left === 0) return done(false)
    this.#shared.began()
    if (this.#jobs.length === 0) this.#moved = true
    this.#jobs.push({ cursor, length: cursor.left, inFlight: 0, done })
    this.pump()
  }

  /** Hands over only so many more bytes, of whatever responses, until {@link go}; `passed` hears when they have left. A trial that is under way goes on. */
  try(bytes: number, passed: () => void): void {
    this.#trial ??= { left: bytes, passed }
  }

  /** Ends the trial: everything may leave. */
  go(): void {
    if (!this.#trial) return
    this.#trial = undefined
    if (this.#jobs.length === 0) return
    this.#moved = true
    this.#shared.began()
    this.pump()
  }

  /** Hands over as many pieces as may be. */
  pump(): void {
    for (const job of this.#jobs) {
      while (job.cursor.left > 0) {
        const allowed = this.#trial?.left ?? Number.POSITIVE_INFINITY
        if (this.#over || allowed === 0 || this.#pieces >= this.#limits.pieces || this.#shared.room() <= 0) return
        this.#handOver(job, job.cursor.take(Math.min(this.#pieceSize(), allowed)))
      }
    }
  }

  /** The peer said something on the stream: it has read what was sent before. */
  heard(): void {
    this.unread = 0
  }

  /** Time passed since the last tick; it counts where there was no progress in it. Returns the milliseconds with which the stream is charged so far. */
  waited(ms: number, charged: boolean): number {
    if (!this.#moved || !this.isBusy) {
      if (this.isBusy) this.stillMs += ms
      if (charged) this.chargedMs += ms
    }
    this.#moved = false
    return charged ? this.chargedMs : 0
  }

  /** Something has left. */
  progressed(): void {
    // Once a tick: what leaves in quick succession is one step.
    if (this.isBusy && !this.#moved) this.#limits.pace.paused(this, this.stillMs, this.#limits.now())
    this.#moved = true
    this.stillMs = 0
    this.chargedMs = 0
  }

  /** Sends what is half sent to its end, drops what waits behind it, and calls back when nothing more will leave. */
  finish(done: () => void): void {
    if (this.#over) return done()
    const begun = !this.isAtBoundary
    for (const job of this.#jobs.slice(begun ? 1 : 0)) {
      this.#jobs.splice(this.#jobs.indexOf(job), 1)
      job.done(true)
    }
    if (begun) {
      this.#finished = done
      this.go()
    } else {
      this.#over = true
      done()
    }
  }

  /** Ends a stream that stands still. */
  giveUp(reason: string): void {
    if (this.#over) return
    const atBoundary = this.isAtBoundary
    this.close()
    this.#port.stoodStill(reason, atBoundary)
  }

  /** Nothing leaves any more. */
  close(): void {
    if (this.#over) return
    this.#over = true
    let inFlight = 0
    for (const job of this.#jobs.splice(0)) {
      inFlight += job.inFlight
      job.done(true)
    }
    if (inFlight > 0) this.#shared.freed(inFlight)
  }

  #handOver(job: Job, piece: Buffer[]): void {
    const bytes = piece.reduce((sum, part) => sum + part.length, 0)
    const started = this.#limits.now()
    job.inFlight += bytes
    this.#pieces++
    if (this.#trial) this.#trial.left -= bytes
    this.#shared.use(bytes)
    this.#port.send(piece, (failed) => {
      this.#pieces--
      if (this.#over) return
      job.inFlight -= bytes
      if (failed) {
        this.#shared.freed(bytes)
        return this.close()
      }
      this.progressed()
      this.unread += bytes
      this.#adapt(this.#limits.now() - started)
      this.#shared.freed(bytes)
      if (job.cursor.left === 0 && job.inFlight === 0 && this.#jobs[0] === job) {
        this.#jobs.shift()
        job.done(false)
      }
      if (this.#finished && this.#jobs.length === 0) {
        this.#over = true
        this.#finished()
        return
      }
      this.pump()
      if (this.#isPaused) this.#trial?.passed()
    })
  }

  #pieceSize(): number {
    const { smallest, largest } = this.#shared.isAlone() ? alone : shared
    return Math.min(largest, Math.max(smallest, this.#piece))
  }

  #adapt(ms: number): void {
    if (ms < promptMs) this.#piece = this.#pieceSize() * 2
    else if (ms > slowMs) this.#piece = 0
  }
}
