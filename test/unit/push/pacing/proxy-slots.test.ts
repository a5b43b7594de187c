import { expect } from 'chai'
import { ProxySlots, proxySlotWords } from '../../../../src/push/pacing/proxy-slots.ts'

describe('the proxies of a process', () => {
  it('are counted over its writers, up to the maximum', () => {
    const shared = proxySlotWords(2)
    const [one, other] = [new ProxySlots(shared, 0, 3), new ProxySlots(shared, 1, 3)]
    expect([one.take(), other.take(), other.take(), one.take(), other.take()]).to.deep.equal([true, true, true, false, false])
    other.free()
    expect([one.take(), one.take()]).to.deep.equal([true, false])
  })

  it('have no maximum with 0', () => {
    const slots = new ProxySlots(proxySlotWords(1), 0, 0)
    expect(Array.from({ length: 5 }, () => slots.take())).to.deep.equal([true, true, true, true, true])
  })

  it('of a writer that has ended leave room when it begins again', () => {
    const shared = proxySlotWords(2)
    const [one, other] = [new ProxySlots(shared, 0, 2), new ProxySlots(shared, 1, 2)]
    expect([one.take(), one.take(), other.take()]).to.deep.equal([true, true, false])
    const again = new ProxySlots(shared, 0, 2)
    expect([other.take(), again.take(), other.take()]).to.deep.equal([true, true, false])
  })
})
