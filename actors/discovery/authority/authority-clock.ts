/** The time of the certificate authority: the wall clock, held against what its storage recorded of it (docs/certificates.md, D1 to D5). */
import {
  type ClockReading,
  type ClockRecord,
  disputeOf,
  type Judgement,
  judge,
  readClockRecord,
  recordOf,
  recordSince,
} from '../../../src/ca/clock-record.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { type CaStorage, StorageAwayError } from './storage.ts'

/** Dependencies of {@link AuthorityClock}. */
export interface ClockParts {
  readonly storage: Pick<CaStorage, 'readNote' | 'writeNote'>
  /** Reads both clocks. */
  readonly read: () => ClockReading
  /** A time that has certainly passed, in Unix milliseconds, for a storage without a record; undefined for a new one. */
  readonly since: number | undefined
  readonly log: ScopedLogger
}

/** Interval at which the clocks are compared, in milliseconds, and the number of comparisons after which the record is stored. */
const compare = { everyMs: 10_000, stored: 30 }
const note = 'clock'

/** Compares the clocks whenever the time is asked for, and regularly. */
export class AuthorityClock {
  readonly #parts: ClockParts
  readonly #timer: Timer
  #record: ClockRecord | undefined
  #verdict: Judgement['verdict'] = 'agreed'
  #stored: Promise<void> = Promise.resolve()
  #count = 0

  private constructor(parts: ClockParts, record: ClockRecord | undefined) {
    this.#parts = parts
    this.#record = record
    this.#timer = every(compare.everyMs, () => {
      this.judge()
      if (++this.#count % compare.stored === 0) void this.store()
    }).unref()
  }

  /** Reads the record. One that is damaged or missing is replaced by the time that has certainly passed. */
  static async open(parts: ClockParts): Promise<AuthorityClock> {
    const clock = new AuthorityClock(parts, await storedRecord(parts))
    clock.judge()
    await clock.store()
    return clock
  }

  /** The present, in Unix milliseconds, as it counts for expiries and is recorded. */
  now(): number {
    return this.judge().believed
  }

  /** Why nothing irreversible may happen now; undefined while the wall clock agrees with the record. */
  dispute(): string | undefined {
    return disputeOf(this.judge())
  }

  /** Compares the clocks now. A change of the verdict is logged and stored. */
  judge(): Judgement {
    const judged = judge(this.#record, this.#parts.read())
    this.#record = judged.record
    if (judged.verdict !== this.#verdict) {
      this.#verdict = judged.verdict
      const dispute = disputeOf(judged)
      if (judged.verdict === 'disputed') this.#parts.log.error(`${dispute}; certificates go on being signed`)
      else if (dispute !== undefined) this.#parts.log.warn(dispute)
      else this.#parts.log.info('the wall clock agrees with the recorded time')
      void this.store()
    }
    return judged
  }

  /** Takes the wall clock for right, whatever was recorded. Resolves when that is stored. */
  async accept(): Promise<void> {
    const reading = this.#parts.read()
    this.#record = recordOf(reading)
    this.#verdict = 'agreed'
    this.#parts.log.warn(`the wall clock (${new Date(reading.wall).toISOString()}) was accepted by command`)
    await this.store()
  }

  /** Stores the record. A failure is logged: then the record of before counts at the next start. */
  store(): Promise<void> {
    this.#stored = this.#stored.then(async () => {
      try {
        await this.#parts.storage.writeNote(note, [`${JSON.stringify({ format: 1, ...this.#record })}\n`])
      } catch (error) {
        this.#parts.log.warn(`the record of the clock cannot be saved: ${(error as Error).message}`)
      }
    })
    return this.#stored
  }

  /** Stores the record for the last time. */
  close(): Promise<void> {
    this.#timer.cancel()
    this.judge()
    return this.store()
  }
}

async function storedRecord({ storage, since, log }: ClockParts): Promise<ClockRecord | undefined> {
  try {
    const text = await storage.readNote(note)
    if (text !== undefined) return readClockRecord(JSON.parse(text))
  } catch (error) {
    if (error instanceof StorageAwayError) throw error
    log.warn(`the record of the clock cannot be read and begins anew: ${(error as Error).message}`)
  }
  return since === undefined ? undefined : recordSince(since)
}
