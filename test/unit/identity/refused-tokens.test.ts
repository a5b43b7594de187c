import { expect } from 'chai'
import { RefusedTokens } from '../../../src/identity/refused-tokens.ts'

describe('refused tokens', () => {
  it('are remembered, 4,096 of them: those that were presented last', () => {
    const refused = new RefusedTokens()
    expect(refused.has('a')).to.equal(false)
    refused.add('a')
    refused.add('b')
    for (let index = 0; index < 4094; index++) refused.add(`t${index}`)
    expect(refused.has('a')).to.equal(true)
    refused.add('one more')
    expect(['a', 'b', 't0', 'one more'].map((token) => refused.has(token))).to.deep.equal([true, false, true, true])
  })
})
