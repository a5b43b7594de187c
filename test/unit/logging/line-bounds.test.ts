import { expect } from 'chai'
import { LineBounds } from '../../../src/logging/line-bounds.ts'

describe('lines of a kind', () => {
  it('are suppressed after the fifth in ten seconds, which says so', () => {
    const lines = new LineBounds()
    const written = [0, 1, 2, 3, 4, 5, 9_999, 10_000].map((now) => lines.bounded('kind', 'text', now, ' (see there)'))
    const last = 'text; further such lines are suppressed for ten seconds (see there)'
    expect(written).to.deep.equal(['text', 'text', 'text', 'text', last, undefined, undefined, 'text'])
    expect(lines.bounded('other', 'text', 5)).to.equal('text')
  })
})
