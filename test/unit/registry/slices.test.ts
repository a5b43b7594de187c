import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint } from '../../../protocols/data.ts'
import { keptSlice, sliceOf, slicesOf } from '../../../src/registry/slices.ts'
import { seed } from '../../harness/seed.ts'

const endpoint = (number: number): Endpoint => ({
  address: `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`,
  ports: {},
  labels: {},
  locality: '',
  network: '',
  weight: 0,
  serviceAccount: '',
  namespace: 'ns',
  workload: '',
})

describe('slices of endpoints', () => {
  it('of a list have keys of their own, all endpoints in their order within a slice, and a bounded length', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 600 }), (numbers) => {
        const endpoints = numbers.map(endpoint)
        const slices = slicesOf(endpoints)
        expect(slices.flatMap((slice) => slice.endpoints)).to.deep.equal(endpoints)
        expect(new Set(slices.map(({ key }) => key)).size).to.equal(slices.length)
        expect(Math.max(...slices.map((slice) => slice.endpoints.length))).to.be.at.most(128)
      }),
      { numRuns: 50, seed },
    )
  })

  it('of a long list stay the same but for those around an endpoint that is added or removed', () => {
    const endpoints = Array.from({ length: 4000 }, (_, number) => endpoint(number))
    const before = slicesOf(endpoints)
    expect(before.length).to.be.within(60, 200)
    const known = new Map(before.map((slice) => [slice.key, sliceOf(slice)]))
    for (const at of [0, 1, 777, 2000, 3999])
      for (const changed of [endpoints.toSpliced(at, 1), endpoints.toSpliced(at, 0, endpoint(99_999))]) {
        const other = slicesOf(structuredClone(changed)).filter((slice) => keptSlice(known.get(slice.key), slice) !== known.get(slice.key))
        expect(other.length).to.be.at.most(3)
      }
  })

  it('that differ in any field of an endpoint are different', () => {
    const given: Endpoint = { ...endpoint(1), ports: { http: 1 }, labels: { a: 'b' }, serves: ['http'], node: 'n', readiness: 'ready' }
    const before = sliceOf({ key: '', version: '', endpoints: [given] })
    expect(keptSlice(before, { key: '', version: '', endpoints: [{ ...given, readiness: undefined as never }] })).to.equal(before)
    const others: Partial<Endpoint>[] = [
      { address: '10.9.9.9' },
      { ports: { http: 2 } },
      { ports: {} },
      { labels: { a: 'c' } },
      { labels: { b: 'b' } },
      { serves: ['https'] },
      { serves: undefined as never },
      { locality: 'r' },
      { network: 'n' },
      { weight: 2 },
      { serviceAccount: 'x' },
      { namespace: 'other' },
      { workload: 'w' },
      { node: 'm' },
      { readiness: 'unready' },
    ]
    for (const change of others)
      expect(keptSlice(before, { key: '', version: '', endpoints: [{ ...given, ...change }] }), JSON.stringify(change)).not.to.equal(before)
    expect(Object.keys(given).filter((field) => !others.some((change) => field in change))).to.deep.equal([])
  })
})
