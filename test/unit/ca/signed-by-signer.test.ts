/** What a signer of the orchestrator has signed is used only when it is what was asked for (docs/certificates.md, E5). */
import { createPublicKey, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { type Certificate, readCertificates } from '../../../src/ca/certificate.ts'
import { issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { checkSigned, renewalOf, type SignerFault } from '../../../src/ca/signed-by-signer.ts'
import { makeSigningRequest, readSigningRequest } from '../../../src/ca/signing-request.ts'
import { pemOf } from '../../../src/identity/pem.ts'
import { rootOf } from '../../harness/authorities.ts'
import { runs } from '../../harness/seed.ts'
import { keys } from '../../harness/signing-requests.ts'

const cart = 'spiffe://cluster.local/ns/shop/sa/cart'
/** After the roots have begun, which are made later than this line runs. */
const now = Math.floor(Date.now() / 1000) * 1000 + 60_000
const hour = 3_600_000

function signed({ root = 'one', key = keys.p256, identity = cart, from = now - 1000, until = now + hour } = {}): string {
  const { record, key: rootKey } = rootOf(root)
  const [authority] = readCertificates(record.root) as [Certificate]
  const grant = { serial: randomBytes(16), notBefore: from, notAfter: until }
  return pemOf('CERTIFICATE', issueWorkload(makeSigningRequest(key, []), identity, grant, signingKeyOf(authority, rootKey)))
}
const asked = (changes: Partial<Parameters<typeof checkSigned>[1]> = {}) => ({
  request: readSigningRequest(makeSigningRequest(keys.p256, [{ uri: cart }])),
  roots: rootOf('one').record.root,
  until: now + hour,
  now,
  ...changes,
})
const faultOf = (text: string, changes = {}): string => {
  try {
    checkSigned(text, asked(changes))
    return 'none'
  } catch (error) {
    return `${(error as SignerFault).kind}: ${(error as Error).message}`
  }
}

describe('what a signer has signed', () => {
  it('is used when it is what was asked for', () => {
    const { leaf, intermediates, notAfter } = checkSigned(signed(), asked())
    expect([leaf.includes('BEGIN CERTIFICATE'), intermediates, notAfter]).to.deep.equal([true, '', now + hour])
  })

  it('is refused by what it did otherwise', () => {
    const faults: readonly (readonly [string, string])[] = [
      [faultOf(''), 'text: it answers with no certificate in PEM'],
      [faultOf('A'.repeat(200_000)), 'text: it answers with more than 131072 characters'],
      [faultOf(pemOf('CERTIFICATE', Buffer.from('no'))), 'text: it signed what is no certificate: '],
      [faultOf(signed().repeat(11)), 'text: it answers with more than 10 certificates'],
      [faultOf(signed({ key: keys.rsa })), 'key: it signed another key than that of the request'],
      [faultOf(signed({ identity: 'spiffe://cluster.local/ns/shop/sa/admin' })), 'names: it signed other names than those of the request: '],
      [faultOf(rootOf('one').record.root, { request: requestOf(rootOf('one').record.root) }), 'authority: it signed the certificate of an authority'],
      [faultOf(signed({ until: now + 2 * hour })), 'time: it signed a longer lifetime than was asked for: '],
      [faultOf(signed({ from: now + hour, until: now + 2 * hour }), { until: now + 2 * hour }), 'time: it signed for the time from '],
      [faultOf(signed({ from: now - hour, until: now })), 'time: it signed for the time from '],
      [faultOf(signed({ root: 'two' })), 'root: its certificate is not verified by the roots of the signer: it leads to none of the roots'],
    ]
    for (const [fault, expected] of faults) expect(fault.slice(0, expected.length)).to.equal(expected)
  })

  it('has all names of the request, in any order, and no other', () => {
    const label = fc.stringMatching(/^[a-z]{1,8}$/)
    fc.assert(
      fc.property(fc.uniqueArray(label, { minLength: 1, maxLength: 5 }), fc.uniqueArray(label, { minLength: 1, maxLength: 5 }), (wanted, given) => {
        const csrOf = (names: readonly string[]) =>
          makeSigningRequest(
            keys.p256,
            names.map((dns) => ({ dns })),
          )
        const { record, key } = rootOf('one')
        const [authority] = readCertificates(record.root) as [Certificate]
        const grant = { serial: randomBytes(16), notBefore: now, notAfter: now + hour }
        const text = pemOf('CERTIFICATE', issueServing(csrOf(given), grant, signingKeyOf(authority, key)))
        const isSame = String([...wanted].sort()) === String([...given].sort())
        const fault = faultOf(text, { request: readSigningRequest(csrOf(wanted)) })
        expect(fault.startsWith(isSame ? 'none' : 'names: ')).to.equal(true)
      }),
      { numRuns: runs(200) },
    )
  })

  it('is renewed at half its life, or ten minutes before its end, but not before a fifth is over', () => {
    const at = (minutes: number) => renewalOf({ notBefore: 0, notAfter: minutes * 60_000 }) / 60_000
    expect([at(60 * 24), at(60), at(15), at(10), at(1)]).to.deep.equal([720, 30, 5, 2, 0.2])
  })
})

function requestOf(certificate: string) {
  const [{ publicKey }] = readCertificates(certificate) as [Certificate]
  expect(createPublicKey(certificate).type).to.equal('public')
  return { publicKey, names: [] }
}
