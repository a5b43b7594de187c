import { expect } from 'chai'
import fc from 'fast-check'
import { FairSlots } from '../../../src/model/fair-slots.ts'
import '../../harness/seed.ts'

describe('fair slots', () => {
  it('let the longest idle holder of a client with its maximum give way, and then the longest busy one', () => {
    const slots = new FairSlots<string>(10, 2)
    expect(slots.take('a', 'a1')).to.equal(undefined)
    expect(slots.take('a', 'a2')).to.equal(undefined)
    slots.mark('a1', true)
    expect(slots.take('a', 'a3')).to.equal('a2')
    slots.mark('a3', true)
    expect(slots.take('a', 'a4')).to.equal('a1')
    slots.mark('a3', false)
    slots.mark('a4', true)
    expect(slots.take('a', 'a5')).to.equal('a3')
  })

  it('let the client with the most slots give way for another one', () => {
    const slots = new FairSlots<string>(5, 5)
    for (const holder of ['a1', 'a2', 'a3', 'b1', 'c1']) slots.take(holder[0] as string, holder)
    expect(slots.take('d', 'd1')).to.equal('a1')
    expect(slots.take('d', 'd2')).to.equal('d1')
    slots.release('b1')
    expect(slots.take('d', 'd3')).to.equal(undefined)
    expect(slots.size).to.equal(5)
  })

  it('are given to a new holder whatever the others do, within both maxima, and no client below its share loses one', () => {
    const step = fc.oneof(
      fc.record({ take: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({ mark: fc.nat(30), isBusy: fc.boolean() }),
      fc.record({ release: fc.nat(30) }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 80 }), (most, ofClient, steps) => {
        const slots = new FairSlots<number>(most, ofClient)
        const owners = new Map<number, string>()
        const of = (client: string) => [...owners.values()].filter((owner) => owner === client).length
        for (const [index, one] of steps.entries()) {
          if ('mark' in one) slots.mark(one.mark, one.isBusy)
          if ('release' in one) {
            slots.release(one.release)
            owners.delete(one.release)
          }
          if (!('take' in one)) continue
          const leaving = slots.take(one.take, index)
          owners.set(index, one.take)
          if (leaving !== undefined) {
            const owner = owners.get(leaving) as string
            expect(leaving).not.to.equal(index)
            if (owner !== one.take) for (const other of owners.values()) expect(of(owner)).to.be.at.least(of(other))
            owners.delete(leaving)
          }
          expect(slots.size).to.equal(owners.size)
          expect(owners.size).to.be.at.most(most)
          expect(of(one.take)).to.be.within(1, ofClient)
        }
      }),
    )
  })
})
