/** Generated tokens, token rules and bundles: no unsigned token is accepted, and no input causes an unexpected exception. */
import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { readFeatures } from '../../src/config/features.ts'
import { readBundleEndpoints, readSpiffeBundle } from '../../src/identity/spiffe-bundle.ts'
import { checkClaims } from '../../src/identity/token-check.ts'
import { type TokenRule, tokenRules } from '../../src/identity/token-rules.ts'
import { readToken } from '../../src/policy/signed-token.ts'
import { TokenKeys } from '../../src/policy/token-keys.ts'
import { runs, seed } from '../harness/seed.ts'

const run = { seed, numRuns: runs(3000) }
const now = 1_800_000_000
const rule: TokenRule = { authenticator: 'jwt-rule', issuer: 'i', audiences: ['a'], origin: { type: 'inline', keys: '' }, onlyForCa: false }
const claims = { iss: 'i', aud: 'a', sub: 'system:serviceaccount:ns:sa', exp: now + 60 }
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')

describe('forged tokens', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = new TokenKeys(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k' }] }), 'mesh')
  let good = ''
  const isAccepted = async (token: string) => {
    const read = readToken(token)
    if (typeof read === 'string') return false
    return 'account' in checkClaims(read, rule, now) && (await keys.haveSigned(read))
  }
  before(async () => {
    good = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'k' }).sign(privateKey)
    expect(await isAccepted(good)).to.equal(true)
  })

  it('made by changing, removing or inserting characters of a valid token are refused', async () => {
    const edit = fc.record({ at: fc.nat(), what: fc.constantFrom('change', 'drop', 'add'), by: fc.constantFrom(...'AZaz09-_.=\0 ') })
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (edits) => {
        let token = good
        for (const { at, what, by } of edits) {
          const index = at % token.length
          token = token.slice(0, index) + (what === 'drop' ? '' : by) + token.slice(what === 'add' ? index : index + 1)
        }
        if (await isAccepted(token)) expect(sameParts(token, good), token).to.equal(true)
      }),
      run,
    )
  })

  it('are refused with any header and claims', async () => {
    const header = fc.record(
      {
        alg: fc.constantFrom('ES256', 'none', 'HS256', 'RS256', 'EdDSA', 7, null),
        kid: fc.constantFrom('k', '', 'x', 7, null, {}),
        crit: fc.constantFrom(undefined, ['b64'], 'x'),
        b64: fc.constantFrom(undefined, false),
      },
      { requiredKeys: [] },
    )
    const body = fc.oneof(fc.constant(claims), fc.jsonValue())
    const signature = fc.oneof(
      fc.constantFrom(good.split('.')[2] ?? '', '', 'AA', Buffer.alloc(64).toString('base64url'), Buffer.alloc(64, 255).toString('base64url')),
      fc.base64String(),
    )
    await fc.assert(
      fc.asyncProperty(header, body, signature, async (head, payload, sign) => {
        const token = `${encoded(head)}.${encoded(payload)}.${sign}`
        expect(await isAccepted(token)).to.equal(token === good)
      }),
      run,
    )
  })

  it('of arbitrary text are parsed without an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(fc.base64String(), { maxLength: 5 }).map((parts) => parts.join('.')),
        ),
        (text) => {
          expect(readToken(text)).to.satisfy((read: unknown) => typeof read === 'string' || typeof read === 'object')
        },
      ),
      run,
    )
  })

  it('with any claims are refused, or accepted for the expected service account only', () => {
    const odd = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('i', 'a', ['a'], ['b', 'a'], now, now + 60, now - 1, Number.NaN, Number.POSITIVE_INFINITY, -1, 'system:serviceaccount:ns:sa'),
    )
    const any = fc.record({ iss: odd, aud: odd, sub: odd, exp: odd, nbf: odd, iat: odd }, { requiredKeys: [] })
    fc.assert(
      fc.property(
        fc.oneof(
          any,
          any.map((some) => ({ ...claims, ...some })),
        ),
        (given) => {
          const verdict = checkClaims({ text: '', algorithm: 'ES256', kid: undefined, claims: given }, rule, now)
          if ('refused' in verdict) expect(verdict.refused.length).to.be.lessThan(800)
          else {
            expect(verdict.account).to.deep.equal({ namespace: 'ns', account: 'sa' })
            expect(verdict.expiresAt).to.be.greaterThan(now * 1000)
          }
        },
      ),
      run,
    )
  })
})

/** Whether two tokens are equivalent: header and payload are equal as text; signatures may differ in unused base64 bits. */
function sameParts(one: string, other: string): boolean {
  const [head, body, signature, ...rest] = one.split('.')
  const [goodHead, goodBody, goodSignature] = other.split('.')
  if (head !== goodHead || body !== goodBody || rest.length > 0 || signature === undefined) return false
  return Buffer.from(signature, 'base64url').equals(Buffer.from(goodSignature as string, 'base64url'))
}

describe('generated token rules and trust bundles', () => {
  const rejects = (read: () => unknown, pattern: RegExp) => {
    try {
      read()
    } catch (error) {
      expect((error as Error).message).to.match(pattern)
      expect((error as Error).message.length).to.be.lessThan(1000)
    }
  }

  it('in environment variables are parsed, or rejected with the name of the variable', () => {
    const { features } = readFeatures({})
    const field = fc.oneof(fc.jsonValue(), fc.constantFrom('i', 'https://i', 'file:x', 'http://127.0.0.1', 'http://[::1', '{"keys":[]}', ['a'], []))
    const rules = fc.record({ issuer: field, jwks_uri: field, jwks: field, audiences: field, jwksUri: field }, { requiredKeys: [] })
    fc.assert(
      fc.property(
        fc.oneof(rules, fc.array(rules, { maxLength: 3 }), fc.jsonValue()).map((value) => JSON.stringify(value)),
        (given) => rejects(() => tokenRules({ ...features, JWT_RULE: given }, '/s', undefined), /^environment variable JWT_RULE: /),
      ),
      run,
    )
    fc.assert(
      fc.property(
        fc
          .array(fc.oneof(fc.string(), fc.constantFrom('a', '|', '||', 'https://b', 'http://c', '@', 'ä')), { maxLength: 8 })
          .map((parts) => parts.join('')),
        (given) => rejects(() => readBundleEndpoints(given), /^environment variable SPIFFE_BUNDLE_ENDPOINTS: /),
      ),
      run,
    )
  })

  it('in invalid bundle documents are rejected with an error', () => {
    const odd = fc.oneof(fc.jsonValue(), fc.constantFrom('x509-svid', [], ['AAAA'], ['MIIB'], 5, -1, 1e300))
    const key = fc.record({ use: fc.oneof(fc.constant('x509-svid'), odd), kty: odd, x5c: odd }, { requiredKeys: [] })
    const bundle = fc.record(
      { keys: fc.oneof(fc.array(key, { maxLength: 4 }), odd), spiffe_sequence: odd, spiffe_refresh_hint: odd },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(
        fc.oneof(
          bundle.map((value) => JSON.stringify(value)),
          fc.string(),
        ),
        (content) => {
          expect(() => readSpiffeBundle(content)).to.throw(Error)
        },
      ),
      run,
    )
  })
})
