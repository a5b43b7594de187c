import { mock } from 'node:test'
import { expect } from 'chai'
import { every, after as runAfter } from '../../../actors/runtime/timers.ts'

describe('timers', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())
  const longest = 2 ** 31 - 1

  it('wait as long as asked for, beyond the longest delay that Node takes', () => {
    let runs = 0
    runAfter(longest + 1000, () => runs++)
    mock.timers.tick(longest)
    expect(runs).to.equal(0)
    mock.timers.tick(999)
    expect(runs).to.equal(0)
    mock.timers.tick(1)
    expect(runs).to.equal(1)
  })

  it('never run after an infinite delay, and at once after a negative one', () => {
    let runs = 0
    runAfter(Number.POSITIVE_INFINITY, () => runs++)
    mock.timers.tick(longest)
    expect(runs).to.equal(0)
    runAfter(-5, () => runs++)
    mock.timers.tick(0)
    expect(runs).to.equal(1)
  })

  it('repeat until they are cancelled, also from within', () => {
    let runs = 0
    const timer = every(10, () => {
      if (++runs === 3) timer.cancel()
    })
    for (let tick = 0; tick < 10; tick++) mock.timers.tick(10)
    expect(runs).to.equal(3)
  })

  it('refuse a delay that is not a number', () => {
    expect(() => runAfter(Number.NaN, () => {})).to.throw(RangeError)
  })
})
