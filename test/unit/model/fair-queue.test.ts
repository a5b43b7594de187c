import { expect } from 'chai'
import fc from 'fast-check'
import { FairQueue } from '../../../src/model/fair-queue.ts'
import '../../harness/seed.ts'

describe('the fair queue', () => {
  it('serves callers in turn, and the calls of each in order', () => {
    const queue = new FairQueue<string>({ calls: 10, bytes: 100 })
    for (const call of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.add(call[0] as string, call, 1)
    expect(Array.from({ length: 7 }, () => queue.take())).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'c2', 'a3', undefined])
  })

  it('passes over callers that may not be served, which keep their turn', () => {
    const queue = new FairQueue<string>({ calls: 10, bytes: 100 })
    for (const call of ['a1', 'b1', 'b2', 'c1']) queue.add(call[0] as string, call, 1)
    expect(queue.take((caller) => caller !== 'a')).to.equal('b1')
    expect(queue.take((caller) => caller === 'd')).to.equal(undefined)
    expect(Array.from({ length: 4 }, () => queue.take())).to.deep.equal(['a1', 'c1', 'b2', undefined])
  })

  it('drops the newest call of the caller that uses most when it is full', () => {
    const queue = new FairQueue<string>({ calls: 4, bytes: 100 })
    for (const call of ['a1', 'a2', 'a3', 'b1']) expect(queue.add(call[0] as string, call, 1)).to.deep.equal([])
    expect(queue.add('c', 'c1', 1)).to.deep.equal(['a3'])
    expect(queue.add('a', 'a4', 1)).to.deep.equal(['a4'])
    expect(queue.add('d', 'd1', 97)).to.deep.equal(['a2'])
    expect(queue.add('e', 'e1', 1)).to.have.length(1)
  })

  it('never exceeds its limits, loses no call, and serves each waiting caller after at most one call of each other', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 30 }), fc.boolean()), { maxLength: 200 }), (steps) => {
        const queue = new FairQueue<number>({ calls: 20, bytes: 200 })
        const [added, gone] = [new Set<number>(), new Set<number>()]
        for (const [index, [caller, bytes, takes]] of steps.entries()) {
          added.add(index)
          for (const call of queue.add(String(caller), index, bytes)) gone.add(call)
          const taken = takes ? queue.take() : undefined
          if (taken !== undefined) gone.add(taken)
          if (queue.size > 20 || queue.bytes > 200) return false
        }
        for (let call = queue.take(); call !== undefined; call = queue.take()) gone.add(call)
        return gone.size === added.size && queue.size === 0 && queue.bytes === 0
      }),
    )
  })
})
