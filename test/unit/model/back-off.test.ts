import { expect } from 'chai'
import { BackOff, pauseAfter } from '../../../src/model/back-off.ts'

const pauses = { firstMs: 500, longestMs: 10_000 }

describe('the back-off', () => {
  it('doubles the delay with each failure, up to the longest', () => {
    const backOff = new BackOff(pauses)
    expect(backOff.wait(0), 'nothing failed').to.equal(0)
    const waits = Array.from({ length: 7 }, () => backOff.failed(1000))
    expect(waits).to.deep.equal([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    expect([backOff.wait(4000), backOff.wait(11_000), backOff.wait(50_000)]).to.deep.equal([7000, 0, 0])
    expect(pauseAfter(1e9, pauses)).to.equal(10_000)
  })

  it('begins anew after a success, and the next attempt is due at once', () => {
    const backOff = new BackOff(pauses)
    for (const now of [0, 0, 0]) backOff.failed(now)
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([3, 2000])
    backOff.succeeded()
    expect([backOff.failures, backOff.wait(0)]).to.deep.equal([0, 0])
    expect(backOff.failed(0)).to.equal(500)
  })

  it('shortens delays at random by up to the jitter', () => {
    expect([0, 0.5, 1].map((chance) => pauseAfter(2, { ...pauses, jitter: 0.5 }, chance))).to.deep.equal([1000, 750, 500])
    expect(pauseAfter(2, { ...pauses, jitter: 1 }, 1)).to.equal(0)
  })

  it('has a longest delay of one failure where it is given', () => {
    const backOff = new BackOff(pauses)
    expect([backOff.failed(0, 0, { longestMs: 100 }), backOff.failed(0, 0, { longestMs: 20_000 })]).to.deep.equal([100, 1000])
  })

  it('waits at least as long as the other side asks, up to a limit, with jitter added, after a success too', () => {
    const backOff = new BackOff({ ...pauses, longestAskedMs: 60_000 })
    expect([300, 3000].map((askedMs) => backOff.failed(0, 1, { askedMs }))).to.deep.equal([500, 3600])
    expect(backOff.wait(0)).to.equal(3600)
    backOff.succeeded()
    backOff.postpone(3_600_000, 0, 1)
    expect(backOff.wait(0)).to.equal(72_000)
    expect(new BackOff(pauses).failed(0, 0, { askedMs: 3000 }), 'no delay is accepted').to.equal(500)
  })
})
