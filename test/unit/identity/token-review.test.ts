/** What is asked in a review of a token, and what its answer means (docs/identity.md, K7). */
import { expect } from 'chai'
import { readFeatures } from '../../../src/config/features.ts'
import { checkJwtPolicy, type ReviewStatus, reviewAudiences, reviewFault, reviewVerdict } from '../../../src/identity/token-review.ts'

describe('token reviews by an orchestrator', () => {
  const token = (aud?: unknown) => ({ text: '', algorithm: 'RS256', kid: undefined, claims: aud === undefined ? {} : { aud } })
  const demanded = (aud: unknown, environment: Record<string, string> = {}) => reviewAudiences(token(aud), readFeatures(environment).features)

  it('require TOKEN_AUDIENCES of every token with an audience, and of all tokens with REQUIRE_3P_TOKEN', () => {
    expect(demanded('x')).to.deep.equal(['mesh-ca'])
    expect(demanded(['x', 'y'], { TOKEN_AUDIENCES: 'a,b' })).to.deep.equal(['a', 'b'])
    expect(demanded(undefined)).to.equal(undefined)
    expect(demanded(undefined, { REQUIRE_3P_TOKEN: 'true' })).to.deep.equal(['mesh-ca'])
  })

  it("require no audience of the orchestrator's own tokens under the policy first-party-jwt", () => {
    const first = { JWT_POLICY: 'first-party-jwt' }
    expect(demanded(['kubernetes.default.svc'], first)).to.equal(undefined)
    expect(demanded('kubernetes.default.svc', first)).to.equal(undefined)
    expect(demanded(['kubernetes.default.svc', 'x'], first)).to.deep.equal(['mesh-ca'])
    expect(demanded('https://kubernetes.default.svc.cluster.local', first)).to.equal(undefined)
    expect(demanded('mesh-ca', first)).to.deep.equal(['mesh-ca'])
    expect(demanded(['kubernetes.default.svc'])).to.deep.equal(['mesh-ca'])
    expect(demanded(['kubernetes.default.svc'], { ...first, REQUIRE_3P_TOKEN: 'true' })).to.deep.equal(['mesh-ca'])
  })

  it('are configured by one of two values of JWT_POLICY', () => {
    expect(() => checkJwtPolicy({ JWT_POLICY: 'none' })).to.throw(
      'environment variable JWT_POLICY: "none" is none of third-party-jwt, first-party-jwt',
    )
    checkJwtPolicy({ JWT_POLICY: 'first-party-jwt' })
  })

  it('are not made of tokens that have expired, or are not those of a service account', () => {
    const fault = (claims: Record<string, unknown>) => reviewFault({ ...token(), claims }, 1_000_000)
    const sub = 'system:serviceaccount:shop:cart'
    for (const exp of [undefined, 1001]) expect(fault({ sub, exp })).to.equal(undefined)
    expect(fault({ sub, exp: 1000 })).to.equal('it expired 0 s ago')
    expect(fault({ sub, exp: '2000' })).to.equal('exp is "2000", a date is needed')
    for (const other of ['jane', 'system:serviceaccount:shop', 'system:node:n1', 7, undefined])
      expect(fault({ sub: other })).to.match(/^sub is .*, not /)
  })

  it('accept exactly service accounts, with one of the audiences asked for', () => {
    const accepted: ReviewStatus = {
      authenticated: true,
      audiences: ['mesh-ca'],
      user: { username: 'system:serviceaccount:shop:cart', groups: ['system:serviceaccounts', 'system:authenticated'] },
    }
    const of = (status: ReviewStatus | undefined, audiences?: readonly string[]) => {
      const verdict = reviewVerdict(status, { audiences, expiresAt: 7000 }, 5000)
      return 'refused' in verdict ? `${verdict.unavailable ? 'unavailable: ' : ''}${verdict.refused}` : verdict
    }
    const cart = { account: { namespace: 'shop', account: 'cart' }, expiresAt: 7000 }
    expect(of(accepted, ['x', 'mesh-ca'])).to.deep.equal(cart)
    expect(of({ ...accepted, audiences: [] })).to.deep.equal(cart)
    expect(of(accepted, ['x'])).to.match(/^the API server says that it is for audience \["mesh-ca"\]/)
    const { audiences: _none, ...silent } = accepted
    expect(of(silent, ['mesh-ca'])).to.match(/^the API server says that it is for audience nothing/)
    expect(of({ authenticated: false, error: 'a\nb' })).to.equal('the API server refuses it: "a\\nb"')
    expect(of({})).to.equal('the API server refuses it: "no reason is given"')
    expect(of(undefined)).to.match(/^unavailable: /)
    for (const user of [
      { username: 'jane', groups: ['system:serviceaccounts'] },
      { username: 'system:serviceaccount:shop:cart', groups: ['system:authenticated'] },
      { username: 'system:serviceaccount:shop:cart:x', groups: ['system:serviceaccounts'] },
      undefined,
    ])
      expect(of({ ...accepted, ...(user ? { user } : { user: {} }) })).to.match(/ who is no service account$/)
  })

  it('of tokens without an expiry count for an hour', () => {
    const status = { authenticated: true, user: { username: 'system:serviceaccount:shop:cart', groups: ['system:serviceaccounts'] } }
    expect(reviewVerdict(status, { audiences: undefined, expiresAt: undefined }, 5000)).to.include({ expiresAt: 3_605_000 })
  })
})
