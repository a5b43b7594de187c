import { expect } from 'chai'
import fc from 'fast-check'
import { distance, nearest } from '../../../src/model/edit-distance.ts'
import { runs } from '../../harness/seed.ts'

/** The distance by its definition, without tables. */
function byDefinition(one: string, other: string): number {
  if (one === '' || other === '') return one.length + other.length
  const [shorterOne, shorterOther] = [one.slice(0, -1), other.slice(0, -1)]
  const others = [byDefinition(shorterOne, other) + 1, byDefinition(one, shorterOther) + 1]
  const replaced = byDefinition(shorterOne, shorterOther) + (one.at(-1) === other.at(-1) ? 0 : 1)
  const isSwapped = one.length > 1 && other.length > 1 && one.at(-1) === other.at(-2) && one.at(-2) === other.at(-1)
  return Math.min(...others, replaced, isSwapped ? byDefinition(one.slice(0, -2), other.slice(0, -2)) + 1 : Number.POSITIVE_INFINITY)
}

describe('the distance between texts', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 5 })

  it('is that of its definition, whatever the limit', () => {
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 6 }), (one, other, limit) => {
        const expected = Math.abs(one.length - other.length) > 3 ? Number.POSITIVE_INFINITY : byDefinition(one, other)
        expect(distance(one, other)).to.equal(expected)
        expect(distance(one, other, limit)).to.equal(expected < limit ? expected : Number.POSITIVE_INFINITY)
      }),
      { numRuns: runs(500) },
    )
  })

  it('names what may be meant, also with swapped letters, and guesses nothing of short names besides', () => {
    for (const [unknown, meant] of [
      ...(['timeuot timeout', 'simpel simple', 'form from', 'wbe web', 'destinaton destination', 'PILOT_MOCK_SERVICE PILOT_MOCK_SERVICES'] as const),
    ].map((pair) => pair.split(' ') as [string, string]))
      expect(nearest(unknown, ['other', meant, 'another']), unknown).to.equal(meant)
    for (const [unknown, name] of [...(['api app', 'a b', 'wb web', 'to of', 'ab ab'] as const)].map((pair) => pair.split(' ') as [string, string]))
      expect(nearest(unknown, [name]), unknown).to.equal(undefined)
  })
})
