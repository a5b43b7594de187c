import { expect } from 'chai'
import fc from 'fast-check'
import { textField } from '../../../../src/xds/slab/wire.ts'
import { type NameSet, NameSets, onlyIn, SimilarNames, sameSet } from '../../../../src/xds/stream/name-set.ts'
import { namesIn } from '../../../../src/xds/stream/request.ts'
import { runs } from '../../../harness/seed.ts'

const common = Array.from({ length: 400 }, (_, index) => `common-${index}`)
const some = (list: readonly string[], max: number) => fc.uniqueArray(fc.constantFrom(...list), { maxLength: max })
/** Sets with few differences, and some with many. */
const list = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(some(common, 40), some(['a', 'b', 'c', 'd'], 4))
      .map(([less, more]) => [...common.filter((name) => !less.includes(name)), ...more]),
  },
  some(common, 400),
)
const raw = (names: readonly string[]): Buffer => Buffer.concat(names.map((name) => textField(3, name)))
const change = fc.record({ add: some([...common, 'a', 'b', 'c', 'e'], 80), remove: some([...common, 'a', 'b', 'x'], 80) })

describe('similar sets of names', () => {
  it('equal plain sets, whatever operations led to them', () => {
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
      { numRuns: runs(100) },
    )
  })

  it('are parsed from a list similar to another one, in any order and with duplicates', () => {
    const reordered = fc
      .tuple(list, fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 20 }), some([...common, 'a'], 5))
      .map(([names, swaps, again]) => {
        const order = [...names]
        for (const [one, other] of swaps) {
          const [from, to] = [one % order.length, other % order.length]
          const moved = order.splice(from, 1)
          order.splice(to, 0, ...moved)
        }
        return [...order, ...again]
      })
    let alike = 0
    fc.assert(
      fc.property(fc.array(reordered, { minLength: 2, maxLength: 6 }), (lists) => {
        const sets = new NameSets()
        for (const names of lists) {
          const bytes = raw(names)
          const read = sets.like(bytes)
          if (read) alike++
          const made = read ?? sets.kept(new Set(names), bytes)
          expect([...made].sort()).to.deep.equal([...new Set(names)].sort())
          expect(made.size).to.equal(new Set(names).size)
        }
      }),
      { numRuns: runs(200) },
    )
    expect(alike).to.be.above(runs(50))
  })

  it('are parsed in less than half of the time if the list is similar to a known one', () => {
    const sets = new NameSets()
    const names = Array.from({ length: 10_000 }, (_, index) => `outbound|80||service-${index}.example.com`)
    const lists = Array.from({ length: 20 }, (_, index) => raw([`own-${index}`, ...names.toSpliced(index * 300, 2)]))
    const base = sets.kept(new Set(names), raw(names))
    const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (const bytes of lists)
      for (const [way, read] of [() => sets.like(bytes), () => sets.kept(namesIn(bytes))].entries()) {
        const cpu = process.cpuUsage()
        const made = read() as SimilarNames
        const { user, system } = process.cpuUsage(cpu)
        least[way] = Math.min(least[way] ?? 0, user + system)
        expect([made.base, made.plus.size, made.minus.size]).to.deep.equal([base, 1, 2])
      }
    expect((least[0] ?? 0) * 2).to.be.below(least[1] ?? 0)
  })

  it('are not searched for if a list is far shorter than the known ones', () => {
    const sets = new NameSets()
    const names = Array.from({ length: 20_000 }, (_, index) => `outbound|80||service-${index}.example.com`)
    const kept = sets.kept(new Set(names), raw(names))
    expect(sets.like(raw(names.slice(1)))).to.be.instanceOf(SimilarNames)
    const few = raw(names.slice(0, 30))
    const timeOf = (read: () => unknown) => {
      const cpu = process.cpuUsage()
      for (let time = 0; time < 100; time++) read()
      const { user, system } = process.cpuUsage(cpu)
      return user + system
    }
    expect(sets.like(few)).to.equal(undefined)
    expect(timeOf(() => sets.like(few)) * 10).to.be.below(timeOf(() => sets.like(raw(names.slice(2)))))
    expect(kept.size).to.equal(names.length)
  })

  it('are not used for lists with unusual encoding; too long names are rejected', () => {
    const sets = new NameSets()
    sets.kept(new Set(common), raw(common))
    const long = Buffer.concat([raw(common), textField(3, 'x'.repeat(5000))])
    expect(() => sets.like(long)).to.throw('longer than 4096 bytes')
    // A length in more bytes than necessary is valid protobuf.
    const odd = Buffer.concat([raw(common), Buffer.from([0x1a, 0x81, 0x80, 0x00, 0x61])])
    expect(sets.like(odd)).to.equal(undefined)
    expect([...namesIn(odd)]).to.deep.equal([...common, 'a'])
    const twice = new NameSets()
    twice.kept(new Set(common), raw([...common, 'common-1']))
    expect(twice.like(raw(common))).to.equal(undefined)
  })

  it('store their common names once', () => {
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
