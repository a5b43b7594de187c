import { expect } from 'chai'
import { monotonicMs, wallClockMs } from '../../../actors/runtime/clock.ts'

describe('clocks', () => {
  it('the wall clock agrees with the system, has fractions and does not go back by itself', () => {
    const times = Array.from({ length: 10_000 }, () => {
      const before = Date.now()
      const time = wallClockMs()
      expect(time).to.be.within(before, Date.now() + 1)
      return time
    })
    expect(times.every((time, index) => index === 0 || time >= (times[index - 1] as number))).to.equal(true)
    expect(new Set(times).size).to.be.greaterThan(100)
  })

  it('the wall clock follows when the time of the system is set, the monotonic one does not', () => {
    const systemNow = Date.now
    const [wall, monotonic] = [wallClockMs(), monotonicMs()]
    try {
      for (const step of [3_600_000, -3_600_000]) {
        Date.now = () => systemNow() + step
        expect(wallClockMs() - wall).to.be.closeTo(step, 1000)
        expect(monotonicMs() - monotonic).to.be.within(0, 1000)
      }
    } finally {
      Date.now = systemNow
    }
  })
})
