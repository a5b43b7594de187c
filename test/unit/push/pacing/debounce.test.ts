import { expect } from 'chai'
import fc from 'fast-check'
import { Debounce } from '../../../../src/push/pacing/debounce.ts'
import type { PermitSource } from '../../../../src/push/pacing/permits.ts'
import { Throttle } from '../../../../src/push/pacing/throttle.ts'

describe('the debounce of pushes', () => {
  it('waits for a quiet period, up to the maximum delay', () => {
    const debounce = new Debounce({ after: 100, max: 250 })
    expect(debounce.wait(0)).to.equal(undefined)
    debounce.event(0)
    expect(debounce.wait(30)).to.equal(70)
    debounce.event(90)
    expect(debounce.wait(100)).to.equal(90)
    debounce.event(180)
    expect(debounce.wait(200)).to.equal(50)
    expect(debounce.wait(250)).to.equal(0)
  })

  it('waits at most five quiet periods if only endpoints changed', () => {
    const debounce = new Debounce({ after: 100, max: 10_000 })
    for (let now = 0; now < 500; now += 50) debounce.event(now, { onlyEndpoints: true })
    expect(debounce.wait(480)).to.equal(20)
    debounce.event(490)
    expect(debounce.wait(490)).to.equal(100)
  })

  it('runs one push at a time, and defers events meanwhile to the next push', () => {
    const debounce = new Debounce({ after: 10, max: 100 })
    debounce.event(0)
    expect(debounce.begin()).to.equal(0)
    debounce.event(5)
    expect(debounce.wait(50)).to.equal(undefined)
    debounce.done()
    expect(debounce.wait(50)).to.equal(0)
  })

  it('pushes urgent events immediately', () => {
    const debounce = new Debounce({ after: 10, max: 100 })
    debounce.event(0, { urgent: true })
    expect(debounce.wait(0)).to.equal(0)
  })

  it('never waits longer than the maximum after the first event', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1 }), (gaps) => {
        const debounce = new Debounce({ after: 100, max: 1000 })
        let now = 0
        for (const gap of gaps) {
          now += gap
          debounce.event(now)
          const wait = debounce.wait(now) as number
          expect(now + wait).to.be.at.most((gaps[0] as number) + Math.max(1000, now - (gaps[0] as number)))
          if (wait === 0) return
        }
      }),
    )
  })
})

/** Permits for one queue only, at most `most` at a time. */
function permits(most: number): PermitSource {
  let out = 0
  return { acquire: () => out < most && ++out > 0, release: () => out-- }
}

describe('the throttle of pushes', () => {
  it('handles as many connections at a time as there are permits, each once and in order', () => {
    const throttle = new Throttle<string>(permits(2))
    for (const thing of ['a', 'b', 'a', 'c']) throttle.add(thing, 1)
    expect([throttle.take()?.thing, throttle.take()?.thing, throttle.take()]).to.deep.equal(['a', 'b', undefined])
    throttle.add('a', 2)
    throttle.done('a')
    expect([throttle.take()?.thing, throttle.take()]).to.deep.equal(['c', undefined])
    throttle.done('b')
    expect(throttle.take()).to.deep.equal({ thing: 'a', since: 2 })
  })

  it('alternates between admitted connections and those on trial', () => {
    const throttle = new Throttle<string>(permits(10))
    for (const thing of ['n1', 'n2', 'n3']) throttle.add(thing, 1, true)
    for (const thing of ['a', 'b']) throttle.add(thing, 1)
    throttle.add('n1', 2)
    expect([1, 2, 3, 4, 5, 6].map(() => throttle.take()?.thing)).to.deep.equal(['a', 'n1', 'b', 'n2', 'n3', undefined])
    // They wait in line again after their trial.
    for (const thing of ['n1', 'n2']) throttle.passed(thing, 3)
    for (const thing of ['c', 'd']) throttle.add(thing, 4)
    expect([1, 2, 3, 4, 5].map(() => throttle.take()?.thing)).to.deep.equal(['n1', 'c', 'n2', 'd', undefined])
  })

  it('gives no permit to connections on trial, however many there are', () => {
    const throttle = new Throttle<string>(permits(1))
    const mute = ['m1', 'm2', 'm3']
    for (const thing of [...mute, 'good']) throttle.add(thing, 1, true)
    expect([1, 2, 3, 4, 5].map(() => throttle.take()?.thing)).to.deep.equal([...mute, 'good', undefined])
    expect([...mute, 'good'].map((thing) => throttle.isOnTrial(thing))).to.deep.equal([true, true, true, true])
    throttle.passed('good', 2)
    expect([throttle.isPaused('good'), throttle.take()?.thing]).to.deep.equal([true, 'good'])
    // It holds the permit now and releases it once, whatever the others do.
    for (const thing of mute) throttle.releaseEarly(thing)
    throttle.passed('m1', 3)
    throttle.done('m2')
    throttle.drop('m3')
    throttle.add('waits', 4)
    expect([throttle.take(), [...throttle.releasedEarly]]).to.deep.equal([undefined, ['m1']])
    throttle.done('good')
    expect([throttle.take()?.thing, throttle.take()]).to.deep.equal(['waits', undefined])
  })

  it('drops connections that end while they wait for a permit after their trial', () => {
    const throttle = new Throttle<string>(permits(1))
    throttle.add('there', 1)
    for (const thing of ['gone', 'ended']) throttle.add(thing, 1, true)
    for (let times = 0; times < 3; times++) throttle.take()
    for (const thing of ['gone', 'ended']) throttle.passed(thing, 2)
    throttle.drop('gone')
    throttle.done('ended')
    expect(throttle.waiting).to.equal(0)
    throttle.add('next', 3)
    expect(throttle.take()).to.equal(undefined)
    throttle.done('there')
    expect([throttle.take()?.thing, throttle.take()]).to.deep.equal(['next', undefined])
  })

  it('puts a slow connection on trial again if it changed meanwhile', () => {
    const throttle = new Throttle<string>(permits(1))
    throttle.add('slow', 1)
    throttle.take()
    throttle.releaseEarly('slow')
    throttle.add('slow', 2)
    throttle.add('next', 2)
    throttle.done('slow', true)
    expect([throttle.take()?.thing, throttle.take()?.thing].sort()).to.deep.equal(['next', 'slow'])
    expect(throttle.isOnTrial('slow')).to.equal(true)
  })

  it('gives the permit of a slow connection to another, and still handles the slow one once at a time', () => {
    const throttle = new Throttle<string>(permits(1))
    for (const thing of ['slow', 'next', 'last']) throttle.add(thing, 1)
    throttle.take()
    throttle.releaseEarly('slow')
    expect([throttle.take()?.thing, throttle.take()]).to.deep.equal(['next', undefined])
    throttle.add('slow', 2)
    throttle.done('slow')
    expect(throttle.take()).to.equal(undefined)
    throttle.done('next')
    expect([throttle.take()?.thing, throttle.take()]).to.deep.equal(['last', undefined])
  })
})
