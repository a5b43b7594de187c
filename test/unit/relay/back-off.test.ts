import { expect } from 'chai'
import { BackOff } from '../../../src/relay/back-off.ts'

const failed = { servedMs: 0, askedMs: 0 }

describe('the back-off of the relay', () => {
  it('doubles its random range with each failure, up to ten seconds', () => {
    const backOff = new BackOff()
    expect(backOff.wait(0)).to.equal(0)
    const longest = Array.from({ length: 7 }, () => {
      backOff.ended(failed, 1000, 1)
      return backOff.wait(1000)
    })
    expect(longest).to.deep.equal([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    expect([backOff.wait(4000), backOff.wait(11_000), backOff.wait(50_000)]).to.deep.equal([7000, 0, 0])
    backOff.ended(failed, 0, 0)
    expect(backOff.wait(0)).to.equal(0)
  })

  it('continues after a short-lived stream, and is reset by one that lasted ten seconds', () => {
    const backOff = new BackOff()
    backOff.ended(failed, 0, 1)
    backOff.ended({ servedMs: 9999, askedMs: 0 }, 0, 1)
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([2, 1000])
    backOff.ended({ servedMs: 10_000, askedMs: 0 }, 0, 1)
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([0, 0])
  })

  it('respects the delay that discovery requests, up to a minute, with jitter', () => {
    const backOff = new BackOff()
    backOff.ended({ servedMs: 0, askedMs: 3000 }, 0, 0)
    expect(backOff.wait(0)).to.equal(3000)
    backOff.ended({ servedMs: 20_000, askedMs: 3_600_000 }, 0, 1)
    expect(backOff.wait(0)).to.equal(72_000)
  })
})
