import { expect } from 'chai'
import fc from 'fast-check'
import { Debounce } from '../../../../src/push/pacing/debounce.ts'

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

  it('tells why a push is due', () => {
    const debounce = new Debounce({ after: 100, max: 150 })
    debounce.event(0)
    expect(debounce.cause(100)).to.equal('quiet')
    debounce.event(90)
    expect(debounce.cause(150)).to.equal('longest')
    debounce.event(150, { urgent: true })
    expect(debounce.cause(150)).to.equal('urgent')
    debounce.begin()
    debounce.event(200)
    expect(debounce.cause(400)).to.equal('quiet')
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
