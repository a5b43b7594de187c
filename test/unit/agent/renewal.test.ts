import { expect } from 'chai'
import { callPauses, longestPause, renewalDelay } from '../../../src/agent/renewal.ts'
import { BackOff } from '../../../src/model/back-off.ts'

describe('delay until a certificate is renewed', () => {
  const day = 86_400_000
  it('is the time until the grace ratio of the lifetime is left, shortened by up to a tenth at random', () => {
    expect(renewalDelay(day, 0.5, 0)).to.equal(day / 2)
    expect(renewalDelay(day, 0.5, 1)).to.be.closeTo(day * 0.45, 1)
  })

  it('leaves at least a tenth of the lifetime before expiry, and at least a tenth has passed', () => {
    for (const chance of [0, 0.5, 1]) {
      expect(renewalDelay(day, 0, chance), 'ratio 0').to.be.within(day * 0.88, day * 0.9)
      expect(renewalDelay(day, 1, chance), 'ratio 1').to.be.closeTo(day * 0.1, 1)
    }
  })
})

describe('delay until a failed certificate call is retried', () => {
  const none = 0
  /** The delay after the last of some failures in a row. */
  const retryDelay = (failures: number, askedMs: number, restMs: number, chance: number) => {
    const backOff = new BackOff(callPauses)
    for (let failure = 1; failure < failures; failure++) backOff.failed(0)
    return backOff.failed(0, chance, { longestMs: longestPause(restMs), askedMs })
  }
  it('starts at 100 ms and doubles up to 15 s, with up to half of it removed as jitter', () => {
    expect([1, 2, 3, 4].map((failures) => retryDelay(failures, 0, none, 0))).to.deep.equal([100, 200, 400, 800])
    expect(retryDelay(1, 0, none, 1)).to.equal(50)
    for (const failures of [11, 50, 1e5]) expect(retryDelay(failures, 0, none, 0)).to.equal(15_000)
  })

  it('is at most a minute while a certificate is valid, and gets shorter as its expiry approaches', () => {
    expect([3_600_000, 80_000, 8000, 1].map((rest) => retryDelay(20, 0, rest, 0))).to.deep.equal([60_000, 10_000, 1000, 1000])
    expect(retryDelay(1, 0, 1, 0)).to.equal(100)
  })

  it('is at least the delay that the authority requested, up to ten minutes', () => {
    expect(retryDelay(1, 5000, none, 0)).to.equal(5000)
    expect(retryDelay(1, 5000, none, 1)).to.equal(6000)
    expect(retryDelay(1, 86_400_000, 8000, 0)).to.equal(600_000)
    expect(retryDelay(20, 5000, none, 0)).to.equal(15_000)
  })
})
