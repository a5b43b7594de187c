import { expect } from 'chai'
import { beatInterval, Liveness, watchPolicy } from '../../../actors/runtime/watchdog.ts'

const policy = watchPolicy(10_000)
const beat = beatInterval(policy)

describe('the watchdog', () => {
  it('pings a running actor at each beat, and ends one that has not answered for the whole deadline', () => {
    const liveness = new Liveness(policy)
    liveness.started()
    for (let answered = 0; answered < 100; answered++) {
      expect(liveness.beat(beat)).to.equal('ask')
      liveness.answered()
    }
    expect([0, 1, 2, 3, 4].map(() => liveness.beat(beat))).to.deep.equal(['ask', 'wait', 'wait', 'wait', 'end'])
    expect(liveness.silentMs).to.equal(10_000)
  })

  it('accepts a late answer', () => {
    const liveness = new Liveness(policy)
    liveness.started()
    for (let index = 0; index < 4; index++) liveness.beat(beat)
    expect(liveness.silentMs).to.equal(7500)
    liveness.answered()
    expect([liveness.silentMs, liveness.beat(beat)]).to.deep.equal([0, 'ask'])
  })

  it('counts a quarter of the time in which the thread of an actor had no processor', () => {
    const liveness = new Liveness(policy)
    liveness.started()
    liveness.beat(beat)
    for (let index = 0; index < 15; index++) expect(liveness.beat(beat, 2 * beat)).to.equal('wait')
    expect(liveness.beat(beat, beat)).to.equal('end')
  })

  it('gives a starting actor more time, since it loads modules', () => {
    const liveness = new Liveness(policy)
    let waited = 0
    while (liveness.beat(beat) === 'wait') waited += beat
    expect(waited).to.be.within(50_000, 60_000)
  })

  it('ends no actor if the deadline is off', () => {
    const none = watchPolicy(0)
    expect(beatInterval(none)).to.equal(Number.POSITIVE_INFINITY)
    const liveness = new Liveness(none)
    liveness.started()
    liveness.beat(1)
    expect(liveness.beat(1e12)).to.equal('wait')
  })
})
