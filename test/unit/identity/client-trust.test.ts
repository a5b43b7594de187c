import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Certificate, readCertificates } from '../../../src/ca/certificate.ts'
import { issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { ClientTrust, uriNames } from '../../../src/identity/client-trust.ts'
import { endOfCredential } from '../../../src/identity/credential-life.ts'
import { ServingCertificates } from '../../harness/serving-certificates.ts'

const day = 86_400_000

describe('verification of client certificates', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-trust-'))
  const made = new ServingCertificates(dir)
  /** An hour after all certificates were issued. */
  let now = 0
  const at = (name: string) => new X509Certificate(made.text(`${name}.pem`))
  const own = 'spiffe://cluster.local/ns/a/sa/b'

  before(() => {
    for (const name of ['own', 'own-new', 'other']) made.authority(name)
    made.intermediate('between', 'own')
    made.intermediate('below', 'between')
    made.workload('good', 'own', [own])
    made.workload('new', 'own-new', [own])
    made.workload('deep', 'below', [own])
    made.workload('alias', 'own', ['spiffe://old.domain/ns/a/sa/b'])
    made.workload('other-good', 'other', ['spiffe://other.domain/ns/a/sa/b'])
    made.workload('crossed', 'other', [own])
    made.workload('two', 'own', [own, 'spiffe://cluster.local/ns/a/sa/c'])
    made.workload('none', 'own', [])
    made.workload('odd', 'own', ['https://cluster.local/ns/a/sa/b'])
    made.workload('bare', 'own', ['spiffe://cluster.local'])
    made.workload('unknown', 'own', ['spiffe://unknown.domain/ns/a/sa/b'])
    made.issue('authority', 'own', 1, `subjectAltName=URI:${own}\nbasicConstraints=critical,CA:TRUE\n`)
    now = at('authority').validFromDate.getTime() + 3_600_000
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  function trust(): ClientTrust {
    const made1 = new ClientTrust()
    made1.rename({ trustDomain: 'cluster.local', trustDomainAliases: ['old.domain'], rootNamespace: 'mesh-system' })
    made1.set('authority', { '': made.text('own.pem') })
    made1.set('bundles', { 'other.domain': made.text('other.pem') })
    return made1
  }
  /** Returns the identity, or the reason for the refusal. */
  const judged = (name: string, with_ = trust(), intermediates: readonly string[] = [], when = now) => {
    const verified = with_.verify({ leaf: at(name), intermediates: () => intermediates.map(at) }, when)
    return 'refused' in verified ? verified.refused : verified.caller.identities.join()
  }

  it('uses only the roots of the trust domain that the certificate names', () => {
    expect(judged('good')).to.equal(own)
    expect(judged('alias')).to.equal('spiffe://old.domain/ns/a/sa/b')
    expect(judged('other-good')).to.equal('spiffe://other.domain/ns/a/sa/b')
    expect(judged('crossed')).to.equal(`no root of the trust domain cluster.local has signed the certificate of ${own}`)
    expect(judged('unknown')).to.equal('there is no root for the trust domain unknown.domain')
  })

  it('takes the other cluster that vouches for the identity from the certificate', () => {
    const authority = createPrivateKey(made.text('own-key.pem'))
    const grant = { serial: randomBytes(16), notBefore: now - day / 24, notAfter: now + day }
    const of = (cluster: string | undefined) => {
      const [signing] = readCertificates(made.text('own.pem'))
      const request = makeSigningRequest(createPrivateKey(made.text('good-key.pem')), [])
      const leaf = new X509Certificate(issueWorkload(request, own, grant, signingKeyOf(signing as Certificate, authority), cluster))
      const verified = trust().verify({ leaf, intermediates: () => [] }, now)
      return 'refused' in verified ? verified.refused : verified.caller.cluster
    }
    expect(of('west')).to.deep.equal({ id: 'west', isOwn: false })
    expect(of(undefined)).to.equal(undefined)
  })

  it('builds the chain from the presented intermediates in any order, and from nothing else', () => {
    expect(judged('deep', trust(), ['below', 'between'])).to.equal(own)
    expect(judged('deep', trust(), ['other', 'between', 'below', 'good'])).to.equal(own)
    expect(judged('deep', trust(), ['between'])).to.contain('no root of the trust domain')
    expect(judged('crossed', trust(), ['other', 'between'])).to.contain('no root of the trust domain')
    expect(judged('deep', trust(), [...Array.from({ length: 10 }, () => 'other'), 'below', 'between'])).to.contain('no root')
  })

  it("requires a leaf with exactly one URI that is a workload's SPIFFE id", () => {
    expect(judged('two')).to.equal('the certificate has 2 URIs among its names instead of one')
    expect(judged('none')).to.equal('the certificate has 0 URIs among its names instead of one')
    for (const name of ['odd', 'bare']) expect(judged(name)).to.equal('the URI of the certificate is not the SPIFFE id of a workload')
    expect(judged('authority')).to.equal('the certificate is one of an authority')
  })

  it('fails outside of the validity period of the certificate', () => {
    expect(judged('good', trust(), [], now + 2 * day)).to.match(/^the certificate is valid from/)
    expect(judged('good', trust(), [], now - 2 * day)).to.match(/^the certificate is valid from/)
  })

  it('stays valid after a change of roots while the same root key and name remain', () => {
    const changing = trust()
    const verified = changing.verify({ leaf: at('good'), intermediates: () => [] }, now)
    if ('refused' in verified) throw new Error(verified.refused)
    expect(verified.caller.certificate?.root).to.equal(at('own').fingerprint256.replaceAll(':', '').toLowerCase())
    changing.set('authority', { '': made.text('own.pem') + made.text('own-new.pem') })
    expect(changing.stillTrusts(verified)).to.equal(true)
    expect(judged('new', changing)).to.equal(own)
    changing.set('authority', { '': made.text('own-new.pem') })
    expect(changing.stillTrusts(verified)).to.equal(false)
    expect(judged('good', changing)).to.contain('no root of the trust domain')
    changing.set('files', { 'cluster.local': made.text('own.pem') })
    expect(changing.stillTrusts(verified)).to.equal(true)
  })

  it('merges the roots of all sources for TLS without duplicates, and rejects what is not PEM', () => {
    const joined = trust()
    joined.set('files', { '': made.text('own.pem') })
    expect(joined.bundle.match(/BEGIN CERTIFICATE/g)).to.have.length(2)
    expect(() => joined.set('files', { '': 'garbage' })).to.throw('holds no certificate in PEM')
    expect(joined.bundle.match(/BEGIN CERTIFICATE/g)).to.have.length(2)
    expect(new ClientTrust().bundle).to.equal('')
  })

  it("parses names in Node's format, also names that contain quoted separators", () => {
    expect(uriNames('DNS:a, URI:spiffe://b/c, IP Address:1.2.3.4')).to.deep.equal(['spiffe://b/c'])
    expect(uriNames('DNS:"a, URI:spiffe://b/c", URI:spiffe://d/e')).to.deep.equal(['spiffe://d/e'])
    expect(uriNames('URI:"spiffe://b/c, URI:spiffe://d/e"')).to.deep.equal(['spiffe://b/c, URI:spiffe://d/e'])
    expect(uriNames('garbage')).to.have.length(2)
    expect(uriNames('')).to.deep.equal([])
  })

  it('ends an expired credential after a grace period with jitter', () => {
    expect([0, 0.5, 1].map((share) => endOfCredential(1000, 100, share))).to.deep.equal([1100, 1150, 1200])
  })
})
