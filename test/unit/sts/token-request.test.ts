import { expect } from 'chai'
import fc from 'fast-check'
import { faultAnswer, readTokenRequest, TokenFault, tokenAnswer } from '../../../src/sts/token-request.ts'

const good = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token: 'a.b.c',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
}
const read = (changes: Record<string, string> = {}) => readTokenRequest(new URLSearchParams({ ...good, ...changes }).toString())

describe('token requests', () => {
  it('are parsed, and unsupported parameters are ignored', () => {
    expect(read()).to.deep.equal({ subjectToken: 'a.b.c', scope: '' })
    const others = { resource: 'r', audience: 'a', requested_token_type: 't', actor_token: 'x', actor_token_type: 'y' }
    expect(read({ scope: 'cloud', ...others })).to.deep.equal({ subjectToken: 'a.b.c', scope: 'cloud' })
  })

  const bad: readonly [form: string, expected: RegExp][] = [
    ['', /^grant_type must be/],
    [new URLSearchParams({ ...good, grant_type: 'password' }).toString(), /^grant_type must be urn:ietf:.*, not "password"/],
    [new URLSearchParams({ ...good, subject_token: '' }).toString(), /^subject_token is empty/],
    [new URLSearchParams({ ...good, subject_token_type: 'saml' }).toString(), /^subject_token_type must be/],
    [`${new URLSearchParams(good)}&subject_token=d.e.f`, /^subject_token is given more than once/],
  ]
  for (const [form, expected] of bad)
    it(`are rejected: ${expected.source}`, () => {
      expect(() => readTokenRequest(form))
        .to.throw(TokenFault, expected)
        .and.include({ code: 'invalid_request', status: 400 })
    })

  it('are rejected for arbitrary text, with an error that quotes none of the token', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (form) => {
        expect(() => readTokenRequest(form)).to.throw(TokenFault)
      }),
    )
    expect(() => read({ subject_token: 'secret', subject_token_type: 'x' })).to.throw(/^((?!secret).)*$/)
  })

  it('are answered in the format of RFC 8693', () => {
    expect(JSON.parse(tokenAnswer('t', 3599))).to.deep.equal({
      access_token: 't',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 3599,
      scope: '',
      refresh_token: '',
    })
    const fault = new TokenFault('invalid_target', 'why')
    expect(fault.status).to.equal(500)
    expect(JSON.parse(faultAnswer(fault))).to.deep.equal({ error: 'invalid_target', error_description: 'why', error_uri: '' })
  })
})
