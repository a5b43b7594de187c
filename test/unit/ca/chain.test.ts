import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { type Certificate, readCertificate } from '../../../src/ca/certificate.ts'
import { chainFault, findChain } from '../../../src/ca/chain.ts'
import { issueCross, issueRoot, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { pemOf } from '../../../src/identity/pem.ts'
import { requestPem } from '../../harness/signing-requests.ts'

const now = Date.UTC(2026, 10, 22, 8)
const grant = (hours: number) => ({ serial: randomBytes(16), notBefore: now - 1000, notAfter: now + hours * 3_600_000 })
const made = (name: string, hours = 10) => {
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { key, certificate: readCertificate(issueRoot(name, grant(hours), key)) }
}
const signed = (below: { certificate: Certificate }, by: ReturnType<typeof made>, hours = 10) =>
  readCertificate(issueCross(below.certificate, grant(hours), signingKeyOf(by.certificate, by.key)))
const pem = (...certificates: readonly Certificate[]) => certificates.map(({ encoded }) => pemOf('CERTIFICATE', encoded)).join('')

describe('the chain from a signing certificate to a root', () => {
  const [root, middle, low, stranger] = [made('root'), made('middle', 5), made('low'), made('stranger')]
  const [middleByRoot, lowByMiddle] = [signed(middle, root, 5), signed(low, middle)]

  it('has no intermediates if the root signs', () => {
    const chain = findChain(pem(root.certificate), '', pem(root.certificate))
    expect([chain.intermediates, chain.notAfter]).to.deep.equal(['', root.certificate.notAfter])
    expect(findChain(pem(root.certificate), pem(root.certificate), pem(stranger.certificate, root.certificate)).intermediates).to.equal('')
  })

  it('is found whatever the order of the certificates, and leaves out unrelated ones', () => {
    const chain = findChain(pem(lowByMiddle), pem(stranger.certificate, root.certificate, middleByRoot, lowByMiddle), pem(root.certificate))
    expect(chain.intermediates).to.equal(pem(lowByMiddle, middleByRoot))
    expect(chain.notAfter).to.equal(middleByRoot.notAfter)
    expect(chain.root).to.equal(pem(root.certificate))
    // The file of the signing certificate may contain the intermediates too.
    expect(findChain(pem(lowByMiddle, middleByRoot), '', pem(root.certificate)).intermediates).to.equal(chain.intermediates)
  })

  it('is rejected if no path leads to a root or a file holds no valid certificate', () => {
    for (const [others, roots] of [
      ['', pem(root.certificate)],
      [pem(middleByRoot), pem(stranger.certificate)],
      [pem(middle.certificate), pem(root.certificate)],
    ])
      expect(() => findChain(pem(lowByMiddle), others as string, roots as string)).to.throw('does not lead to a root')
    expect(() => findChain('', '', pem(root.certificate))).to.throw('holds no certificate')
    expect(() => findChain('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', '', '')).to.throw('certificate 1: ')
  })

  it('names an authority that is expired or not yet valid, and is rejected if one is not a CA', () => {
    const late = now + 6 * 3_600_000
    const chain = findChain(pem(lowByMiddle), pem(middleByRoot), pem(root.certificate))
    expect(chainFault(chain, now)).to.equal(undefined)
    expect(chainFault(chain, late)).to.match(/^the authority "O=middle" has expired on /)
    expect(chainFault(chain, now - 5000)).to.match(/^the authority "O=low" is not valid before /)
    const identity = 'spiffe://cluster.local/ns/a/sa/b'
    const leaf = readCertificate(issueWorkload(requestPem(), identity, grant(1), signingKeyOf(root.certificate, root.key)))
    expect(() => findChain(pem(leaf), '', pem(root.certificate))).to.throw('do not say CA:TRUE')
  })
})
