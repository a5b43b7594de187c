import { expect } from 'chai'
import { costlyMs, HandshakeOrder, LoopShare, NativeRight } from '../../../src/transport/handshakes.ts'

const waiting = (client: string, unanswered = 0) => ({ client, unanswered })

describe('the order of handshakes', () => {
  it('prefers the client that cost least, and of equal ones the bytes that wait longest', () => {
    const order = new HandshakeOrder()
    order.spent('a', 5, 0)
    expect(order.next([waiting('a'), waiting('b'), waiting('c')], 0)?.client).to.equal('b')
    order.spent('b', 6, 0)
    order.spent('c', 6, 0)
    expect(order.next([waiting('b'), waiting('a'), waiting('c')], 0)?.client).to.equal('a')
  })

  it('counts what unverified bytes may cost: a short answer goes before a long chain', () => {
    const order = new HandshakeOrder()
    order.spent('agent', 2, 0)
    expect(order.next([waiting('chain', 15_000), waiting('agent', 80)], 0)?.client).to.equal('agent')
  })

  it('forgets costs: half of them in ten seconds', () => {
    const order = new HandshakeOrder()
    order.spent('a', 10, 0)
    order.spent('b', 6, 10_000)
    expect(order.next([waiting('b'), waiting('a')], 10_000)?.client).to.equal('a')
  })

  it('lets a client pause after a costly handshake, for a second, then twice as long, up to a minute', () => {
    const order = new HandshakeOrder()
    let now = 0
    const pauses: number[] = []
    for (let time = 0; time < 8; time++) {
      expect(order.ended('a', costlyMs, now)).to.equal(true)
      pauses.push(order.pauseMs('a', now))
      expect(order.next([waiting('a')], now)).to.equal(undefined)
      now += order.pauseMs('a', now)
      expect(order.next([waiting('a')], now)?.client).to.equal('a')
    }
    expect(pauses).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(order.ended('a', costlyMs - 1, now)).to.equal(false)
    order.ended('a', costlyMs, now + 600_001)
    expect(order.pauseMs('a', now + 600_001)).to.equal(1000)
  })

  it('lets no other client pause', () => {
    const order = new HandshakeOrder()
    order.ended('a', 150, 0)
    expect(order.next([waiting('a'), waiting('b', 16_000)], 0)?.client).to.equal('b')
  })
})

describe('a share of the event loop', () => {
  /** Clients always want steps of `stepMs`; between two steps others use 1 ms. Returns the share of these clients. */
  const shareWith = (part: number, stepMs: number): number => {
    const times = { idle: 0, active: 0 }
    const share = new LoopShare(part, { ...times })
    let used = 0
    for (let turn = 0; turn < 10_000; turn++) {
      if (share.isOpen({ ...times })) {
        share.used(stepMs)
        times.active += stepMs
        used += stepMs
      }
      times.active++
    }
    return used / times.active
  }

  it('is the given part while others use all of the rest, whatever a step costs', () => {
    for (const part of [0.25, 0.5]) for (const stepMs of [1, 2, 150]) expect(shareWith(part, stepMs)).to.be.closeTo(part, 0.04)
  })

  it('is all of the time in which the thread would be idle', () => {
    const share = new LoopShare(0.25, { idle: 0, active: 0 })
    let [idle, active] = [0, 0]
    for (let turn = 0; turn < 100; turn++) {
      expect(share.isOpen({ idle, active })).to.equal(true)
      share.used(5)
      active += 5
      idle += 5
    }
  })

  it('says how long a step that cost too much is waited for', () => {
    const share = new LoopShare(0.25, { idle: 0, active: 0 })
    share.used(170)
    expect(share.isOpen({ idle: 0, active: 170 })).to.equal(false)
    expect(share.waitMs).to.equal(150)
    expect(share.isOpen({ idle: 149, active: 170 })).to.equal(false)
    expect(share.isOpen({ idle: 151, active: 170 })).to.equal(true)
  })
})

describe('the right to native handshakes', () => {
  it('is withdrawn from an address for ten minutes, then twice as long, up to a day', () => {
    const right = new NativeRight()
    let now = 0
    for (const minutes of [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]) {
      expect(right.has('a', now)).to.equal(true)
      right.withdraw('a', now)
      now += minutes * 60_000
      expect([right.has('a', now - 1), right.has('b', now)]).to.deep.equal([false, true])
    }
  })

  it('is withdrawn from all for ten minutes after it was withdrawn from four addresses', () => {
    const right = new NativeRight()
    for (const [index, address] of ['a', 'b', 'c', 'd'].entries()) {
      expect(right.has('e', index)).to.equal(true)
      right.withdraw(address, index)
    }
    expect([right.has('e', 3), right.has('e', 600_000)]).to.deep.equal([false, true])
  })
})
