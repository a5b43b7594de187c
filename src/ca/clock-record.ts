/**
 * Whether the wall clock agrees with what was recorded of it (docs/certificates.md, D1 to D5). All times are milliseconds: Unix time on the
 * wall clock, and time since the machine was started (suspension included) on the boot clock, which nobody can set.
 */
import { number, object, text } from './fields.ts'

/** Both clocks, read together. */
export interface ClockReading {
  readonly wall: number
  readonly boot: number
  /** Identifies the start of the machine that `boot` counts from. */
  readonly bootId: string
}

/** The wall clock at a moment of the boot clock. As time passes, both advance by the same amount. */
interface Moment {
  readonly boot: number
  readonly wall: number
}

/** What is recorded of the clocks. */
export interface ClockRecord extends Moment {
  readonly bootId: string
  /** The last reading, on the boot clock. */
  readonly seen: number
  /**
   * Present after a start of the machine, which was off for an unknown time: the present is not before the recorded time. `candidate` is
   * what the wall clock has shown since, without a jump; undefined while it shows a time before the recorded one.
   */
  readonly unconfirmed?: { readonly candidate: Moment | undefined }
}

/**
 * What a reading means: `agreed`, the wall clock is as recorded; `unconfirmed`, it may be right, but the time for which the machine was off
 * is not known; `disputed`, it contradicts the record.
 */
export type Verdict = 'agreed' | 'unconfirmed' | 'disputed'

/** A reading compared with the record. */
export interface Judgement {
  readonly verdict: Verdict
  /** The record with this reading. */
  readonly record: ClockRecord
  readonly wall: number
  /** The time that counts: the wall clock, or the recorded time plus the elapsed one while the wall clock is disputed. */
  readonly believed: number
}

/** How far the wall clock may be from the record, and a machine may be off without a need for confirmation (D2). */
export const clockTolerance = 600_000
/** How long the wall clock must run without a jump after the machine was off, before it is taken for right (D3). */
export const confirmedAfter = 3_600_000
/** After this time the record takes over the wall clock, with what it was corrected by since (D2). */
const renewedAfter = 86_400_000

/** How far the boot clock may be behind the last reading within one start: some readings of it are rounded down, to 10 ms or more. */
const bootTolerance = 1000

/** Compares a reading with the record. Without a record, the reading is believed. */
export function judge(before: ClockRecord | undefined, reading: ClockReading): Judgement {
  if (!before) return agreed(recordOf(reading), reading)
  const isSameBoot = before.bootId === reading.bootId && reading.boot >= before.seen - bootTolerance
  const record = isSameBoot ? { ...before, seen: Math.max(before.seen, reading.boot) } : afterStart(before, reading)
  const expected = at(record, reading.boot)
  const lead = reading.wall - expected
  if (!record.unconfirmed) {
    if (Math.abs(lead) > clockTolerance) return { verdict: 'disputed', record, wall: reading.wall, believed: expected }
    return agreed(reading.boot - record.boot < renewedAfter ? record : recordOf(reading), reading)
  }
  if (lead < -clockTolerance)
    return { verdict: 'disputed', record: { ...record, unconfirmed: { candidate: undefined } }, wall: reading.wall, believed: expected }
  if (lead <= clockTolerance) return agreed(recordOf(reading), reading)
  const { candidate = reading } = record.unconfirmed
  const hasJumped = Math.abs(reading.wall - at(candidate, reading.boot)) > clockTolerance
  if (!hasJumped && reading.boot - candidate.boot >= confirmedAfter) return agreed(recordOf(reading), reading)
  const { boot, wall } = hasJumped ? reading : candidate
  return { verdict: 'unconfirmed', record: { ...record, unconfirmed: { candidate: { boot, wall } } }, wall: reading.wall, believed: reading.wall }
}

/** The record that begins with a reading. */
export const recordOf = ({ wall, boot, bootId }: ClockReading): ClockRecord => ({ bootId, boot, wall, seen: boot })

/** The record of a machine of which only a time is known that has passed (Unix milliseconds). */
export const recordSince = (wall: number): ClockRecord => recordOf({ wall, boot: 0, bootId: '' })

/** Says in a sentence without a full stop why the wall clock is not believed, or not yet; undefined when it agrees with the record. */
export function disputeOf({ verdict, wall, believed, record }: Judgement): string | undefined {
  const shown = new Date(wall).toISOString()
  if (verdict === 'disputed')
    return `the wall clock (${shown}) contradicts the recorded time plus the elapsed time (${new Date(believed).toISOString()}): no stage of a rotation begins and no key is removed until they agree, or until "pilot-discovery ca accept-time"`
  if (verdict === 'agreed') return undefined
  const left = Math.ceil((confirmedAfter - (record.seen - (record.unconfirmed?.candidate?.boot ?? record.seen))) / 60_000)
  return `the machine was off since the last recorded time (${new Date(at(record, record.seen)).toISOString()} or later), and the wall clock (${shown}) is not confirmed yet: no stage of a rotation begins and no key is removed for ${left} min, or until "pilot-discovery ca accept-time"`
}

/** Parses the stored form. Throws an Error that names the invalid field. */
export function readClockRecord(value: unknown): ClockRecord {
  const { bootId, boot, wall, seen, unconfirmed } = object(value, 'the record')
  const record = { bootId: text(bootId, 'bootId'), ...readMoment({ boot, wall }, ''), seen: number(seen, 'seen') }
  if (unconfirmed === undefined) return record
  const { candidate } = object(unconfirmed, 'unconfirmed')
  return { ...record, unconfirmed: { candidate: candidate === undefined ? undefined : readMoment(candidate, 'unconfirmed.candidate.') } }
}

function readMoment(value: unknown, where: string): Moment {
  const { boot, wall } = object(value, where)
  return { boot: number(boot, `${where}boot`), wall: number(wall, `${where}wall`) }
}

function agreed(record: ClockRecord, { wall }: ClockReading): Judgement {
  return { verdict: 'agreed', record, wall, believed: wall }
}

/** The record after a start of the machine: the last recorded time is the earliest possible one. */
function afterStart(before: ClockRecord, { boot, bootId }: ClockReading): ClockRecord {
  return { ...recordOf({ wall: at(before, before.seen), boot, bootId }), unconfirmed: { candidate: undefined } }
}

const at = ({ boot, wall }: Moment, now: number): number => wall + now - boot
