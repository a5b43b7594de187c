import { expect } from 'chai'
import fc from 'fast-check'
import { type NameSet, NameSets, onlyIn, SimilarNames, sameSet } from '../../../../src/xds/stream/name-set.ts'

const common = Array.from({ length: 400 }, (_, index) => `common-${index}`)
const some = (list: readonly string[], max: number) => fc.uniqueArray(fc.constantFrom(...list), { maxLength: max })
/** Sets that are alike, and some that are not. */
const list = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(some(common, 40), some(['a', 'b', 'c', 'd'], 4))
      .map(([less, more]) => [...common.filter((name) => !less.includes(name)), ...more]),
  },
  some(common, 400),
)
const change = fc.record({ add: some([...common, 'a', 'b', 'c', 'e'], 80), remove: some([...common, 'a', 'b', 'x'], 80) })

describe('sets of names that are alike', () => {
  it('are what plain sets are, however they came to be', () => {
    fc.assert(
      fc.property(fc.array(list, { minLength: 1, maxLength: 5 }), fc.array(change, { maxLength: 4 }), (lists, changes) => {
        const sets = new NameSets()
        const all: { made: NameSet; truth: Set<string> }[] = []
        for (const names of lists) {
          all.push({ made: sets.kept(new Set(names)), truth: new Set(names) })
          for (const { add, remove } of changes) {
            const { made, truth } = all.at(-1) as (typeof all)[number]
            all.push({ made: sets.changed(made, add, remove), truth: new Set([...[...truth].filter((name) => !remove.includes(name)), ...add]) })
          }
        }
        for (const { made, truth } of all) {
          expect([...made].sort()).to.deep.equal([...truth].sort())
          expect(made.size).to.equal(truth.size)
          for (const name of [...common.slice(0, 50), 'a', 'b', 'x']) expect(made.has(name)).to.equal(truth.has(name))
          for (const other of all) {
            expect([...onlyIn(made, other.made)].sort()).to.deep.equal([...truth].filter((name) => !other.truth.has(name)).sort())
            expect(sameSet(made, other.made)).to.equal(truth.size === other.truth.size && [...truth].every((name) => other.truth.has(name)))
          }
        }
      }),
      { numRuns: 100 },
    )
  })

  it('hold what they have in common once', () => {
    const sets = new NameSets()
    const first = sets.kept(new Set(common))
    const other = sets.kept(new Set([...common.slice(3), 'own'])) as SimilarNames
    expect([other.base, other.plus.size, other.minus.size]).to.deep.equal([first, 1, 3])
    expect(sets.kept(new Set([...common].reverse()))).to.equal(first)
    const third = sets.changed(other, common.slice(0, 3), ['own'])
    expect(third).to.equal(first)
    const less = sets.changed(first, [], common.slice(0, 60))
    expect(less).not.to.be.instanceOf(SimilarNames)
  })
})
