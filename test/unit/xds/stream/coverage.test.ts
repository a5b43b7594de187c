import { expect } from 'chai'
import fc from 'fast-check'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { textField } from '../../../../src/xds/slab/wire.ts'
import { Coverages } from '../../../../src/xds/stream/coverage.ts'
import { entryOf } from '../../../../src/xds/stream/entry.ts'
import { Group, noneHidden } from '../../../../src/xds/stream/group.ts'
import { Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { TypeState } from '../../../../src/xds/stream/type-state.ts'
import { endpointType, virtualHostType } from '../../../../src/xds/type-urls.ts'
import { runs } from '../../../harness/seed.ts'

const nameOf = (index: number) => `outbound|80||host-${index}`
const groupOf = (id: string, names: readonly string[]): Group => {
  const made = new Group(id, { sums: new KeyedSums('key'), serial: () => 1 })
  made.apply(
    { group: id, base: 0, sequence: 1, version: '0'.repeat(32), changed: names.map((name) => ({ name, version: '1', slices: [] })), removed: [] },
    (data) => entryOf(data, []),
  )
  return made
}
/** Runs of consecutive names, so that one set may differ from another in a few. */
const run = fc.record({ from: fc.integer({ min: 0, max: 40 }), count: fc.constantFrom(0, 3, 20, 150, 300, 310, 330) })
const names = fc
  .tuple(run, run)
  .map(([one, other]) => new Set([one, other].flatMap(({ from, count }) => Array.from({ length: count }, (_, index) => nameOf(from + index)))))
const sorted = (list: Iterable<string>) => [...list].sort()

describe('the part of a group that a subscription covers', () => {
  it('contains the names in both; missing names are in no group or hidden', () => {
    fc.assert(
      fc.property(fc.array(names, { minLength: 1, maxLength: 3 }), names, fc.constantFrom(0, 1, 2), (lists, base, hide) => {
        const [subscriptions, coverages] = [new Subscriptions(), new Coverages()]
        const own = [nameOf(900), nameOf(901)]
        const big = groupOf('big', [...base])
        const hidden = hide === 0 ? noneHidden : new Set(['host-1', 'host-30'].slice(0, hide))
        const state = new TypeState(endpointType, [groupOf('own', own).visible(endpointType, noneHidden), big.visible(endpointType, hidden)])
        for (const asked of lists) {
          for (const wanted of [new Set([...asked, nameOf(900)]), asked]) {
            const { subscription } = subscriptions.asked(Buffer.concat([...wanted].map((name) => textField(3, name))))
            for (const visible of state.groups) {
              const { left, taken, outside } = coverages.of(subscription, visible)
              const there = [...visible.group.entries.keys()]
              expect(sorted(left ? there.filter((name) => !left.includes(name)) : taken)).to.deep.equal(
                sorted(there.filter((name) => wanted.has(name))),
              )
              if (left) expect(left.every((name) => there.includes(name))).to.equal(true)
              if (outside) expect(sorted(outside)).to.deep.equal(sorted([...wanted].filter((name) => !there.includes(name))))
            }
            expect(sorted(coverages.missing(subscription, state))).to.deep.equal(sorted([...wanted].filter((name) => !state.find(name))))
          }
        }
      }),
      { numRuns: runs(150) },
    )
  })

  it('is recomputed when names are added or removed, not when content changes', () => {
    const coverages = new Coverages()
    const { subscription } = new Subscriptions().asked(Buffer.concat([1, 2, 3].map((index) => textField(3, nameOf(index)))))
    const group = groupOf('g', [1, 2, 3].map(nameOf))
    const of = () => coverages.of(subscription, group.visible(endpointType, noneHidden))
    const change = (sequence: number, index: number, version: string, removed: readonly string[] = []) =>
      group.apply(
        { group: 'g', base: sequence - 1, sequence, version: '0'.repeat(32), changed: [{ name: nameOf(index), version, slices: [] }], removed },
        (data) => entryOf(data, []),
      )
    const first = of()
    change(2, 1, '2')
    expect(of()).to.equal(first)
    change(3, 4, '1', [nameOf(1)])
    expect(of()).to.deep.equal({ left: [nameOf(4)], taken: [], outside: [nameOf(1)] })
  })

  it('is all virtual hosts of a subscribed route', () => {
    const { subscription } = new Subscriptions().asked(Buffer.concat(['80', '81/b:81'].map((name) => textField(3, name))))
    const group = groupOf('g', ['80/a:80', '80/b:80', '81/a:81', '81/b:81']).visible(virtualHostType, noneHidden)
    expect(new Coverages().of(subscription, group)).to.deep.include({ left: ['81/a:81'] })
    expect(new Coverages().missing(subscription, new TypeState(virtualHostType, [group]))).to.deep.equal(['80'])
  })
})
