import { expect } from 'chai'
import { mostFrequent } from '../../../actors/discovery/xds-writer/writer-metrics.ts'

describe('label values that clients choose', () => {
  it('are the most frequent ones, and all others together', () => {
    const counts = new Map(Array.from({ length: 400 }, (_, index) => [`9.${index}`, index === 7 ? 5 : 1] as const))
    const shown = mostFrequent(counts, 3)
    expect([...shown]).to.deep.equal([
      ['9.7', 5],
      ['9.0', 1],
      ['9.1', 1],
      ['other', 397],
    ])
    expect([...mostFrequent(new Map([['a', 1]]), 3)]).to.deep.equal([['a', 1]])
  })
})
