/** What was handed to a stream of HTTP/2 and has not left: how much it is, whether there is room for more, and when it stands still. */
import type { Writable } from 'node:stream'
import { monotonicMs } from '../../runtime/clock.ts'
import { deadlineAfter, type Timer } from '../../runtime/timers.ts'

/** Bytes from which on nothing more is to be written, and below which there is room again. */
const room = { full: 262_144, free: 65_536 }

/** Most bytes in one write: each that has left is progress. */
const pieceBytes = 16_384

/** What the owner of a queue hears. */
export interface SendEvents {
  /** There is room again after {@link SendQueue.write} returned false. */
  hasRoom(): void
  /** Nothing left for the longest time that is allowed, while something was to leave. */
  stoodStill(): void
}

/** The queue of one stream. */
export class SendQueue {
  readonly #stream: Writable
  readonly #events: SendEvents
  readonly #longestMs: number
  #outstanding = 0
  #isFull = false
  #progressAt = 0
  #timer: Timer | undefined

  /** `longestMs` is how long the stream may stand still. */
  constructor(stream: Writable, longestMs: number, events: SendEvents) {
    this.#stream = stream
    this.#longestMs = longestMs
    this.#events = events
    stream.once('close', () => this.#timer?.cancel())
  }

  /** Whether more may be written. */
  get hasRoom(): boolean {
    return !this.#isFull
  }

  /** Writes bytes. Returns whether there is room for more. */
  write(bytes: Buffer): boolean {
    if (this.#stream.writableEnded || this.#stream.destroyed) return true
    if (this.#outstanding === 0) this.#progressAt = monotonicMs()
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.length <= pieceBytes ? bytes : bytes.subarray(at, at + pieceBytes)
      this.#outstanding += piece.length
      this.#stream.write(piece, () => this.#left(piece.length))
    }
    this.#timer ??= this.#watch(this.#longestMs)
    if (this.#outstanding > room.full) this.#isFull = true
    return !this.#isFull
  }

  #left(bytes: number): void {
    this.#outstanding -= bytes
    this.#progressAt = monotonicMs()
    if (!this.#isFull || this.#outstanding > room.free || this.#stream.destroyed) return
    this.#isFull = false
    this.#events.hasRoom()
  }

  #watch(ms: number): Timer {
    return deadlineAfter(ms, () => {
      this.#timer = undefined
      if (this.#outstanding === 0 || this.#stream.destroyed) return
      const left = this.#progressAt + this.#longestMs - monotonicMs()
      if (left <= 0) this.#events.stoodStill()
      else this.#timer = this.#watch(left)
    }).unref()
  }
}
