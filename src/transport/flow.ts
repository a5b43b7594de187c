/**
 * Sends responses on the streams of a connection, and detects when a stream stands still. `node:http2` accepts any number of bytes at once
 * and calls back only when all of them have been written, so a stream hands over one piece at a time, and the next piece when that one has
 * been written.
 *
 * A stream makes progress when the kernel has accepted a piece. When it is the only stream of its connection with bytes outstanding, it
 * also makes progress when the connection sends bytes or receives a window update. Time without progress is charged while bytes are
 * outstanding, by {@link SessionFlow.charge}.
 */
import type { FleetPace } from './fleet-pace.ts'
import { SliceCursor } from './slice-cursor.ts'

/** Sizes of pieces in bytes: the first piece, and the limit up to which the size doubles while pieces are written promptly. */
interface PieceSizes {
  readonly smallest: number
  readonly largest: number
}

/**
 * The maximum number of bytes of a connection that are handed over and not yet written. Pings and other streams have to wait behind these
 * bytes.
 */
const connectionBytes = 1_048_576
/**
 * With several streams on a connection, only a written piece shows which stream made progress. Small pieces detect a slow stream sooner.
 */
const shared: PieceSizes = { smallest: 16_384, largest: 262_144 }
/**
 * A single stream makes progress whenever its connection does, so its pieces can be large. Each piece costs CPU: 1 GB in pieces of 256 KiB
 * takes a fifth more than in whole messages.
 */
const alone: PieceSizes = { smallest: 262_144, largest: connectionBytes }
/** The minimum number of bytes sent that counts as progress of a connection. Pings and their answers are smaller. */
const smallestProgress = 1024
/**
 * In milliseconds: a piece written within `promptMs` doubles the size of the next; one that takes longer than `slowMs` resets the size to
 * the smallest.
 */
const promptMs = 100
const slowMs = 500

/** The state of a connection that flow control reads. */
export interface Wire {
  /** Bytes handed to the socket so far. */
  readonly bytesWritten: number
  /** Bytes received from the peer so far. */
  readonly bytesRead: number
  /** The connection-level send window: bytes that the peer currently allows over all streams. */
  readonly window: number
  /** Sends a ping; the answer increases `bytesRead`. */
  probe(): void
}

/** The operations on a stream that flow control uses. */
export interface StreamPort {
  /** Hands buffers to the stream. Calls `accepted` when the kernel has accepted all of them, or with `failed` when that will not happen. */
  send(piece: readonly Buffer[], accepted: (failed: boolean) => void): void
  /**
   * Called when the stream made no progress for too long. At a message boundary the stream can end with a status, otherwise it can only be
   * reset.
   */
  stoodStill(reason: string, atBoundary: boolean): void
}

interface Job {
  readonly cursor: SliceCursor
  readonly length: number
  inFlight: number
  readonly done: (failed: boolean) => void
}

/** The standstill timeout, the maximum number of pieces that a stream may have handed over at a time, and the monotonic clock. */
export interface FlowLimits {
  readonly pace: FleetPace
  readonly maxPieces: number
  now(): number
}

/** Events for the owner of a connection. */
export interface SessionEvents {
  /** A stream has bytes outstanding: the owner has to call {@link SessionFlow.charge} regularly from now on. */
  busy(): void
  /** A stream stood still, and the peer did not answer a ping either. */
  dead(): void
}

/** The streams of one connection. */
export class SessionFlow {
  readonly #wire: Wire
  readonly #limits: FlowLimits
  readonly #events: SessionEvents
  readonly #streams = new Set<StreamFlow>()
  /** Streams that wait until the connection has fewer bytes in flight. */
  readonly #waiting = new Set<StreamFlow>()
  /** Bytes of all streams that are in flight no longer: the kernel accepted them, or their stream was closed. */
  freedBytes = 0
  #inFlight = 0
  /** The connection's counters at the last check with progress. `window` is undefined if it was not read then. */
  #seen: { readonly written: number; readonly window?: number } | undefined
  /** The largest send window seen so far: the number of bytes that the peer can be sent over all streams without a window update. */
  #largestWindow = 0
  /** `bytesRead` when the ping was sent. Undefined: no stream has stood still for long enough to send one. */
  #probedAt: number | undefined

  constructor(wire: Wire, limits: FlowLimits, events: SessionEvents) {
    this.#wire = wire
    this.#limits = limits
    this.#events = events
  }

  /** Adds a stream. */
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
        this.freedBytes += bytes
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

  /** Removes a stream that was closed. */
  close(stream: StreamFlow): void {
    this.#streams.delete(stream)
    this.#waiting.delete(stream)
    stream.close()
  }

  /**
   * Charges `ms` milliseconds to the streams that make no progress, and ends those that have exceeded the standstill timeout. While the
   * connection's send window is used up, only the streams that occupy the window are charged. Returns whether any stream has bytes
   * outstanding.
   */
  charge(ms: number): boolean {
    const busy = [...this.#streams].filter((stream) => stream.isBusy)
    if (busy.length === 0) return false
    const charged = this.#charged(busy)
    let longest = 0
    for (const stream of this.#streams) {
      if (stream.isBusy || charged.has(stream)) longest = Math.max(longest, stream.addTime(ms, charged.has(stream)))
      else stream.progressed()
    }
    this.#endStalled(charged, longest)
    return true
  }

  /** Ends all streams that have bytes outstanding, because the connection is given up. */
  giveUp(reason: string): void {
    for (const stream of [...this.#streams]) if (stream.isBusy) stream.giveUp(reason)
  }

  /**
   * Returns the streams to charge, after reading the connection's counters. Progress of the connection since the last check counts as
   * progress of the stream when it is the only busy one.
   */
  #charged(busy: readonly StreamFlow[]): ReadonlySet<StreamFlow> {
    const { bytesWritten } = this.#wire
    const { written, window: before } = this.#seen ?? { written: bytesWritten }
    const sent = bytesWritten - written >= smallestProgress
    if (sent && busy.length === 1) busy[0]?.progressed()
    // Reading the window of a connection is expensive, and needless while all of its streams make progress.
    if (busy.every(({ stillMs }) => stillMs === 0)) {
      this.#seen = { written: bytesWritten }
      return new Set(busy)
    }
    const { window } = this.#wire
    const moved = sent || (before !== undefined && window !== before)
    this.#seen = { written: moved ? bytesWritten : written, window }
    if (moved && busy.length === 1) busy[0]?.progressed()
    this.#largestWindow = Math.max(this.#largestWindow, window)
    const occupants = window <= 0 && !moved ? this.#windowOccupants() : []
    return new Set(occupants.length > 0 ? occupants : busy)
  }

  /**
   * Returns the streams that occupy a used-up window: streams that were sent bytes and have sent no message since. A stream that was sent
   * more than the largest window since its last message must have granted some of it, and is returned only when that is true of all of
   * them.
   */
  #windowOccupants(): readonly StreamFlow[] {
    const unread = [...this.#streams].filter((stream) => stream.unread > 0)
    const silent = unread.filter((stream) => stream.unread <= this.#largestWindow)
    return silent.length > 0 ? silent : unread
  }

  /**
   * Ends the streams that have been charged for the standstill timeout; `longest` is the longest charged time of a stream in milliseconds. A
   * ping is sent after half of the timeout. If nothing was received since, the connection is given up too.
   */
  #endStalled(charged: ReadonlySet<StreamFlow>, longest: number): void {
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
    for (const stream of charged) if (stream.chargedMs >= standstillMs) stream.giveUp('the client read no data within the send timeout')
    if (dead) this.#events.dead()
  }
}

/** The state of the connection that its streams share. */
interface Shared {
  /** Called before the stream's first bytes are outstanding. */
  began(): void
  isAlone(): boolean
  /** Bytes that may be handed over now. When there are none, the stream's `pump` is called once there are. */
  room(): number
  use(bytes: number): void
  freed(bytes: number): void
}

/** The responses of one stream. */
export class StreamFlow {
  readonly #port: StreamPort
  readonly #limits: FlowLimits
  readonly #shared: Shared
  readonly #jobs: Job[] = []
  /** The number of pieces that were handed over and that the kernel has not accepted yet. */
  #piecesInFlight = 0
  /** The size of the next piece in bytes, adapted to the time that earlier pieces took; `#pieceSize` limits it. */
  #adaptedBytes = 0
  #over = false
  /** Whether there was progress since the last call of `waited`, or bytes became outstanding since then. */
  #moved = false
  #finished: (() => void) | undefined
  /** While the stream is on trial: the bytes that may still be handed over, and the callback for when they have been written. */
  #trial: { allowedBytes: number; readonly passed: () => void } | undefined
  /** Milliseconds without progress while bytes were outstanding. */
  stillMs = 0
  /** The part of that time that was charged to this stream. */
  chargedMs = 0
  /** Bytes written since the peer last sent a message on the stream. */
  unread = 0

  constructor(port: StreamPort, limits: FlowLimits, shared: Shared) {
    this.#port = port
    this.#limits = limits
    this.#shared = shared
  }

  /** Whether bytes are outstanding that this side is not holding back itself. */
  get isBusy(): boolean {
    return this.#jobs.length > 0 && !this.#isPaused
  }

  /** Whether no message is partly sent. */
  get isAtBoundary(): boolean {
    const [first] = this.#jobs
    return !first || (first.inFlight === 0 && first.cursor.remaining === first.length)
  }

  get #isPaused(): boolean {
    return this.#trial?.allowedBytes === 0 && this.#piecesInFlight === 0
  }

  /** Bytes of responses that have not been written yet. */
  get outstanding(): number {
    return this.#jobs.reduce((sum, job) => sum + job.cursor.remaining + job.inFlight, 0)
  }

  /**
   * Queues buffers behind the outstanding ones. Calls `done` when the last byte has been written, or with `failed` when that will not
   * happen.
   */
  write(parts: readonly Buffer[], done: (failed: boolean) => void): void {
    if (this.#over) return done(true)
    const cursor = new SliceCursor(parts)
    if (cursor.remaining === 0) return done(false)
    this.#shared.began()
    if (this.#jobs.length === 0) this.#moved = true
    this.#jobs.push({ cursor, length: cursor.remaining, inFlight: 0, done })
    this.pump()
  }

  /**
   * Starts a trial: only `bytes` more bytes, of whichever responses, are handed over until {@link endTrial}. Calls `passed` when they have been
   * written. A trial that is under way continues unchanged.
   */
  beginTrial(bytes: number, passed: () => void): void {
    this.#trial ??= { allowedBytes: bytes, passed }
  }

  /** Ends the trial: all responses may be sent. */
  endTrial(): void {
    if (!this.#trial) return
    this.#trial = undefined
    if (this.#jobs.length === 0) return
    this.#moved = true
    this.#shared.began()
    this.pump()
  }

  /** Hands over as many pieces as the limits allow. */
  pump(): void {
    for (const job of this.#jobs) {
      while (job.cursor.remaining > 0) {
        const allowed = this.#trial?.allowedBytes ?? Number.POSITIVE_INFINITY
        if (this.#over || allowed === 0 || this.#piecesInFlight >= this.#limits.maxPieces || this.#shared.room() <= 0) return
        this.#handOver(job, job.cursor.take(Math.min(this.#pieceSize(), allowed)))
      }
    }
  }

  /** Called when the peer sent a message on the stream, which shows that it has read what was sent before. */
  messageReceived(): void {
    this.unread = 0
  }

  /**
   * Adds `ms` milliseconds since the last call, unless there was progress in that time. Returns the milliseconds charged to the stream so
   * far.
   */
  addTime(ms: number, charged: boolean): number {
    if (!this.#moved || !this.isBusy) {
      if (this.isBusy) this.stillMs += ms
      if (charged) this.chargedMs += ms
    }
    this.#moved = false
    return charged ? this.chargedMs : 0
  }

  /** Called when bytes have been written. */
  progressed(): void {
    // Recorded once between two checks: pieces that are written in quick succession are one pause.
    if (this.isBusy && !this.#moved) this.#limits.pace.paused(this, this.stillMs, this.#limits.now())
    this.#moved = true
    this.stillMs = 0
    this.chargedMs = 0
  }

  /** Completes a partly sent message, drops the messages behind it, and calls `done` when nothing more will be sent. */
  finish(done: () => void): void {
    if (this.#over) return done()
    const begun = !this.isAtBoundary
    for (const job of this.#jobs.slice(begun ? 1 : 0)) {
      this.#jobs.splice(this.#jobs.indexOf(job), 1)
      job.done(true)
    }
    if (begun) {
      this.#finished = done
      this.endTrial()
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

  /** Drops all outstanding responses; nothing is sent any more. */
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
    this.#piecesInFlight++
    if (this.#trial) this.#trial.allowedBytes -= bytes
    this.#shared.use(bytes)
    this.#port.send(piece, (failed) => {
      this.#piecesInFlight--
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
      if (job.cursor.remaining === 0 && job.inFlight === 0 && this.#jobs[0] === job) {
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
    return Math.min(largest, Math.max(smallest, this.#adaptedBytes))
  }

  #adapt(ms: number): void {
    if (ms < promptMs) this.#adaptedBytes = this.#pieceSize() * 2
    else if (ms > slowMs) this.#adaptedBytes = 0
  }
}
