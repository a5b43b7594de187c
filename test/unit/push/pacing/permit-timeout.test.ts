import { expect } from 'chai'
import { PermitTimeout } from '../../../../src/push/pacing/permit-timeout.ts'

describe('the permit of a slow response', () => {
  const pace = (ms: number, bytes: number) => {
    const timeout = new PermitTimeout()
    for (let round = 0; round < 100; round++) timeout.record(round % 10 === 0 ? ms * 50 : ms, bytes)
    return timeout
  }

  it('expires if no byte is accepted for half a second', () => {
    const timeout = new PermitTimeout()
    expect(timeout.isOver({ elapsed: 499, still: 499, bytes: 10 })).to.equal(false)
    expect(timeout.isOver({ elapsed: 500, still: 500, bytes: 10 })).to.equal(true)
  })

  it('expires after four times the duration at the median rate plus half a second', () => {
    const timeout = pace(100, 1_000_000)
    expect(timeout.isOver({ elapsed: 890, still: 0, bytes: 1_000_000 })).to.equal(false)
    expect(timeout.isOver({ elapsed: 910, still: 0, bytes: 1_000_000 })).to.equal(true)
    expect(timeout.isOver({ elapsed: 2490, still: 0, bytes: 5_000_000 })).to.equal(false)
  })

  it('is extended if all responses are slow', () => {
    expect(pace(10_000, 1_000_000).isOver({ elapsed: 30_000, still: 0, bytes: 1_000_000 })).to.equal(false)
  })

  it('assumes a median rate of 2 MB/s until the first response was delivered', () => {
    const timeout = new PermitTimeout()
    const isOver = (elapsed: number) => timeout.isOver({ elapsed, still: 0, bytes: 1_000_000 })
    expect([isOver(2490), isOver(2510)]).to.deep.equal([false, true])
    timeout.record(10_000, 1_000_000)
    expect(isOver(2510)).to.equal(false)
  })

  it('ignores the rate of small responses', () => {
    const timeout = new PermitTimeout()
    for (let round = 0; round < 100; round++) timeout.record(0.01, 100)
    expect(timeout.isOver({ elapsed: 2490, still: 0, bytes: 1_000_000 })).to.equal(false)
  })
})
