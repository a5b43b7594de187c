import { expect } from 'chai'
import type { PermitSource } from '../../../../src/push/pacing/permits.ts'
import { Throttle } from '../../../../src/push/pacing/throttle.ts'

/** Permits for one queue only, at most `most` at a time. */
function permits(most: number): PermitSource {
  let out = 0
  return { acquire: () => out < most && ++out > 0, release: () => out-- }
}

describe('the throttle of pushes', () => {
  it('handles as many connections at a time as there are permits, each once and in order', () => {
    const throttle = new Throttle<string>(permits(2))
    for (const item of ['a', 'b', 'a', 'c']) throttle.add(item, 1)
    expect([throttle.take()?.item, throttle.take()?.item, throttle.take()]).to.deep.equal(['a', 'b', undefined])
    throttle.add('a', 2)
    throttle.done('a')
    expect([throttle.take()?.item, throttle.take()]).to.deep.equal(['c', undefined])
    throttle.done('b')
    expect(throttle.take()).to.deep.equal({ item: 'a', since: 2 })
  })

  it('alternates between admitted connections and those on trial', () => {
    const throttle = new Throttle<string>(permits(10))
    for (const item of ['n1', 'n2', 'n3']) throttle.add(item, 1, true)
    for (const item of ['a', 'b']) throttle.add(item, 1)
    throttle.add('n1', 2)
    expect([1, 2, 3, 4, 5, 6].map(() => throttle.take()?.item)).to.deep.equal(['a', 'n1', 'b', 'n2', 'n3', undefined])
    // They wait in line again after their trial.
    for (const item of ['n1', 'n2']) throttle.passed(item, 3)
    for (const item of ['c', 'd']) throttle.add(item, 4)
    expect([1, 2, 3, 4, 5].map(() => throttle.take()?.item)).to.deep.equal(['n1', 'c', 'n2', 'd', undefined])
  })

  it('gives no permit to connections on trial, however many there are', () => {
    const throttle = new Throttle<string>(permits(1))
    const mute = ['m1', 'm2', 'm3']
    for (const item of [...mute, 'good']) throttle.add(item, 1, true)
    expect([1, 2, 3, 4, 5].map(() => throttle.take()?.item)).to.deep.equal([...mute, 'good', undefined])
    expect([...mute, 'good'].map((item) => throttle.isOnTrial(item))).to.deep.equal([true, true, true, true])
    throttle.passed('good', 2)
    expect([throttle.isPaused('good'), throttle.take()?.item]).to.deep.equal([true, 'good'])
    // It holds the permit now and releases it once, whatever the others do.
    for (const item of mute) throttle.releaseEarly(item)
    throttle.passed('m1', 3)
    throttle.done('m2')
    throttle.drop('m3')
    throttle.add('waits', 4)
    expect([throttle.take(), [...throttle.releasedEarly]]).to.deep.equal([undefined, ['m1']])
    throttle.done('good')
    expect([throttle.take()?.item, throttle.take()]).to.deep.equal(['waits', undefined])
  })

  it('drops connections that end while they wait for a permit after their trial', () => {
    const throttle = new Throttle<string>(permits(1))
    throttle.add('there', 1)
    for (const item of ['gone', 'ended']) throttle.add(item, 1, true)
    for (let times = 0; times < 3; times++) throttle.take()
    for (const item of ['gone', 'ended']) throttle.passed(item, 2)
    throttle.drop('gone')
    throttle.done('ended')
    expect(throttle.waiting).to.equal(0)
    throttle.add('next', 3)
    expect(throttle.take()).to.equal(undefined)
    throttle.done('there')
    expect([throttle.take()?.item, throttle.take()]).to.deep.equal(['next', undefined])
  })

  it('puts a slow connection on trial again if it changed meanwhile', () => {
    const throttle = new Throttle<string>(permits(1))
    throttle.add('slow', 1)
    throttle.take()
    throttle.releaseEarly('slow')
    throttle.add('slow', 2)
    throttle.add('next', 2)
    throttle.done('slow', true)
    expect([throttle.take()?.item, throttle.take()?.item].sort()).to.deep.equal(['next', 'slow'])
    expect(throttle.isOnTrial('slow')).to.equal(true)
  })

  it('gives the permit of a slow connection to another, and still handles the slow one once at a time', () => {
    const throttle = new Throttle<string>(permits(1))
    for (const item of ['slow', 'next', 'last']) throttle.add(item, 1)
    throttle.take()
    throttle.releaseEarly('slow')
    expect([throttle.take()?.item, throttle.take()]).to.deep.equal(['next', undefined])
    throttle.add('slow', 2)
    throttle.done('slow')
    expect(throttle.take()).to.equal(undefined)
    throttle.done('next')
    expect([throttle.take()?.item, throttle.take()]).to.deep.equal(['last', undefined])
  })
})
