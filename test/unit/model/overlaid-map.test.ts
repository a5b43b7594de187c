import { expect } from 'chai'
import fc from 'fast-check'
import { OverlaidMap } from '../../../src/model/overlaid-map.ts'
import { cpuMs } from '../../harness/own-time.ts'

describe('a OverlaidMap', () => {
  it('equals a Map with the same changes, and earlier versions stay unchanged', () => {
    const changes = fc.array(fc.tuple(fc.nat(200), fc.option(fc.nat(), { nil: undefined })), { maxLength: 60 })
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 20 }), (steps) => {
        const model = new Map<number, number>()
        let map = OverlaidMap.empty<number, number>()
        for (const step of steps) {
          const before = [map, new Map(model)] as const
          map = map.with(new Map(step))
          for (const [key, value] of new Map(step)) {
            if (value === undefined) model.delete(key)
            else model.set(key, value)
          }
          for (const [made, wanted] of [before, [map, model] as const]) {
            const sorted = (entries: Iterable<[number, number]>) => [...entries].sort(([one], [other]) => one - other)
            expect(sorted(made)).to.deep.equal(sorted(wanted))
            expect(made.size).to.equal(wanted.size)
            expect([...made.keys()].sort()).to.deep.equal([...wanted.keys()].sort())
            expect([...made.values()].sort()).to.deep.equal([...wanted.values()].sort())
            const wrong = Array.from({ length: 201 }, (_, key) => key).filter(
              (key) => made.get(key) !== wanted.get(key) || made.has(key) !== wanted.has(key),
            )
            expect(wrong).to.deep.equal([])
          }
        }
      }),
      { numRuns: 50 },
    )
  })

  it('names the keys that differ from another map, of the same history or not', () => {
    const changes = fc.array(fc.tuple(fc.nat(200), fc.option(fc.nat(3), { nil: undefined })), { maxLength: 60 })
    fc.assert(
      fc.property(fc.array(changes, { minLength: 1, maxLength: 12 }), changes, (steps, others) => {
        const empty = OverlaidMap.empty<number, number>()
        const versions = [empty]
        for (const step of steps) versions.push((versions.at(-1) ?? empty).with(new Map(step)))
        const last = versions.at(-1) ?? empty
        for (const other of [...versions, empty.with(new Map(others))]) {
          const wanted = Array.from({ length: 201 }, (_, key) => key).filter((key) => last.get(key) !== other.get(key))
          expect([...last.differing(other)].sort((one, two) => one - two)).to.deep.equal(wanted)
          expect([...other.differing(last)].sort((one, two) => one - two)).to.deep.equal(wanted)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('costs as much as the patch, not as much as the map', () => {
    const entries = (from: number, count: number) => new Map(Array.from({ length: count }, (_, n) => [`key ${from + n}`, n]))
    let map = OverlaidMap.empty<string, number>().with(entries(0, 10_000))
    const patching = cpuMs(() => {
      for (let n = 0; n < 200; n++) map = map.with(entries(n, 1))
    })
    let copy = new Map(map)
    const copying = cpuMs(() => {
      for (let n = 0; n < 200; n++) copy = new Map(copy)
    })
    expect(patching).to.be.lessThan(copying / 4)
    expect(map.size).to.equal(10_000)
  })
})
