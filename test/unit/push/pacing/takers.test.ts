import { expect } from 'chai'
import { Takers } from '../../../../src/push/pacing/takers.ts'

describe('who has to take a push', () => {
  it('is every writer, and what was sent before does not count', () => {
    const takers = new Takers()
    takers.begin(7, ['a', 'b'])
    expect([takers.taken('a', 6), takers.taken('a', 7), takers.waiting, takers.taken('b', 8), takers.waiting]).to.deep.equal([
      false,
      false,
      true,
      true,
      false,
    ])
    expect(takers.taken('b', 8)).to.equal(false)
  })

  it('is not one that is gone', () => {
    const takers = new Takers()
    takers.begin(1, ['a', 'b'])
    takers.taken('a', 1)
    expect([takers.gone('b'), takers.gone('b'), takers.waiting]).to.deep.equal([true, false, false])
  })

  it('is not one that did not take the last in time, until it has caught up', () => {
    const takers = new Takers()
    takers.begin(1, ['hung', 'prompt'])
    takers.taken('prompt', 1)
    takers.late()
    expect(takers.waiting).to.equal(false)
    takers.begin(2, ['hung', 'prompt'])
    expect(takers.taken('prompt', 2)).to.equal(true)
    takers.taken('hung', 1)
    takers.begin(3, ['hung', 'prompt'])
    takers.taken('hung', 3)
    takers.begin(4, ['hung', 'prompt'])
    expect([takers.taken('prompt', 4), takers.taken('hung', 4)]).to.deep.equal([false, true])
  })

  it('is every writer again when all are behind', () => {
    const takers = new Takers()
    takers.begin(1, ['a'])
    takers.late()
    takers.begin(2, ['a'])
    expect([takers.waiting, takers.taken('a', 2)]).to.deep.equal([true, true])
  })
})
