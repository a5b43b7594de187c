import { expect } from 'chai'
import fc from 'fast-check'
import { canonicalTrustDomain } from '../../../src/config/trust-domain.ts'
import { parseSpiffeId, parseWorkload, serviceAccountOf, workloadId } from '../../../src/identity/spiffe-id.ts'
import { runs, seed } from '../../harness/seed.ts'

describe('a SPIFFE id', () => {
  it('is parsed into trust domain and path', () => {
    expect(parseSpiffeId('spiffe://td.example/a/b-_.c/D')).to.deep.equal({ trustDomain: 'td.example', path: ['a', 'b-_.c', 'D'] })
    expect(parseSpiffeId('spiffe://td')).to.deep.equal({ trustDomain: 'td', path: [] })
    expect(parseSpiffeId(`spiffe://${'t'.repeat(255)}/${'p'.repeat(2048 - 255 - 10)}`)).not.to.equal(undefined)
  })

  for (const [why, text] of Object.entries({
    'another scheme': 'https://td/ns/a/sa/b',
    'a scheme in capitals': 'SPIFFE://td/ns/a/sa/b',
    'no trust domain': 'spiffe:///ns/a/sa/b',
    'capitals in the trust domain': 'spiffe://Td/ns/a/sa/b',
    'a user': 'spiffe://user@td/ns/a/sa/b',
    'a port': 'spiffe://td:8080/ns/a/sa/b',
    'a query': 'spiffe://td/ns/a/sa/b?c',
    'a fragment': 'spiffe://td/ns/a/sa/b#c',
    'an escape': 'spiffe://td/ns/a/sa/%62',
    'an escaped slash': 'spiffe://td/ns%2Fa/sa/b',
    'a slash at the end': 'spiffe://td/ns/a/sa/b/',
    'an empty segment': 'spiffe://td/ns//sa/b',
    'a dot': 'spiffe://td/ns/./sa/b',
    'two dots': 'spiffe://td/ns/a/../sa/b',
    'a NUL': 'spiffe://td/ns/a/sa/b\0.evil',
    'a line break at the end': 'spiffe://td/ns/a/sa/b\n',
    'a space': ' spiffe://td/ns/a/sa/b',
    'a letter of another alphabet': 'spiffe://td/ns/а/sa/b',
    'a trust domain of 256 bytes': `spiffe://${'t'.repeat(256)}/a`,
    '2049 bytes': `spiffe://td/${'p'.repeat(2049 - 12)}`,
    nothing: '',
  }))
    it(`is rejected with ${why}`, () => {
      expect(parseSpiffeId(text)).to.equal(undefined)
      expect(parseWorkload(text)).to.equal(undefined)
    })

  it('of a workload names exactly a namespace and a service account', () => {
    expect(parseWorkload('spiffe://td/ns/shop/sa/cart.v1')).to.deep.equal({ trustDomain: 'td', namespace: 'shop', account: 'cart.v1' })
    for (const path of [
      'ns/a/sa',
      'ns/a/sa/b/c',
      'sa/b/ns/a',
      'ns/A/sa/b',
      'ns/a.b/sa/c',
      'ns/-a/sa/b',
      'ns/a/sa/B',
      'ns/a/sa/-',
      'ns/a/sa/b..c',
      '',
    ])
      expect(parseWorkload(`spiffe://td/${path}`), path).to.equal(undefined)
    expect(parseWorkload(`spiffe://td/ns/${'n'.repeat(64)}/sa/b`)).to.equal(undefined)
    expect(parseWorkload(`spiffe://td/ns/a/sa/${'n'.repeat(254)}`)).to.equal(undefined)
  })

  it('is built with a canonical trust domain, and rejected with invalid parts', () => {
    expect(workloadId('My-Project@Example.com', { namespace: 'a', account: 'b' })).to.equal('spiffe://my-project.example.com/ns/a/sa/b')
    for (const [namespace, account] of [
      ['a/sa/x', 'b'],
      ['a', 'b/ns/c'],
      ['', 'b'],
      ['a', ''],
    ] as const)
      expect(() => workloadId('td', { namespace, account })).to.throw(RangeError, 'is not the identity of a workload')
    expect(() => workloadId('t/d', { namespace: 'a', account: 'b' })).to.throw(RangeError)
  })

  it('is unchanged by parsing and serialising, for any text', () => {
    const id = fc.oneof(
      fc.string({ maxLength: 60 }).map((text) => `spiffe://${text}`),
      fc.stringMatching(/^spiffe:\/\/[a-zA-Z0-9._%@:-]{0,6}(\/[a-z0-9._%?#-]{0,4}){0,5}$/),
    )
    fc.assert(
      fc.property(id, (text) => {
        const read = parseSpiffeId(text)
        if (read) expect(['spiffe:/', read.trustDomain, ...read.path].join('/')).to.equal(text)
        const workload = parseWorkload(text)
        if (workload) expect(workloadId(workload.trustDomain, workload)).to.equal(text)
      }),
      { seed, numRuns: runs(2000) },
    )
  })
})

describe('trust domains', () => {
  it('have letters, digits, dots, dashes and underscores, at most 255', () => {
    expect(canonicalTrustDomain('A_b-c.D9')).to.equal('a_b-c.d9')
    for (const name of ['', 'a/b', 'a b', 'a:b', 'a%40', 'ä', 'a\n', 'x'.repeat(256)]) expect(canonicalTrustDomain(name), name).to.equal(undefined)
  })
})

describe('token subjects', () => {
  it('are parsed only if they are service accounts', () => {
    expect(serviceAccountOf('system:serviceaccount:shop:cart.v1')).to.deep.equal({ namespace: 'shop', account: 'cart.v1' })
    for (const subject of [
      'system:serviceaccount:shop',
      'system:serviceaccount:shop:cart:more',
      'system:serviceaccount::cart',
      'system:serviceaccount:shop:',
      'system:serviceaccount:shop/x:cart',
      'system:serviceaccount:sh*p:cart',
      'system:serviceaccount:shop:cart\0',
      'system:node:shop:cart',
      ' system:serviceaccount:shop:cart',
      'cart',
      '',
      7,
      null,
      undefined,
      ['system:serviceaccount:shop:cart'],
    ])
      expect(serviceAccountOf(subject), String(subject)).to.equal(undefined)
  })
})
