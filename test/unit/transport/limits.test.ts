import { expect } from 'chai'
import { FleetPace } from '../../../src/transport/fleet-pace.ts'
import { Keepalive } from '../../../src/transport/keepalive.ts'
import { MessageTimer, messageTimeLimits } from '../../../src/transport/message-timer.ts'

describe('a request message that arrives slowly', () => {
  const seconds = (timer: MessageTimer, length: number, each: (second: number) => void) => {
    for (let second = 1; second < 10_000; second++) {
      each(second)
      if (timer.charge(1000, length)) return second
    }
    return undefined
  }

  it('is rejected after a minute without a byte', () => {
    expect(seconds(new MessageTimer(messageTimeLimits), 4_000_000, () => undefined)).to.equal(60)
  })

  it('is rejected although single bytes arrive, with more time only for a long message', () => {
    const trickling = (length: number) => {
      const timer = new MessageTimer(messageTimeLimits)
      return seconds(timer, length, () => timer.came())
    }
    expect(trickling(100)).to.equal(61)
    expect(trickling(1_024_000)).to.equal(160)
  })

  it('is timed from its own first byte', () => {
    const timer = new MessageTimer(messageTimeLimits)
    expect(seconds(timer, 100, (second) => (second % 50 === 0 ? timer.begin() : timer.came()))).to.equal(undefined)
  })
})

describe('keepalive', () => {
  /** Returns the actions of each second, with signs of life in the seconds that `signs` selects. */
  const run = (seconds: number, signs: (second: number) => boolean) => {
    const keepalive = new Keepalive(10_000, 5000)
    let sign = 0
    const seen: string[] = []
    for (let second = 0; second < seconds; second++) {
      if (signs(second)) sign++
      const next = keepalive.check(1000, sign)
      if (next) seen.push(`${second} ${next}`)
      if (next === 'give up') break
    }
    return seen
  }

  it('pings after an interval of silence, and gives up after a further timeout', () => {
    expect(run(100, () => false)).to.deep.equal(['10 ping', '15 give up'])
  })

  it('counts any inbound byte as a sign of life, at any time', () => {
    expect(run(40, (second) => second % 9 === 0)).to.deep.equal([])
    expect(run(40, (second) => second % 14 === 0)).to.deep.equal(['10 ping', '24 ping', '38 ping'])
  })
})

describe('the standstill limit', () => {
  const limit = 5000
  const streams = [{}, {}, {}, {}]
  const slow = (count: number, ms: number, at: number, pace = new FleetPace(limit)) => {
    for (const stream of streams.slice(0, count)) pace.paused(stream, ms, at)
    return pace
  }

  it('is raised only if three streams resumed after pauses that are long for the limit', () => {
    expect(new FleetPace(limit).standstillMs(0)).to.equal(limit)
    expect(slow(2, 8000, 0).standstillMs(0)).to.equal(limit)
    expect(slow(3, 8000, 0).standstillMs(0)).to.equal(32_000)
    expect(slow(3, 2000, 0).standstillMs(0)).to.equal(8000)
    expect(slow(4, 1000, 0).standstillMs(0)).to.equal(limit)
  })

  it('is not lowered by fast streams, and at most twelve times the configured limit', () => {
    const pace = slow(3, 3000, 0)
    for (let index = 0; index < 1000; index++) pace.paused({}, 5, index)
    expect(pace.standstillMs(1000)).to.equal(12_000)
    expect(slow(3, 40_000, 0).standstillMs(0)).to.equal(60_000)
  })

  it('returns to the configured limit a minute after the last long pause, and stays infinite if it is off', () => {
    const pace = slow(3, 8000, 0)
    expect(pace.standstillMs(60_000)).to.equal(32_000)
    expect(pace.standstillMs(60_001)).to.equal(limit)
    expect(slow(3, 2000, 60_001, pace).standstillMs(60_001)).to.equal(8000)
    const off = new FleetPace(Number.POSITIVE_INFINITY)
    for (const stream of streams) off.paused(stream, 100_000, 0)
    expect(off.standstillMs(0)).to.equal(Number.POSITIVE_INFINITY)
  })
})
