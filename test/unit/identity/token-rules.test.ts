import { expect } from 'chai'
import { readFeatures } from '../../../src/config/features.ts'
import { localIssuer, tokenRules } from '../../../src/identity/token-rules.ts'

const keys = '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
const rules = (environment: Record<string, string>, own?: Parameters<typeof tokenRules>[2]) =>
  tokenRules(readFeatures(environment).features, '/state', own)
const first = (rule: object) => rules({ JWT_RULE: JSON.stringify(rule) })[0]

describe('token rules', () => {
  it('contain only the local issuer by default, and not in an orchestrator', () => {
    expect(rules({})).to.deep.equal([
      {
        authenticator: 'local-issuer',
        issuer: localIssuer,
        audiences: ['mesh-ca'],
        origin: { type: 'file', path: '/state/token-keys.json', isPrivate: true },
        onlyForCa: false,
      },
    ])
    expect(rules({ ORCHESTRATOR_SERVICE_HOST: '10.0.0.1', TOKEN_ISSUER: 'https://i' })).to.deep.equal([])
  })

  it("of JWT_RULE take keys from a URL, a file, the rule itself or the issuer's discovery document", () => {
    expect(first({ issuer: 'https://i', jwks_uri: 'https://i/keys', audiences: ['a', 'b'] })).to.deep.equal({
      authenticator: 'jwt-rule',
      issuer: 'https://i',
      audiences: ['a', 'b'],
      origin: { type: 'remote', source: 'https://i/keys' },
      onlyForCa: false,
    })
    expect(first({ issuer: 'https://i', jwksUri: 'http://127.0.0.1:1/keys' })?.origin).to.deep.equal({
      type: 'remote',
      source: 'http://127.0.0.1:1/keys',
    })
    expect(first({ issuer: 'https://i' })).to.deep.include({ audiences: ['mesh-ca'], origin: { type: 'remote', source: 'openid:https://i' } })
    expect(first({ issuer: 'https://i', audiences: [] })?.audiences, 'an empty list is none').to.deep.equal(['mesh-ca'])
    expect(first({ issuer: 'i', jwks: keys })?.origin).to.deep.equal({ type: 'inline', keys })
    expect(first({ issuer: 'i', jwks: JSON.parse(keys) })?.origin).to.deep.equal({ type: 'inline', keys })
    expect(first({ issuer: 'i', jwks_uri: 'file:///etc/a%20b.json' })?.origin).to.deep.equal({
      type: 'file',
      path: '/etc/a b.json',
      isPrivate: false,
    })
    expect(first({ issuer: 'i', jwks_uri: 'file:keys.json' })?.origin).to.deep.equal({ type: 'file', path: 'keys.json', isPrivate: false })
    expect(
      rules({
        JWT_RULE: JSON.stringify([
          { issuer: 'i', jwks: keys },
          { issuer: 'j', jwks: keys },
        ]),
      }).map(({ issuer }) => issuer),
    ).to.deep.equal(['i', 'j', localIssuer])
  })

  for (const [rule, reason] of [
    ['{', 'not JSON'],
    ['7', 'the rule: not an object'],
    ['{}', 'the rule: field issuer: expected text'],
    [{ issuer: 7 }, 'the rule: field issuer: expected text'],
    [{ issuer: localIssuer, jwks: keys }, 'is the issuer of "pilot-discovery token"'],
    [{ issuer: 'i' }, 'the rule: field issuer: "i" is not a URL; without jwks_uri or jwks it is asked'],
    [{ issuer: 'https://i', jwks_uri: 'http://i/keys' }, 'field jwks_uri: "http://i/keys" is neither https: nor of this host'],
    [{ issuer: 'https://i', jwks_uri: 'http://127.0.0.1.evil.com/keys' }, 'is neither https: nor of this host'],
    [{ issuer: 'https://i', jwks_uri: 'https://user:word@i/keys' }, 'a URL with a user or password'],
    [{ issuer: 'https://i', jwks_uri: 'ftp://i/keys' }, 'is neither https: nor of this host'],
    [{ issuer: 'https://i', jwks_uri: 'file://host/keys' }, 'expected file:///path or file:path'],
    [{ issuer: 'https://i', jwks_uri: 'file:///%' }, 'its escapes cannot be read'],
    [{ issuer: 'https://i', jwks_uri: 7 }, 'field jwks_uri: expected text'],
    [{ issuer: 'i', jwks: '{"keys":[]}' }, 'field jwks: the key set has no keys'],
    [{ issuer: 'i', jwks: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } }, 'field jwks: key 0 is a secret'],
    [{ issuer: 'i', jwks: keys, jwks_uri: 'https://i' }, 'fields jwks_uri and jwks'],
    [{ issuer: 'i', jwks: keys, audiences: 'a' }, 'field audiences: expected a list of texts'],
    [{ issuer: 'i', jwks: keys, audiences: [''] }, 'field audiences: expected a list of texts'],
    [{ issuer: 'i', jwks: keys, audience: ['a'] }, 'field "audience" is none of issuer, jwks_uri'],
    [[{ issuer: 'i', jwks: keys }, {}], 'rule 1: field issuer'],
    [Array.from({ length: 17 }, () => ({})), 'more than 16 rules'],
  ] as const)
    it(`of ${JSON.stringify(rule).slice(0, 90)} are rejected at start`, () => {
      expect(() => rules({ JWT_RULE: typeof rule === 'string' ? rule : JSON.stringify(rule) }))
        .to.throw('environment variable JWT_RULE: ')
        .with.property('message')
        .that.contains(reason)
    })

  it('of TOKEN_ISSUER apply to the CA service; issuer and audiences default to those of the own token', () => {
    const own = { issuer: 'https://own', audiences: ['x', 'y'] }
    const last = (environment: Record<string, string>, token?: typeof own) => rules(environment, token).at(-1)
    expect(last({ TOKEN_ISSUER: 'https://i' })).to.deep.equal({
      authenticator: 'token-issuer',
      issuer: 'https://i',
      audiences: ['mesh-ca'],
      origin: { type: 'remote', source: 'openid:https://i' },
      onlyForCa: true,
    })
    expect(last({}, own)).to.deep.include({ issuer: 'https://own', audiences: ['x', 'y'] })
    expect(last({ TOKEN_ISSUER: 'https://i', AUDIENCE: 'z' }, own)).to.deep.include({ issuer: 'https://i', audiences: ['z'] })
    expect(last({}, { issuer: 'kubernetes/serviceaccount', audiences: ['x'] }), 'nobody to ask').to.deep.include({ issuer: localIssuer })
    expect(() => rules({ TOKEN_ISSUER: 'http://i' })).to.throw('environment variable TOKEN_ISSUER: "http://i" is neither https: nor of this host')
  })

  it('are rejected without an audience', () => {
    expect(rules({ TOKEN_AUDIENCES: ' a , ,b' })[0]?.audiences).to.deep.equal(['a', 'b'])
    expect(() => rules({ TOKEN_AUDIENCES: ' , ' })).to.throw('environment variable TOKEN_AUDIENCES: names no audience')
  })
})
