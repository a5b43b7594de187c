import { expect } from 'chai'
import { type AskHeld, HeldElsewhere } from '../../../actors/discovery/cluster/held-elsewhere.ts'

/** What is said of the clusters `far` and `other` after one answer. */
async function saidOf(ask: AskHeld | undefined): Promise<readonly string[]> {
  let answered = () => {}
  const settled = new Promise<void>((resolve) => (answered = resolve))
  const held = new HeldElsewhere(ask, answered)
  if (held.asks()) await settled
  return ['far', 'other'].map((id) => held.has(id))
}

describe('clusters that other replicas have', () => {
  it('are those of the answers where all have answered', async () => {
    expect(await saidOf(async () => ({ ids: ['far'], isWhole: true }))).to.deep.equal(['yes', 'no'])
    expect(await saidOf(undefined), 'without other replicas').to.deep.equal(['no', 'no'])
  })

  it('may be any where one has not answered: silence is no answer', async () => {
    expect(await saidOf(async () => ({ ids: ['far'], isWhole: false }))).to.deep.equal(['yes', 'maybe'])
    expect(await saidOf(() => Promise.reject(new Error('nobody answers')))).to.deep.equal(['maybe', 'maybe'])
  })
})
