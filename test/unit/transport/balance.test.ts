import { expect } from 'chai'
import fc from 'fast-check'
import { Balance, surplus } from '../../../src/transport/balance.ts'
import { Transports } from '../../../src/transport/transports.ts'

describe('the balance of connections between writers', () => {
  it('ignores differences within random variation', () => {
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

  it('moves some connections away from a writer with too many', () => {
    expect([
      ...surplus(
        new Map([
          ['a', 300],
          ['b', 100],
        ]),
      ),
    ]).to.deep.equal([['a', 21]])
  })

  it('settles, wherever the moved connections reconnect', () => {
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

  it('is tried ever less often without success, and at once again after another change', () => {
    const balance = new Balance()
    const unchanged = new Map([
      ['a', 300],
      ['b', 100],
    ])
    const looks = Array.from({ length: 1000 }, () => balance.moves(unchanged).size)
    expect(looks.slice(0, 7)).to.deep.equal([1, 1, 0, 1, 0, 0, 0])
    expect(looks.filter(Boolean).length).to.be.lessThan(12)
    const fewer = new Map(unchanged).set('a', 280)
    expect([...balance.moves(fewer)]).to.deep.equal([['a', 20]])
    expect(balance.moves(new Map(fewer).set('a', 110)).size).to.equal(0)
    expect([...balance.moves(unchanged)]).to.deep.equal([['a', 21]])
  })

  it('counts a transport once, whatever the number of its streams, and moves all of them', () => {
    const transports = new Transports<string>()
    const [one, other, third] = [{}, {}, {}]
    const first = transports.add(one, 'a')
    for (const stream of ['b', 'c']) expect(transports.add(one, stream)).to.equal(first)
    transports.add(other, 'd')
    transports.add(third, 'e')
    expect(transports.size).to.equal(3)
    expect(transports.newest(2).map(({ streams }) => [...streams])).to.deep.equal([['e'], ['d']])
    transports.remove(third, 'e')
    transports.remove(one, 'a')
    expect(transports.newest(9).map(({ streams }) => [...streams])).to.deep.equal([['d'], ['b', 'c']])
    expect(transports.newest(0)).to.deep.equal([])
    expect(transports.add(third, 'e').number, 'numbers are not used again').to.equal(3)
  })
})
