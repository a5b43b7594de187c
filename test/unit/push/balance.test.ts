import { expect } from 'chai'
import fc from 'fast-check'
import { surplus } from '../../../src/push/balance.ts'

describe('balance', () => {
  it('leaves alone what chance may bring', () => {
    expect(
      surplus(
        new Map([
          ['a', 210],
          ['b', 190],
        ]),
      ).size,
    ).to.equal(0)
    expect(
      surplus(
        new Map([
          ['a', 7],
          ['b', 0],
        ]),
      ).size,
    ).to.equal(0)
    expect(surplus(new Map([['a', 100]])).size).to.equal(0)
    expect(surplus(new Map()).size).to.equal(0)
  })

  it('lets a few go of a writer that has too many', () => {
    expect([
      ...surplus(
        new Map([
          ['a', 300],
          ['b', 100],
        ]),
      ),
    ]).to.deep.equal([['a', 21]])
  })

  it('comes to rest, wherever those go that are let go', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2000), { minLength: 2, maxLength: 8 }), fc.infiniteStream(fc.nat(1_000_000)), (start, choices) => {
        const counts = new Map(start.map((count, index) => [`w${index}`, count]))
        for (let round = 0; round < 200; round++) {
          const moves = surplus(counts)
          if (moves.size === 0) return
          for (const [writer, count] of moves) {
            for (let i = 0; i < count; i++) {
              counts.set(writer, (counts.get(writer) as number) - 1)
              const to = `w${(choices.next().value as number) % counts.size}`
              counts.set(to, (counts.get(to) as number) + 1)
            }
          }
        }
        expect.fail('still moving after 200 rounds')
      }),
      { numRuns: 50 },
    )
  })
})
