import { expect } from 'chai'
import { beatOf, Pulse, watchPolicy } from '../../../actors/runtime/watchdog.ts'

const policy = watchPolicy(10_000)
const beat = beatOf(policy)

describe('the watchdog', () => {
  it('asks a running actor at each beat, and ends one that owes an answer for the whole deadline', () => {
    const pulse = new Pulse(policy)
    pulse.started()
    for (let answered = 0; answered < 100; answered++) {
      expect(pulse.beat(beat)).to.equal('ask')
      pulse.answered()
    }
    expect([0, 1, 2, 3, 4].map(() => pulse.beat(beat))).to.deep.equal(['ask', 'wait', 'wait', 'wait', 'end'])
    expect(pulse.silentMs).to.equal(10_000)
  })

  it('forgives one that answers late', () => {
    const pulse = new Pulse(policy)
    pulse.started()
    for (let index = 0; index < 4; index++) pulse.beat(beat)
    expect(pulse.silentMs).to.equal(7500)
    pulse.answered()
    expect([pulse.silentMs, pulse.beat(beat)]).to.deep.equal([0, 'ask'])
  })

  it('gives an actor that starts longer, since it loads modules', () => {
    const pulse = new Pulse(policy)
    let waited = 0
    while (pulse.beat(beat) === 'wait') waited += beat
    expect(waited).to.be.within(50_000, 60_000)
  })

  it('ends nobody without a deadline', () => {
    const none = watchPolicy(0)
    expect(beatOf(none)).to.equal(Number.POSITIVE_INFINITY)
    const pulse = new Pulse(none)
    pulse.started()
    pulse.beat(1)
    expect(pulse.beat(1e12)).to.equal('wait')
  })
})
