import { expect } from 'chai'
import fc from 'fast-check'
import {
  type ClockReading,
  type ClockRecord,
  clockTolerance,
  confirmedAfter,
  disputeOf,
  judge,
  readClockRecord,
  recordOf,
  recordSince,
  type Verdict,
} from '../../../src/ca/clock-record.ts'
import '../../harness/seed.ts'
import { runs } from '../../harness/seed.ts'

const minute = 60_000
const day = 86_400_000
const begin = Date.UTC(2026, 10, 22, 8)

/** A machine whose true time passes, and whose wall clock and starts are set by the test. */
class Machine {
  true = begin
  error = 0
  boot = 5000
  starts = 0
  record: ClockRecord | undefined

  reading(): ClockReading {
    return { wall: this.true + this.error, boot: this.boot, bootId: `start ${this.starts}` }
  }

  /** Compares the clocks; the record is kept as it would be stored. */
  verdict(): Verdict {
    const judged = judge(this.record, this.reading())
    this.record = readClockRecord(JSON.parse(JSON.stringify(judged.record)))
    return judged.verdict
  }

  pass(ms: number): this {
    this.true += ms
    this.boot += ms
    return this
  }

  restart(offMs: number): this {
    this.true += offMs
    this.boot = 5000
    this.starts++
    return this
  }
}

describe('the record of the clocks', () => {
  let machine: Machine
  beforeEach(() => {
    machine = new Machine()
    expect(machine.verdict()).to.equal('agreed')
  })

  it('takes readings of the boot clock that are rounded differently for one start of the machine', () => {
    machine.error = 9 * minute
    machine.pass(minute).verdict()
    machine.boot -= 10
    expect(machine.verdict()).to.equal('agreed')
    machine.error = 18 * minute
    expect(machine.verdict(), 'twice nine minutes').to.equal('disputed')
    machine.boot -= 10
    expect(machine.verdict(), 'no other start').to.equal('disputed')
    machine.boot -= minute
    expect(machine.verdict(), 'a boot clock that goes back').to.equal('unconfirmed')
  })

  it('agrees with a wall clock that advances like the boot clock, whatever it is corrected by in minutes', () => {
    for (const error of [0, minute, -minute, 0, 9 * minute, 0, -9 * minute, 0]) {
      machine.error = error
      expect(machine.pass(day / 2).verdict(), String(error)).to.equal('agreed')
    }
    machine.error = 9 * minute
    for (let days = 0; days < 400; days++) {
      machine.error += minute
      expect(machine.pass(day + 1).verdict(), `a clock that is corrected every day, ${days}`).to.equal('agreed')
    }
  })

  it('is contradicted by steps in no time, forth and back, until they are undone', () => {
    for (const error of [11 * minute, 4000 * day, -11 * minute, -4000 * day]) {
      machine.error = error
      expect(machine.verdict(), String(error)).to.equal('disputed')
      expect(machine.pass(40 * day).verdict(), 'time alone ends no dispute').to.equal('disputed')
      const judged = judge(machine.record, machine.reading())
      expect(judged.believed).to.equal(machine.true)
      machine.error = 0
      expect(machine.verdict()).to.equal('agreed')
    }
  })

  it('is not contradicted by time for which the machine was off, but that is confirmed first', () => {
    machine.restart(5 * minute)
    expect(machine.verdict(), 'no longer than the tolerance').to.equal('agreed')
    machine.restart(3 * day)
    expect(machine.verdict()).to.equal('unconfirmed')
    expect(machine.pass(confirmedAfter - 1).verdict()).to.equal('unconfirmed')
    expect(machine.pass(1).verdict()).to.equal('agreed')
    machine.error = 11 * minute
    expect(machine.verdict()).to.equal('disputed')
  })

  it('is contradicted by a time after a start that has passed already, until the wall clock is corrected', () => {
    machine.restart(3 * day).error = -4 * day
    expect(machine.verdict()).to.equal('disputed')
    machine.error = 0
    expect(machine.pass(minute).verdict()).to.equal('unconfirmed')
    expect(machine.pass(confirmedAfter).verdict()).to.equal('agreed')
  })

  it('begins the confirmation again with each step, and again with each start', () => {
    machine.restart(day).error = 4000 * day
    expect(machine.verdict()).to.equal('unconfirmed')
    expect(machine.pass(confirmedAfter - minute).verdict()).to.equal('unconfirmed')
    machine.error = 0
    expect(machine.pass(minute).verdict(), 'corrected before it was confirmed').to.equal('unconfirmed')
    machine.restart(0)
    expect(machine.verdict()).to.equal('unconfirmed')
    expect(machine.pass(confirmedAfter).verdict()).to.equal('agreed')
    expect(Math.abs(judge(machine.record, machine.reading()).believed - machine.true)).to.be.lessThan(1)
  })

  it('agrees at once when the wall clock is corrected to the time that was recorded', () => {
    machine.restart(minute).error = 4000 * day
    expect(machine.verdict()).to.equal('unconfirmed')
    machine.error = 0
    expect(machine.pass(9000).verdict()).to.equal('agreed')
  })

  it('takes a boot clock that went back for a start of the machine, as in a container that counts its own time', () => {
    machine.pass(day).verdict()
    machine.boot = 10
    machine.true += day
    expect(machine.verdict()).to.equal('unconfirmed')
  })

  it('begins with a time that has certainly passed where there is none', () => {
    machine.record = recordSince(begin - 5 * minute)
    expect(machine.verdict()).to.equal('agreed')
    machine.record = recordSince(begin - day)
    expect(machine.verdict()).to.equal('unconfirmed')
    machine.record = recordSince(begin + day)
    expect(machine.verdict()).to.equal('disputed')
    machine.record = recordOf(machine.reading())
    expect(machine.verdict()).to.equal('agreed')
  })

  it('is described by both times and by what ends the dispute', () => {
    expect(disputeOf(judge(machine.record, machine.reading()))).to.equal(undefined)
    machine.error = day
    expect(disputeOf(judge(machine.record, machine.reading()))).to.match(
      /^the wall clock \(2026-11-23T08:00:00.000Z\) contradicts .* \(2026-11-22T08:00:00.000Z\): .* until "pilot-discovery ca accept-time"$/,
    )
    machine.restart(0)
    expect(disputeOf(judge(machine.record, machine.reading())))
      .to.include('(2026-11-22T08:00:00.000Z or later)')
      .and.include('for 60 min, or until')
  })

  it('is refused in its stored form with the field that is wrong', () => {
    const good = { bootId: 'a', boot: 1, wall: 2, seen: 3 }
    expect(readClockRecord(good)).to.deep.equal(good)
    for (const [change, fault] of [
      [{ bootId: 1 }, 'bootId: is not a text'],
      [{ boot: -1 }, 'boot: is not a number from 0 on'],
      [{ wall: null }, 'wall: is not a number from 0 on'],
      [{ seen: 'x' }, 'seen: is not a number from 0 on'],
      [{ unconfirmed: 1 }, 'unconfirmed: is not an object'],
      [{ unconfirmed: { candidate: { boot: 1 } } }, 'unconfirmed.candidate.wall: is not a number from 0 on'],
    ] as const)
      expect(() => readClockRecord({ ...good, ...change })).to.throw(fault)
    expect(() => readClockRecord([])).to.throw('the record: is not an object')
  })

  it('believes no time that is off by more than the tolerance unless it ran for an hour after a start, over random histories', () => {
    const step = fc.record({
      act: fc.constantFrom('pass', 'pass', 'jump', 'back', 'restart'),
      ms: fc.oneof(fc.nat(2 * minute), fc.nat(confirmedAfter / 2), fc.nat(5000 * day)),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (history) => {
        const one = new Machine()
        one.verdict()
        // How long the wall clock has run with its present error since a start of the machine.
        let steady = Number.NEGATIVE_INFINITY
        let accepted = 0
        for (const { act, ms } of history) {
          if (act === 'pass') one.pass(ms)
          else if (act === 'restart') one.restart(ms)
          else one.error = act === 'back' ? 0 : ms
          if (act === 'restart') steady = 0
          else if (act === 'pass') steady += ms
          else if (steady >= 0) steady = 0
          if (one.verdict() !== 'agreed') continue
          if (steady >= confirmedAfter) accepted = one.error
          expect(Math.abs(one.error - accepted)).to.be.lessThanOrEqual(clockTolerance * (history.length + 1))
        }
      }),
      { numRuns: runs(300) },
    )
  })
})
