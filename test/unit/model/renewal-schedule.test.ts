import { expect } from 'chai'
import { RenewalSchedule } from '../../../src/model/renewal-schedule.ts'

const hour = 3_600_000
const begin = { wall: 1_800_000_000_000, monotonic: 5000 }
const later = (ms: number, clockMoved = 0) => ({ wall: begin.wall + ms + clockMoved, monotonic: begin.monotonic + ms })
const pauses = { firstMs: 100, longestMs: 15_000 }
/** Records an attempt at a moment that yields something for a time. */
function succeed(schedule: RenewalSchedule, nextMs: number, now = begin): RenewalSchedule {
  schedule.begun()
  schedule.obtained(now)
  schedule.succeeded(nextMs, now)
  return schedule
}
const fresh = () => succeed(new RenewalSchedule(pauses), hour)

describe('the schedule of a renewal', () => {
  it('has the first attempt at once, and one at a time', () => {
    const schedule = new RenewalSchedule(pauses)
    expect(schedule.wait(begin)).to.equal(0)
    schedule.begun()
    expect(schedule.wait(later(hour))).to.equal(Number.POSITIVE_INFINITY)
  })

  it('has the next attempt when the time is over', () => {
    const schedule = fresh()
    expect([schedule.wait(begin), schedule.wait(later(hour / 2)), schedule.wait(later(hour))]).to.deep.equal([hour, hour / 2, 0])
    succeed(schedule, 2 * hour, later(hour))
    expect(schedule.wait(later(hour))).to.equal(2 * hour)
  })

  it('is in time although the clock is set back or forward or the machine sleeps', () => {
    expect(fresh().wait(later(hour, -10 * hour)), 'set back').to.equal(0)
    expect(fresh().wait(later(1000, 2 * hour)), 'set forward').to.equal(0)
    expect(fresh().wait({ wall: begin.wall + hour, monotonic: begin.monotonic + 1000 }), 'sleep').to.equal(0)
  })

  it('backs off after each failure, also of what was obtained and cannot be used, until a success', () => {
    const schedule = fresh()
    let at = hour
    for (const wait of [100, 200, 400]) {
      schedule.begun()
      if (wait === 200) schedule.obtained(later(at))
      expect(schedule.failed(later(at), 0)).to.equal(wait)
      expect([schedule.wait(later(at)), schedule.wait(later(at + wait))]).to.deep.equal([wait, 0])
      at += wait
    }
    expect(schedule.failures).to.equal(3)
    expect(schedule.failed(later(at), 0, { longestMs: 150 }), 'a longest delay').to.equal(150)
    succeed(schedule, hour, later(at))
    expect([schedule.failures, schedule.wait(later(at))]).to.deep.equal([0, hour])
  })

  it('retries at once when the reason of a failure may be gone, but does nothing before the time is over', () => {
    const schedule = fresh()
    schedule.retryNow()
    expect(schedule.wait(begin)).to.equal(hour)
    schedule.begun()
    schedule.failed(later(hour), 0)
    schedule.retryNow()
    expect(schedule.wait(later(hour))).to.equal(0)
  })

  it('can be due earlier, not later, and what an attempt yields counts from there', () => {
    const schedule = fresh()
    schedule.dueWithin(2 * hour, begin)
    expect(schedule.wait(begin)).to.equal(hour)
    schedule.dueWithin(10, begin)
    expect(schedule.wait(begin)).to.equal(10)
    schedule.begun()
    schedule.dueWithin(0, begin)
    schedule.obtained(begin)
    schedule.dueWithin(20, begin)
    schedule.succeeded(hour, begin)
    expect(schedule.wait(begin)).to.equal(20)
    schedule.dueIn(hour, begin)
    expect(schedule.wait(begin), 'obtained in another way').to.equal(hour)
  })
})
