import { expect } from 'chai'
import fc from 'fast-check'
import { sharedPlaces, TimeShares } from '../../../src/policy/fetch-shares.ts'
import '../../harness/seed.ts'

describe('the places of key sets', () => {
  const sources = (namespace: string, number: number) => Array.from({ length: number }, (_, index) => [`${namespace}${index}`, [namespace]] as const)
  const by = (chosen: ReadonlyMap<string, string>, namespace: string) => [...chosen.values()].filter((one) => one === namespace).length

  it('go to each namespace that needs few, and what is left to those that need many', () => {
    const chosen = sharedPlaces(new Map([...sources('greedy', 30), ...sources('a', 2), ...sources('b', 5)]), 12, () => false)
    expect([by(chosen, 'greedy'), by(chosen, 'a'), by(chosen, 'b')]).to.deep.equal([5, 2, 5])
  })

  it('are given back by the namespace that has most when another one needs its first', () => {
    const before = sharedPlaces(new Map(sources('greedy', 30)), 12, () => false)
    expect([...before.keys()]).to.deep.equal(Array.from({ length: 12 }, (_, index) => `greedy${index}`))
    const after = sharedPlaces(new Map([...sources('greedy', 30).reverse(), ...sources('victim', 1)]), 12, (source) => before.has(source))
    expect([by(after, 'victim'), by(after, 'greedy')]).to.deep.equal([1, 11])
    expect(
      [...after.keys()].filter((source) => source.startsWith('greedy') && !before.has(source)),
      'new ones of the greedy',
    ).to.deep.equal([])
  })

  it('count a source that several need for the one that needs the fewest, so that nobody makes another one pay', () => {
    const wanted = new Map<string, readonly string[]>([...sources('greedy', 30), ['shared', ['greedy', 'victim']]])
    expect(sharedPlaces(wanted, 3, () => false).get('shared')).to.equal('victim')
  })

  it('are all used, and no namespace that lacks one has fewer than another one has beyond it', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 8 }), fc.nat({ max: 60 }), (sizes, places) => {
        const wanted = new Map(sizes.flatMap((number, index) => sources(`n${index}-`, number)))
        const chosen = sharedPlaces(wanted, places, () => false)
        expect(chosen.size).to.equal(Math.min(places, wanted.size))
        const got = sizes.map((_, index) => by(chosen, `n${index}-`))
        for (const [index, number] of got.entries()) if (number < (sizes[index] as number)) expect(number).to.be.at.least(Math.max(...got) - 1)
      }),
    )
  })
})

describe('the time of a fetching thread', () => {
  it('is free for each asker until it has used its burst, and then again as its share of time passes', () => {
    const shares = new TimeShares({ burstMs: 1000, share: 0.1 })
    shares.spend('a', 1500, 0)
    expect([shares.waitMs('a', 0), shares.waitMs('a', 2000), shares.waitMs('a', 5000), shares.waitMs('b', 0)]).to.deep.equal([5000, 3000, 0, 0])
    shares.spend('a', 500, 5000)
    expect(shares.waitMs('a', 5000)).to.equal(5000)
  })

  it('is remembered only while something of it counts', () => {
    const shares = new TimeShares({ burstMs: 1000, share: 0.1 })
    for (let asker = 0; asker < 100; asker++) shares.spend(String(asker), 1, asker * 20)
    expect(shares.size).to.equal(1)
  })
})
