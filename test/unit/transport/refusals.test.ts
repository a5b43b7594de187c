import { expect } from 'chai'
import { Refusals } from '../../../src/transport/refusals.ts'

describe('refused streams of a connection', () => {
  it('may be 1,000 at once and 33 a second', () => {
    const refusals = new Refusals(0)
    for (let count = 0; count < 1000; count++) expect(refusals.count(0)).to.equal(true)
    expect(refusals.count(0)).to.equal(false)
    const later = new Refusals(0)
    const stays = Array.from({ length: 3300 }, (_, index) => later.count(Math.floor(index / 33) * 1000))
    expect(stays.every((stay) => stay)).to.equal(true)
  })
})
