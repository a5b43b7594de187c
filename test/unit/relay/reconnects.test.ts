import { expect } from 'chai'
import { BackOff } from '../../../src/model/back-off.ts'
import { countAttempt, reconnects } from '../../../src/relay/reconnects.ts'

const failed = { servedMs: 0, askedMs: 0 }

describe('the reconnects of the relay', () => {
  it('have twice the random range after each failure, up to ten seconds', () => {
    const backOff = new BackOff(reconnects)
    const longest = Array.from({ length: 7 }, () => {
      countAttempt(backOff, failed, 1000, 0)
      return backOff.wait(1000)
    })
    expect(longest).to.deep.equal([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    countAttempt(backOff, failed, 0, 1)
    expect(backOff.wait(0), 'the shortest').to.equal(0)
  })

  it('follow within two seconds while nothing accepts connections, and go on from there when something does', () => {
    const backOff = new BackOff(reconnects)
    const longest = Array.from({ length: 6 }, () => {
      countAttempt(backOff, { ...failed, isUnanswered: true }, 0, 0)
      return backOff.wait(0)
    })
    expect(longest).to.deep.equal([500, 1000, 2000, 2000, 2000, 2000])
    const later = Array.from({ length: 3 }, () => {
      countAttempt(backOff, failed, 0, 0)
      return backOff.wait(0)
    })
    expect(later).to.deep.equal([4000, 8000, 10_000])
    // An attempt that nobody answers after those is soon followed by another one, too.
    countAttempt(backOff, { ...failed, isUnanswered: true }, 0, 0)
    expect(backOff.wait(0)).to.equal(2000)
  })

  it('go on backing off after a short-lived stream, and begin anew after one that lasted ten seconds', () => {
    const backOff = new BackOff(reconnects)
    countAttempt(backOff, failed, 0, 0)
    countAttempt(backOff, { servedMs: 9999, askedMs: 0 }, 0, 0)
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([2, 1000])
    countAttempt(backOff, { servedMs: 10_000, askedMs: 0 }, 0, 0)
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([0, 0])
  })

  it('respect the delay that discovery requests, up to a minute, with jitter', () => {
    const backOff = new BackOff(reconnects)
    countAttempt(backOff, { servedMs: 0, askedMs: 3000 }, 0, 0)
    expect(backOff.wait(0)).to.equal(3000)
    countAttempt(backOff, { servedMs: 20_000, askedMs: 3_600_000 }, 0, 1)
    expect(backOff.wait(0)).to.equal(72_000)
  })
})
