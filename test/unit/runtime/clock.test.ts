import { readFileSync } from 'node:fs'
import { mock } from 'node:test'
import { expect } from 'chai'
import { monotonicMs, readClocks, wallClockMs } from '../../../actors/runtime/clock.ts'

describe('clocks', () => {
  const systemNow = Date.now
  afterEach(() => {
    mock.restoreAll()
    expect(Date.now).to.equal(systemNow)
  })

  it('the wall clock agrees with the system, has fractions of milliseconds and never goes back by itself', () => {
    // The thread is delayed somewhere in each thousandth reading. Otherwise reading the clock takes a microsecond.
    // The time is later than any read before in this process: after the system time was set back, the clock may first be a millisecond
    // ahead.
    let now = 4_100_000_000_000.25
    let reads = 0
    const read = () => {
      now += ++reads % 1999 === 0 ? 50.3 : 0.001
      return now
    }
    mock.method(Date, 'now', () => Math.floor(read()))
    mock.method(process as { hrtime: () => [number, number] }, 'hrtime', () => [0, (read() - 4_099_000_000_000) * 1e6])
    let last = wallClockMs()
    const wrong: number[] = []
    for (let round = 0; round < 20_000; round++) {
      const before = now
      const time = wallClockMs()
      expect(time).to.be.at.least(last)
      expect(time).to.be.within(Math.floor(before), now + 0.01)
      // Without a delay in between, the time is exact once a millisecond of the system time has begun.
      if (round > 1000 && now - before < 1) wrong.push(now - time)
      last = time
    }
    wrong.sort((one, other) => one - other)
    expect(wrong[Math.floor(wrong.length * 0.75)]).to.be.below(0.01)
  })

  it('the wall clock follows changes of the system time, the monotonic clock does not', () => {
    const [wall, monotonic] = [wallClockMs(), monotonicMs()]
    for (const step of [3_600_000, -3_600_000]) {
      // Restored before the next mock: a mock on top of another would restore that one permanently.
      mock.restoreAll()
      mock.method(Date, 'now', () => systemNow() + step)
      // A delay of the thread between two readings affects both clocks.
      expect(wallClockMs() - wall - (monotonicMs() - monotonic)).to.be.closeTo(step, 1000)
      expect(monotonicMs() - monotonic).to.be.within(0, 1_000_000)
    }
  })

  it('the boot clock advances with the monotonic clock, whatever the wall clock does', () => {
    const [first, monotonic] = [readClocks(), monotonicMs()]
    for (const step of [4000 * 86_400_000, -3_600_000]) {
      mock.restoreAll()
      mock.method(Date, 'now', () => systemNow() + step)
      const { wall, boot, bootId } = readClocks()
      const passed = monotonicMs() - monotonic
      expect(wall - first.wall - passed).to.be.closeTo(step, 1000)
      expect(boot - first.boot - passed).to.be.within(-5000, 5000)
      expect(bootId).to.equal(first.bootId)
    }
  })

  it('the boot clock counts from the start of the machine where the system tells it', function () {
    if (process.platform !== 'linux') return this.skip()
    const { boot, bootId } = readClocks()
    expect(bootId).to.equal(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    expect(boot).to.be.closeTo(Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000, 5000)
  })
})
