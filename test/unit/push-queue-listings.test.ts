import { expect } from 'chai'
import { Listings, type WeighedRow } from '../../actors/discovery/push-queue/listings.ts'
import type { ListPiece } from '../../protocols/messages/pages.ts'

function* rows(count: number, weight: number): Generator<WeighedRow<number>> {
  for (let row = 0; row < count; row++) yield [row, weight]
}

describe('lists for debug pages', () => {
  it('come in pieces of a limited weight, each row once', () => {
    const listings = new Listings()
    const found: number[] = []
    let pieces = 1
    let piece: ListPiece<unknown> = listings.first(rows(1000, 50))
    for (; piece.next !== undefined; pieces++) {
      expect(piece.rows.length).to.be.at.most(10)
      found.push(...(piece.rows as number[]))
      piece = listings.more(piece.next)
    }
    found.push(...(piece.rows as number[]))
    expect(found).to.deep.equal(Array.from({ length: 1000 }, (_, row) => row))
    expect(pieces).to.be.at.least(100)
  })

  it('are given up when too many others are asked for, which the next question says', () => {
    const listings = new Listings()
    const [first, ...others] = Array.from({ length: 17 }, () => listings.first(rows(1000, 100)))
    expect(() => listings.more(first?.next ?? 0)).to.throw('the list was given up, since too many others were asked for')
    for (const { next } of others) expect(listings.more(next ?? 0).rows).not.to.deep.equal([])
  })
})
