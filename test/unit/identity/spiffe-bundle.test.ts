import { expect } from 'chai'
import { readBundleEndpoints, readSpiffeBundle } from '../../../src/identity/spiffe-bundle.ts'

describe('SPIFFE_BUNDLE_ENDPOINTS', () => {
  it('has pairs of trust domain and https: URL, whose scheme may be omitted', () => {
    expect(readBundleEndpoints('')).to.deep.equal([])
    expect(readBundleEndpoints('a.example|https://a/b?c=d||B@example|b.example:8443')).to.deep.equal([
      { trustDomain: 'a.example', url: 'https://a/b?c=d' },
      { trustDomain: 'b.example', url: 'https://b.example:8443/' },
    ])
  })

  for (const [given, reason] of [
    ['a', '"a": expected <trust domain>|<URL>'],
    ['a|', '"a|": expected <trust domain>|<URL>'],
    ['a|b|c', '"a|b|c": expected <trust domain>|<URL>'],
    ['a|b||', '"": expected <trust domain>|<URL>'],
    ['|b', '"|b": "" is not a trust domain'],
    ['a/b|c', '"a/b|c": "a/b" is not a trust domain'],
    ['a|http://b', '"a|http://b": not an https: URL'],
    ['a|file:///b', '"a|file:///b": not an https: URL'],
    ['a|https://x:y@b', 'not a URL without user and password'],
    ['a|https://', 'not a URL without user and password'],
    ['a|b||A|c', '"a|https://c/": this trust domain has an endpoint already'],
    [Array.from({ length: 257 }, (_, index) => `t${index}|x`).join('||'), 'more than 256 tuples'],
  ] as const)
    it(`is rejected at start with ${given.slice(0, 30)}`, () => {
      expect(() => readBundleEndpoints(given))
        .to.throw(`environment variable SPIFFE_BUNDLE_ENDPOINTS: `)
        .with.property('message')
        .that.contains(reason)
    })
})

describe('a SPIFFE bundle', () => {
  for (const [document, reason] of [
    ['', 'not JSON'],
    ['[]', 'it has no list of keys'],
    ['{"keys":{}}', 'it has no list of keys'],
    ['{"keys":[]}', 'it has no key of use x509-svid'],
    ['{"keys":[7,null,{"use":"X509-SVID"}]}', 'it has no key of use x509-svid'],
    ['{"keys":[{"use":"x509-svid"}]}', 'key 0: x5c is not exactly one certificate'],
    ['{"keys":[{"use":"x509-svid","x5c":[]}]}', 'key 0: x5c is not exactly one certificate'],
    ['{"keys":[{"use":"x509-svid","x5c":[7]}]}', 'key 0: x5c is not exactly one certificate'],
    ['{"keys":[{},{"use":"x509-svid","x5c":["AAAA"]}]}', 'key 1: its certificate cannot be read'],
    [JSON.stringify({ keys: Array(257).fill({}) }), 'more than 256 keys'],
  ] as const)
    it(`is rejected with ${document.slice(0, 50)}`, () => {
      expect(() => readSpiffeBundle(document)).to.throw(reason)
    })
})
