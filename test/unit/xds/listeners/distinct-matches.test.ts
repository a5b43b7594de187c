import { expect } from 'chai'
import { type DistinctMatch, DistinctMatches } from '../../../../src/xds/listeners/distinct-matches.ts'

const range = (addressPrefix: string, prefixLen: number) => ({ addressPrefix, prefixLen })
const taken = (...matches: DistinctMatch[]) => {
  const distinct = new DistinctMatches()
  return matches.map((match) => distinct.take(match))
}

describe('match conditions of filter chains', () => {
  it('are unchanged if they match different connections', () => {
    const matches = [{}, { serverNames: ['a'] }, { serverNames: ['a'], transportProtocol: 'tls' }, { prefixRanges: [range('10.0.0.0', 8)] }]
    expect(taken(...matches)).to.deep.equal(matches)
  })

  it('lose server names that an earlier chain matches, case-insensitively', () => {
    expect(taken({ serverNames: ['a', 'b'] }, { serverNames: ['B', 'c'] }, { serverNames: ['a', 'c'] })).to.deep.equal([
      { serverNames: ['a', 'b'] },
      { serverNames: ['c'] },
      undefined,
    ])
  })

  it('lose address ranges that an earlier chain matches, in any notation', () => {
    const [, second, third] = taken(
      { prefixRanges: [range('10.1.0.0', 16)] },
      { prefixRanges: [range('10.1.2.3', 16), range('10.1.2.0', 24)] },
      { prefixRanges: [range('10.1.2.255', 24)] },
    )
    expect([second, third]).to.deep.equal([{ prefixRanges: [range('10.1.2.0', 24)] }, undefined])
    expect(taken({ prefixRanges: [range('fd00::1', 12)] }, { prefixRanges: [range('fd0f::', 12)] })[1]).to.equal(undefined)
  })

  it('lose their own duplicate values', () => {
    const twice = { serverNames: ['a', 'A', 'b'], prefixRanges: [range('10.0.0.0', 8), range('10.1.2.3', 8)], applicationProtocols: ['h2', 'h2'] }
    expect(taken(twice)).to.deep.equal([{ serverNames: ['a', 'b'], prefixRanges: [range('10.0.0.0', 8)], applicationProtocols: ['h2'] }])
  })

  it('are kept only once if they match everything', () => {
    expect(taken({}, { serverNames: [] }, { transportProtocol: 'tls' })).to.deep.equal([{}, undefined, { transportProtocol: 'tls' }])
  })
})
