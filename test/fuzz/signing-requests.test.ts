/** Certificate requests with garbled bytes: each is rejected with a reason, or certified for the caller only. */
import { randomBytes, X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { readCertificate } from '../../src/ca/certificate.ts'
import { issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../src/ca/issue.ts'
import { RequestFault } from '../../src/ca/signing-request.ts'
import { pemOf } from '../../src/identity/pem.ts'
import { runs, seed } from '../harness/seed.ts'
import { authority, certificateSigning, dns, keys, requestBytes, uri } from '../harness/signing-requests.ts'

/** FUZZ_TIMES=10 results in 100,000. */
const times = runs(10_000)
const identity = 'spiffe://cluster.local/ns/shop/sa/cart'
const now = Date.UTC(2026, 10, 22)
const grant = () => ({ serial: randomBytes(16), notBefore: now, notAfter: now + 3_600_000 })
const root = readCertificate(issueRoot('cluster.local', grant(), keys.p256))
const signer = signingKeyOf(root, keys.p256)

const requests = [
  requestBytes({ names: [uri(identity)] }),
  requestBytes({ key: keys.rsa, names: [uri(identity)], commonName: 'a' }),
  requestBytes({ key: keys.p384 }),
  requestBytes({ names: [uri(identity), dns('a.b')], extensions: [authority, certificateSigning] }),
]

/** Generates functions that garble bytes: overwrite a byte, flip a bit, or copy a range. */
const spoil = fc.oneof(
  fc.record({ at: fc.nat(2000), byte: fc.nat(255) }).map(
    ({ at, byte }) =>
      (bytes: Buffer) =>
        void (bytes[at % bytes.length] = byte),
  ),
  fc.record({ at: fc.nat(2000), bit: fc.nat(7) }).map(({ at, bit }) => (bytes: Buffer) => {
    const index = at % bytes.length
    bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
  }),
  fc.record({ from: fc.nat(2000), to: fc.nat(2000), length: fc.nat(40) }).map(({ from, to, length }) => (bytes: Buffer) => {
    bytes.copyWithin(to % bytes.length, from % bytes.length, (from % bytes.length) + length)
  }),
)
const garbled = fc
  .record({
    which: fc.nat(requests.length - 1),
    spoils: fc.array(spoil, { minLength: 1, maxLength: 4 }),
    cut: fc.nat(20),
    more: fc.uint8Array({ maxLength: 3 }),
  })
  .map(({ which, spoils, cut, more }) => {
    const bytes = Buffer.from(requests[which] as Buffer)
    for (const one of spoils) one(bytes)
    return Buffer.concat([cut === 1 ? bytes.subarray(0, bytes.length - more.length) : bytes, cut === 2 ? more : Buffer.alloc(0)])
  })

describe('garbled certificate requests', function () {
  this.timeout(600_000)

  /** Returns the certificate for a request, or undefined if the request was rejected with a reason. Throws any other error. */
  const made = (request: string, issue: typeof issueWorkload | typeof issueServing): X509Certificate | undefined => {
    try {
      const encoded =
        issue === issueWorkload ? issueWorkload(request, identity, grant(), signer) : (issue as typeof issueServing)(request, grant(), signer)
      return new X509Certificate(encoded)
    } catch (error) {
      if (!(error instanceof RequestFault)) throw error
      expect(error.message).not.to.equal('')
      return undefined
    }
  }

  it('are rejected, or certified for the caller only', () => {
    const before = process.memoryUsage().rss
    fc.assert(
      fc.property(garbled, (bytes) => {
        const certificate = made(pemOf('CERTIFICATE REQUEST', bytes), issueWorkload)
        if (certificate) expect([certificate.subjectAltName, certificate.ca]).to.deep.equal([`URI:${identity}`, false])
        made(pemOf('CERTIFICATE REQUEST', bytes), issueServing)
      }),
      { seed, numRuns: times },
    )
    expect(process.memoryUsage().rss - before).to.be.lessThan(200e6)
  })

  it('of arbitrary text are rejected', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => pemOf('CERTIFICATE REQUEST', Buffer.from(bytes))),
      fc.tuple(fc.string(), fc.string()).map(([one, other]) => `-----BEGIN ${one}-----\n${other}\n-----END ${one}-----`),
    )
    fc.assert(
      fc.property(text, (request) => made(request, issueWorkload) === undefined),
      { seed, numRuns: times },
    )
  })

  it('that are truncated at any length are rejected', () => {
    for (const request of requests)
      for (let length = 0; length < request.length; length++)
        expect(made(pemOf('CERTIFICATE REQUEST', request.subarray(0, length)), issueWorkload)).to.equal(undefined)
  })
})
