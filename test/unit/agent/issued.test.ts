import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { BadAnswer, readIssued } from '../../../src/agent/issued.ts'
import { readCertificate } from '../../../src/ca/certificate.ts'
import { issueCross, issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { pemOf } from '../../../src/identity/pem.ts'

const now = Date.UTC(2026, 10, 22, 8)
const hour = 3_600_000
const grant = (life = hour) => ({ serial: randomBytes(16), notBefore: now - 1000, notAfter: now + life })
const pem = (der: Buffer) => pemOf('CERTIFICATE', der)
const identity = 'spiffe://some.domain/ns/shop/sa/web'
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

function newRoot(name: string) {
  const key = newKey()
  const certificate = readCertificate(issueRoot(name, grant(24 * hour), key))
  return { certificate, signer: signingKeyOf(certificate, key), pem: pem(certificate.encoded) }
}

describe('response of a certificate authority', () => {
  const root = newRoot('root')
  const next = newRoot('next')
  const cross = pem(issueCross(next.certificate, grant(12 * hour), root.signer))
  const key = newKey()
  const csr = makeSigningRequest(key, [{ uri: identity }])
  const leaf = (by = root, life = hour) => pem(issueWorkload(csr, identity, grant(life), by.signer))

  it('is parsed into certificate chain, roots, expiry and identity', () => {
    const certificate = leaf()
    expect(readIssued([certificate, root.pem], key, now)).to.deep.equal({ chain: certificate, roots: root.pem, notAfter: now + hour, identity })
  })

  it('may carry several roots and cross certificates; duplicate roots are removed', () => {
    const certificate = leaf(next)
    const read = readIssued([certificate, cross, root.pem + root.pem], key, now)
    expect(read.chain).to.equal(certificate + cross)
    expect(read.roots).to.equal(root.pem)
    expect(readIssued([certificate, cross, next.pem + root.pem], key, now).roots).to.equal(next.pem + root.pem)
  })

  it('is rejected with the reason if it has no usable certificate or exceeds the limits', () => {
    const serving = pem(issueServing(makeSigningRequest(key, [{ dns: 'a.test' }]), grant(), root.signer))
    const keyText = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()
    const refused: [string, string[]][] = [
      ['0 elements', []],
      ['1 element', [leaf()]],
      ['not certificates in PEM', ['garbage', root.pem]],
      ['not certificates in PEM', [leaf(), '']],
      ['not certificates in PEM', [leaf(), keyText]],
      ['not certificates in PEM', [leaf().slice(0, 200), root.pem]],
      ['for another key', [root.pem, root.pem]],
      ['no root of the trust domain', [leaf(next), root.pem]],
      ['instead of one', [serving, root.pem]],
      ['is valid from', [leaf(root, -500), root.pem]],
      ['characters', [leaf() + '\n'.repeat(600_000), root.pem]],
      ['more than 100', [leaf(), root.pem.repeat(101)]],
    ]
    for (const [reason, elements] of refused) expect(() => readIssued(elements, key, now), reason).to.throw(BadAnswer, reason)
  })
})
