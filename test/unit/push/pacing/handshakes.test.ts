import { expect } from 'chai'
import { costlyMs, HandshakeOrder, KnownAddresses, StrangersShare } from '../../../../src/push/pacing/handshakes.ts'

const waiting = (network: string, unanswered = 0) => ({ network, unanswered })

describe('known addresses', () => {
  it('are known for a day after their last credential, and not after a costly handshake', () => {
    const known = new KnownAddresses()
    known.add('10.0.0.1', 0)
    expect([known.has('10.0.0.1', 86_399_999), known.has('10.0.0.2', 0), known.has('10.0.0.1', 86_400_000)]).to.deep.equal([true, false, false])
    known.add('10.0.0.1', 86_400_000)
    known.delete('10.0.0.1')
    expect(known.has('10.0.0.1', 86_400_000)).to.equal(false)
  })

  it('are at most 10,000, and those whose credential is oldest are forgotten', () => {
    const known = new KnownAddresses()
    for (let index = 0; index < 10_000; index++) known.add(`a${index}`, 0)
    known.add('a0', 0)
    known.add('another', 0)
    expect(['a0', 'a1', 'another'].map((address) => known.has(address, 1))).to.deep.equal([true, false, true])
  })
})

describe('the order of handshakes', () => {
  it('prefers the network that cost least, and of equal ones the bytes that wait longest', () => {
    const order = new HandshakeOrder()
    order.spent('a', 5, 0)
    expect(order.next([waiting('a'), waiting('b'), waiting('c')], 0)?.network).to.equal('b')
    order.spent('b', 6, 0)
    order.spent('c', 6, 0)
    expect(order.next([waiting('b'), waiting('a'), waiting('c')], 0)?.network).to.equal('a')
  })

  it('counts what unverified bytes may cost: a short answer goes before a long chain', () => {
    const order = new HandshakeOrder()
    order.spent('agent', 2, 0)
    expect(order.next([waiting('chain', 15_000), waiting('agent', 80)], 0)?.network).to.equal('agent')
  })

  it('forgets costs: half of them in ten seconds', () => {
    const order = new HandshakeOrder()
    order.spent('a', 10, 0)
    order.spent('b', 6, 10_000)
    expect(order.next([waiting('b'), waiting('a')], 10_000)?.network).to.equal('a')
  })

  it('lets a network pause after a costly handshake, for a second, then twice as long, up to a minute', () => {
    const order = new HandshakeOrder()
    let now = 0
    const pauses: number[] = []
    for (let time = 0; time < 8; time++) {
      expect(order.ended('a', costlyMs, now)).to.equal(true)
      pauses.push(order.pauseMs('a', now))
      expect(order.next([waiting('a')], now)).to.equal(undefined)
      now += order.pauseMs('a', now)
      expect(order.next([waiting('a')], now)?.network).to.equal('a')
    }
    expect(pauses).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(order.ended('a', costlyMs - 1, now)).to.equal(false)
    order.ended('a', costlyMs, now + 600_001)
    expect(order.pauseMs('a', now + 600_001)).to.equal(1000)
  })

  it('lets no other network pause', () => {
    const order = new HandshakeOrder()
    order.ended('a', 150, 0)
    expect(order.next([waiting('a'), waiting('b', 16_000)], 0)?.network).to.equal('b')
  })
})

describe('the share of strangers', () => {
  /** Strangers always want steps of `stepMs`; between two steps others use `othersMs`. Returns the share of the strangers. */
  const shareWith = (stepMs: number, othersMs: number): number => {
    const times = { idle: 0, active: 0 }
    const share = new StrangersShare({ ...times })
    let used = 0
    for (let turn = 0; turn < 10_000; turn++) {
      if (share.isOpen({ ...times })) {
        share.used(stepMs)
        times.active += stepMs
        used += stepMs
      }
      times.active += othersMs
    }
    return used / times.active
  }

  it('is a quarter while others use all of the rest, whatever a step costs', () => {
    for (const stepMs of [0.5, 2, 150]) expect(shareWith(stepMs, 1)).to.be.closeTo(0.25, 0.03)
  })

  it('is all of the time in which the thread would be idle', () => {
    const share = new StrangersShare({ idle: 0, active: 0 })
    let [idle, active] = [0, 0]
    for (let turn = 0; turn < 100; turn++) {
      expect(share.isOpen({ idle, active })).to.equal(true)
      share.used(5)
      active += 5
      idle += 5
    }
  })

  it('says how long a step that cost too much is waited for', () => {
    const share = new StrangersShare({ idle: 0, active: 0 })
    share.used(170)
    expect(share.isOpen({ idle: 0, active: 170 })).to.equal(false)
    expect(share.waitMs).to.equal(150)
    expect(share.isOpen({ idle: 149, active: 170 })).to.equal(false)
    expect(share.isOpen({ idle: 151, active: 170 })).to.equal(true)
  })
})
