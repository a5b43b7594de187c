import { expect } from 'chai'
import { accessRequest, federatedRequest, readAccess, readFederated } from '../../../src/sts/cloud-exchange.ts'

const plugin = { federatedUrl: 'https://sts.test/v1', accessUrl: 'https://iam.test/a:generateAccessToken', audience: 'identitynamespace:td:cluster' }
const now = Date.UTC(2026, 0, 2)

describe('the cloud token exchange', () => {
  it('requests a federated token, and with it an access token', () => {
    const first = federatedRequest(plugin, { subjectToken: 'a.b.c', scope: '' })
    expect(first).to.include({ url: plugin.federatedUrl, bearer: '' })
    expect(JSON.parse(first.body)).to.deep.equal({
      audience: 'identitynamespace:td:cluster',
      grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      subjectToken: 'a.b.c',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    })
    expect(JSON.parse(federatedRequest(plugin, { subjectToken: 'a', scope: 'mine' }).body).scope).to.equal('mine')
    const second = accessRequest(plugin, 'federated')
    expect(second).to.include({ url: plugin.accessUrl, bearer: 'federated' })
    expect(JSON.parse(second.body)).to.deep.equal({
      delegates: [],
      scope: ['https://www.googleapis.com/auth/cloud-platform'],
      lifetime: { seconds: 3600 },
    })
  })

  it('parses the answers, and assumes a lifetime of an hour if none is given', () => {
    expect(readFederated('{"access_token":"f","expires_in":60}', now)).to.deep.equal({ token: 'f', expiresAt: now + 60_000 })
    expect(readFederated('{"access_token":"f","expires_in":"soon"}', now).expiresAt).to.equal(now + 3_600_000)
    expect(readAccess('{"accessToken":"t","expireTime":"2026-01-02T00:30:00Z"}', now)).to.deep.equal({ token: 't', expiresAt: now + 1_800_000 })
    expect(readAccess('{"accessToken":"t"}', now).expiresAt).to.equal(now + 3_600_000)
    expect(readAccess('{"accessToken":"t","expireTime":"never"}', now).expiresAt).to.equal(now + 3_600_000)
  })

  it('rejects an invalid answer with a reason that quotes none of its content', () => {
    const bad = [
      '',
      'secret',
      '[]',
      'null',
      '{}',
      '{"access_token":7}',
      '{"access_token":"secret\\r\\nx: y"}',
      `{"access_token":"${'s'.repeat(40_000)}"}`,
    ]
    for (const answer of bad) expect(() => readFederated(answer, now)).to.throw(/^the answer (is|has)|^access_token of the answer is not a token$/)
    for (const answer of bad) expect(() => readAccess(answer, now)).to.throw(/^((?!secret).)*$/)
  })
})
