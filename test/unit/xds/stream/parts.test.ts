import { expect } from 'chai'
import fc from 'fast-check'
import { deltaResourceHead } from '../../../../src/xds/slab/wire.ts'
import { type Entry, entryOf, SliceEntry } from '../../../../src/xds/stream/entry.ts'
import { partOf, WholePart } from '../../../../src/xds/stream/parts.ts'
import { runs as volumeOf } from '../../../harness/seed.ts'

/** Entries in shared memory: some adjacent, some larger than the copy limit, some of several slices. */
function entriesOf(sizes: readonly number[]): Entry[] {
  const memory = Buffer.from(new SharedArrayBuffer(sizes.reduce((sum, size) => sum + size + 1, 0)))
  let at = 0
  return sizes.map((size, index) => {
    at += index % 3 === 0 ? 1 : 0
    const bytes = memory.subarray(at, at + size).fill(index + 1)
    at += size
    const named = { name: `n${index}`, version: `v${index}` }
    const half = Math.floor(size / 2)
    return index % 5 === 0 ? entryOf(named, [bytes.subarray(0, half), bytes.subarray(half)]) : new SliceEntry(named, memory, at - size, size)
  })
}

const size = fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 400 }) }, fc.constantFrom(16_384, 20_000, 40_000))

describe('a part', () => {
  it('has the bytes of its entries in their order, each behind its head over delta, in no more chunks than large entries make necessary', () => {
    fc.assert(
      fc.property(fc.array(size, { maxLength: 60 }), fc.boolean(), (sizes, delta) => {
        const entries = entriesOf(sizes)
        const part = partOf(entries, delta)
        const wanted = entries.flatMap(({ name, version, length, chunks }) => [
          ...(delta ? [deltaResourceHead(name, version, length)] : []),
          ...chunks,
        ])
        expect(Buffer.concat(part.chunks).equals(Buffer.concat(wanted))).to.equal(true)
        expect([part.length, part.count]).to.deep.equal([Buffer.concat(wanted).length, sizes.length])
        const large = sizes.filter((size) => size >= 16_384).length
        if (delta) expect(part.chunks.length).to.be.at.most(2 * large + 1)
      }),
      { numRuns: volumeOf(100) },
    )
  })
})

describe('a response part with all resources of a group', () => {
  it('without some resources contains the bytes of the others, in the same memory', () => {
    const [index, length] = [fc.integer({ min: 0, max: 150 }), fc.integer({ min: 1, max: 60 })]
    const runs = fc.array(fc.tuple(index, length), { maxLength: 4 })
    const left = fc.oneof(
      fc.uniqueArray(index, { maxLength: 6 }),
      runs.map((each) => each.flatMap(([from, size]) => Array.from({ length: size }, (_, at) => from + at))),
    )
    fc.assert(
      fc.property(fc.array(size, { minLength: 96, maxLength: 150 }), left, fc.boolean(), (sizes, indices, delta) => {
        const entries = entriesOf(sizes)
        const names = new Set(indices.map((index) => `n${index % sizes.length}`))
        const whole = new WholePart(entries, delta)
        const rest = whole.without(names)
        const wanted = partOf(
          entries.filter(({ name }) => !names.has(name)),
          delta,
        )
        expect(rest?.length).to.equal(wanted.length)
        expect(rest?.count).to.equal(wanted.count)
        expect(Buffer.concat(rest?.chunks ?? []).equals(Buffer.concat(wanted.chunks))).to.equal(true)
        const memory = new Set(whole.chunks.map(({ buffer }) => buffer))
        expect(rest?.chunks.every(({ buffer }) => memory.has(buffer))).to.equal(true)
        expect(whole.without(new Set())).to.equal(whole)
      }),
      { numRuns: volumeOf(100) },
    )
  })

  it('is not reused if so many resources are left out that the remaining runs are short', () => {
    const entries = entriesOf(Array.from({ length: 160 }, () => 100))
    const scattered = (count: number) => new Set(Array.from({ length: count }, (_, index) => `n${index * 14}`))
    expect(new WholePart(entries, true).without(scattered(10))?.count).to.equal(150)
    expect(new WholePart(entries, true).without(scattered(11))).to.equal(undefined)
  })

  it('shares its bytes where many are left out that stand next to each other', () => {
    const entries = entriesOf(Array.from({ length: 160 }, () => 100))
    const whole = new WholePart(entries, true)
    const rest = whole.without(new Set(entries.slice(20, 120).map(({ name }) => name)))
    expect([rest?.count, rest?.chunks.length]).to.deep.equal([60, 2])
    expect(rest?.chunks.every(({ buffer }) => buffer === whole.chunks[0]?.buffer)).to.equal(true)
  })
})
