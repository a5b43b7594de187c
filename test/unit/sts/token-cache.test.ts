import { expect } from 'chai'
import { requestKey, TokenCache } from '../../../src/sts/token-cache.ts'

const now = Date.UTC(2026, 0, 2)
const exchanged = (token: string, seconds: number) => ({
  issuedAt: now,
  federated: { token: 'federated', expiresAt: now + 1000 },
  access: { token, expiresAt: now + seconds * 1000 },
})

describe('cached tokens', () => {
  it('are used until 300 s before their expiry, and until their expiry if no other can be obtained', () => {
    const cache = new TokenCache()
    cache.set('a', exchanged('t', 3600))
    expect(cache.get('a', now)?.access.token).to.equal('t')
    expect(cache.get('a', now + 3_299_000)?.access.token).to.equal('t')
    expect(cache.get('a', now + 3_300_000)).to.equal(undefined)
    expect(cache.get('a', now + 3_599_000, 0)?.access.token).to.equal('t')
    expect(cache.get('a', now + 3_600_000, 0)).to.equal(undefined)
    expect(cache.get('b', now)).to.equal(undefined)
  })

  it('are keyed by the subject token and the scope', () => {
    const keys = [
      requestKey({ subjectToken: 'a', scope: '' }),
      requestKey({ subjectToken: 'b', scope: '' }),
      requestKey({ subjectToken: 'a', scope: 'b' }),
      requestKey({ subjectToken: '', scope: 'ab' }),
      requestKey({ subjectToken: 'a","', scope: '' }),
    ]
    expect(new Set(keys)).to.have.lengthOf(keys.length)
    expect(requestKey({ subjectToken: 'a', scope: '' }))
      .to.equal(keys[0])
      .and.not.include('a"')
  })

  it('are limited in number, and the least recently used are evicted', () => {
    const cache = new TokenCache()
    for (let number = 0; number < 64; number++) cache.set(`${number}`, exchanged(`${number}`, 3600))
    cache.get('0', now)
    for (let number = 64; number < 70; number++) cache.set(`${number}`, exchanged(`${number}`, 3600))
    expect(cache.get('0', now)?.access.token).to.equal('0')
    for (const gone of ['1', '6']) expect(cache.get(gone, now)).to.equal(undefined)
    expect(cache.get('69', now)?.access.token).to.equal('69')
  })

  it('are listed on the status page without their content', () => {
    const cache = new TokenCache()
    expect(JSON.parse(cache.status())).to.deep.equal({ tokens: [] })
    cache.set('a', exchanged('secret', 60))
    expect(JSON.parse(cache.status())).to.deep.equal({
      tokens: [
        { token_type: 'federated token', issue_time: '2026-01-02T00:00:00.000Z', expire_time: '2026-01-02T00:00:01.000Z', token: '' },
        { token_type: 'access token', issue_time: '2026-01-02T00:00:00.000Z', expire_time: '2026-01-02T00:01:00.000Z', token: '' },
      ],
    })
    expect(cache.status()).not.to.include('secret')
  })
})
