import { expect } from 'chai'
import { standWhileReady } from '../../../actors/discovery/leader/stand-while-ready.ts'
import { until } from '../../harness/until.ts'

describe('a replica that stands for election', () => {
  const standing = (longestMs: number) => {
    const [steps, lines]: [string[], string[]] = [[], []]
    const state = { isReady: false, asked: 0 }
    const say = (line: string) => void lines.push(line)
    const timer = standWhileReady({
      elections: { stand: () => void steps.push('stands'), withdraw: async (reason) => void steps.push(reason) },
      isReady: () => {
        state.asked++
        return state.isReady
      },
      log: { debug: say, info: say, warn: say, error: say },
      times: { longestMs, everyMs: 1 },
    })
    const looks = async (times: number) => {
      const from = state.asked
      await until('looks', () => state.asked >= from + times)
    }
    return { steps, lines, state, timer, looks }
  }

  it('does so once it is ready, gives its leases back when it is not ready for too long, and stands again', async () => {
    const { steps, lines, state, timer, looks } = standing(30)
    await looks(40)
    expect(steps, 'it was never ready').to.deep.equal([])
    state.isReady = true
    await until('it to stand', () => steps.length === 1)
    state.isReady = false
    await until('it to withdraw', () => steps.length === 2)
    await looks(40)
    expect([steps, lines]).to.deep.equal([
      ['stands', 'this replica has not been ready for 0.03 s'],
      ['this replica has not been ready for 0.03 s: it gives its leases back, and stands for election when it is ready again'],
    ])
    state.isReady = true
    await until('it to stand again', () => steps.length === 3)
    timer.cancel()
  })

  it('keeps its leases when it is ready again in time, however often', async () => {
    const { steps, state, timer, looks } = standing(120_000)
    state.isReady = true
    await looks(2)
    for (let turn = 0; turn < 6; turn++) {
      state.isReady = !state.isReady
      await looks(3)
    }
    expect(steps).to.deep.equal(['stands'])
    timer.cancel()
  })
})
