import { expect } from 'chai'
import { refreshDelay, tokenLife } from '../../../src/agent/fetched-token.ts'

const hour = 3_600_000
const now = 1_800_000_000_000
const token = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`

describe('a fetched token', () => {
  it('is valid until its exp claim', () => {
    expect(tokenLife(token({ exp: now / 1000 + 600 }), now)).to.equal(600_000)
    expect(tokenLife(token({ exp: now / 1000 - 600 }), now)).to.equal(-600_000)
  })

  it('is assumed to be valid for an hour if it has no readable exp claim', () => {
    for (const odd of ['', 'opaque', 'a.!.c', token(null), token({}), token({ exp: 'soon' }), token([1])])
      expect(tokenLife(odd, now), odd).to.equal(hour)
  })

  it('is refreshed 25 minutes before it expires, or at half of its lifetime if that is short', () => {
    expect([hour, hour / 2, hour / 6, 0, -hour].map(refreshDelay)).to.deep.equal([35 * 60_000, hour / 4, hour / 12, 0, 0])
  })
})
