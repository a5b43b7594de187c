/** Counts the bytes that were written to an HTTP/2 stream and not yet sent, for back-pressure and the send timeout. */
import type { Writable } from 'node:stream'
import { monotonicMs } from '../../runtime/clock.ts'
import { deadlineAfter, type Timer } from '../../runtime/timers.ts'

/** The number of unsent bytes above which writing should pause, and the number at which it may resume. */
const room = { full: 262_144, free: 65_536 }

/** The maximum size of one write, in bytes. Each completed write counts as progress. */
const pieceBytes = 16_384

/** Events of a queue. */
export interface SendEvents {
  /** Writing may resume after {@link SendQueue.write} returned false. */
  hasRoom(): void
  /** The send timeout has expired: no write completed for the allowed time while bytes were unsent. */
  stoodStill(): void
}

/** The unsent bytes of one stream. */
export class SendQueue {
  readonly #stream: Writable
  readonly #events: SendEvents
  readonly #longestMs: number
  #outstanding = 0
  #isFull = false
  #progressAt = 0
  #timer: Timer | undefined

  /** `longestMs` is the send timeout, in milliseconds. */
  constructor(stream: Writable, longestMs: number, events: SendEvents) {
    this.#stream = stream
    this.#longestMs = longestMs
    this.#events = events
    stream.once('close', () => this.#timer?.cancel())
  }

  /** Whether writing may continue. */
  get hasRoom(): boolean {
    return !this.#isFull
  }

  /** Writes bytes. Returns whether writing may continue. */
  write(bytes: Buffer): boolean {
    if (this.#stream.writableEnded || this.#stream.destroyed) return true
    if (this.#outstanding === 0) this.#progressAt = monotonicMs()
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.length <= pieceBytes ? bytes : bytes.subarray(at, at + pieceBytes)
      this.#outstanding += piece.length
      this.#stream.write(piece, () => this.#accepted(piece.length))
    }
    this.#timer ??= this.#watch(this.#longestMs)
    if (this.#outstanding > room.full) this.#isFull = true
    return !this.#isFull
  }

  #accepted(bytes: number): void {
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
