/** Holds what the authority encodes and reads to a reader of ASN.1 that others wrote, node-forge. Its reader of X.509 knows RSA keys only. */
import { randomBytes, X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import forge from 'node-forge'
import { readCertificate } from '../../../src/ca/certificate.ts'
import { DerReader, der, oid, positive, positiveOf, sequence, tag, time, timeOf } from '../../../src/ca/der.ts'
import { issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { makeSigningRequest, readSigningRequest } from '../../../src/ca/signing-request.ts'
import { runs } from '../../harness/seed.ts'
import { keys, requestPem } from '../../harness/signing-requests.ts'

const { asn1, pki } = forge
type Asn1 = forge.asn1.Asn1

const textOf = (bytes: Buffer): string => bytes.toString('latin1')
/** Parses with node-forge, strictly, without a guess at what bit strings hold. */
const forged = (bytes: Buffer): Asn1 =>
  (asn1.fromDer as unknown as (text: string, options: object) => Asn1)(textOf(bytes), { strict: true, decodeBitStrings: false })
const encoded = (value: Asn1): Buffer => Buffer.from(asn1.toDer(value).getBytes(), 'latin1')

/** A value as both readers see it: tag, and content or members. */
type Seen = readonly [tag: number, content: string | readonly Seen[]]
const constructed = 0x20

function seenByForge({ tagClass, type, constructed: hasMembers, value }: Asn1): Seen {
  const first = tagClass | type | (hasMembers ? constructed : 0)
  return [first, typeof value === 'string' ? value : value.map(seenByForge)]
}

function seenByUs(bytes: Buffer): Seen {
  const reader = new DerReader(bytes, 'the value')
  const { tag: first, content } = reader.next()
  reader.end()
  if ((first & constructed) === 0) return [first, textOf(content)]
  const members: Seen[] = []
  for (const inner = new DerReader(content, 'the value'); !inner.isDone; ) members.push(seenByUs(inner.next().whole))
  return [first, members]
}

const keyType = fc.constantFrom('rsa' as const, 'p256' as const, 'p384' as const)
const label = fc.stringMatching(/^[a-z]{1,12}$/)
const workload = fc.tuple(label, label).map(([namespace, account]) => `spiffe://cluster.local/ns/${namespace}/sa/${account}`)
const validity = fc
  .tuple(fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2060, 0) }), fc.integer({ min: 1, max: 10 * 365 }))
  .map(([from, days]) => ({ notBefore: from, notAfter: from + days * 86_400_000 }))
const organization = fc.string({ minLength: 1, maxLength: 70, unit: 'grapheme' })
const granted = (valid: { notBefore: number; notAfter: number }) => ({ ...valid, serial: randomBytes(16) })
const seconds = (at: number) => Math.floor(at / 1000) * 1000

describe('DER, beside a second reader', () => {
  it('of certificates is what the other reader would encode, and is read alike', () => {
    fc.assert(
      fc.property(keyType, keyType, workload, validity, organization, (above, below, identity, valid, name) => {
        const root = issueRoot(name, granted(valid), keys[above])
        const signer = signingKeyOf(readCertificate(root), keys[above])
        const leaf = issueWorkload(makeSigningRequest(keys[below], [{ uri: identity }]), identity, granted(valid), signer)
        const served = issueServing(makeSigningRequest(keys[below], [{ dns: 'meshd.mesh-system.svc' }]), granted(valid), signer)
        for (const bytes of [root, leaf, served]) {
          expect(encoded(forged(bytes)).equals(bytes)).to.equal(true)
          expect(seenByUs(bytes)).to.deep.equal(seenByForge(forged(bytes)))
        }
      }),
      { numRuns: 60 },
    )
  })

  it('of certificates with RSA keys says the same to the other reader of X.509', () => {
    fc.assert(
      fc.property(workload, validity, (identity, valid) => {
        const root = issueRoot('cluster.local', granted(valid), keys.rsa)
        const grant = granted(valid)
        const signer = signingKeyOf(readCertificate(root), keys.rsa)
        const leaf = issueWorkload(makeSigningRequest(keys.rsa, [{ uri: identity }]), identity, grant, signer)
        const [theirs, authority] = [leaf, root].map((bytes) => pki.certificateFromAsn1(asn1.fromDer(textOf(bytes)), true)) as [
          forge.pki.Certificate,
          forge.pki.Certificate,
        ]
        expect([theirs.validity.notBefore.getTime(), theirs.validity.notAfter.getTime()]).to.deep.equal([
          seconds(valid.notBefore),
          seconds(valid.notAfter),
        ])
        expect(theirs.serialNumber.replace(/^0+/, '')).to.equal(grant.serial.toString('hex').replace(/^0+/, ''))
        const names = theirs.getExtension('subjectAltName') as { altNames: { type: number; value: string }[] }
        expect(names.altNames.map(({ type, value }) => [type, value])).to.deep.equal([[6, identity]])
        expect(theirs.getExtension('basicConstraints')).to.include({ cA: false, critical: true })
        expect(theirs.getExtension('keyUsage')).to.include({ digitalSignature: true, keyEncipherment: true, keyCertSign: false })
        expect(authority.getExtension('keyUsage')).to.include({ digitalSignature: false, keyCertSign: true, cRLSign: true })
        expect(authority.subject.getField('O')?.value).to.equal('cluster.local')
        expect(authority.verify(theirs) && authority.verify(authority)).to.equal(true)
      }),
      { numRuns: 20 },
    )
  })

  it('of requests is what the other reader would encode, and its signature verifies there (RSA)', () => {
    fc.assert(
      fc.property(keyType, workload, (type, identity) => {
        const request = makeSigningRequest(keys[type], [{ uri: identity }])
        const bytes = Buffer.from(request.replace(/-----[^-]*-----|\s/g, ''), 'base64')
        expect(encoded(forged(bytes)).equals(bytes)).to.equal(true)
        expect(readSigningRequest(request).names.map(({ value }) => value)).to.deep.equal([identity])
        if (type === 'rsa') expect(pki.certificationRequestFromPem(request).verify()).to.equal(true)
      }),
      { numRuns: 60 },
    )
  })

  it('of others is read alike: a request and a certificate that node-forge made', () => {
    const rsa = pki.privateKeyFromPem(keys.rsa.export({ type: 'pkcs1', format: 'pem' }) as string)
    const publicKey = pki.setRsaPublicKey(rsa.n, rsa.e)
    const request = pki.createCertificationRequest()
    request.publicKey = publicKey
    request.setSubject([{ name: 'commonName', value: 'a' }])
    const identity = 'spiffe://cluster.local/ns/shop/sa/cart'
    request.setAttributes([{ name: 'extensionRequest', extensions: [{ name: 'subjectAltName', altNames: [{ type: 6, value: identity }] }] }] as never)
    request.sign(rsa, forge.md.sha256.create())
    const read = readSigningRequest(pki.certificationRequestToPem(request))
    expect([read.hasCommonName, read.names.map(({ value }) => value)]).to.deep.equal([true, [identity]])

    const certificate = pki.createCertificate()
    certificate.publicKey = publicKey
    certificate.serialNumber = '0123'
    certificate.validity = { notBefore: new Date(Date.UTC(2026, 0)), notAfter: new Date(Date.UTC(2055, 0)) }
    certificate.setIssuer([{ name: 'organizationName', value: 'others' }])
    certificate.setSubject([{ name: 'organizationName', value: 'others' }])
    certificate.setExtensions([
      { name: 'basicConstraints', cA: true, pathLenConstraint: 3 },
      { name: 'keyUsage', keyCertSign: true },
    ])
    certificate.sign(rsa, forge.md.sha256.create())
    const bytes = encoded(pki.certificateToAsn1(certificate))
    const { notBefore, notAfter, isAuthority, pathLength, signsCertificates, publicKey: key } = readCertificate(bytes)
    expect([notBefore, notAfter, isAuthority, pathLength, signsCertificates]).to.deep.equal([Date.UTC(2026, 0), Date.UTC(2055, 0), true, 3, true])
    expect(key.encoded.equals(new X509Certificate(bytes).publicKey.export({ type: 'spki', format: 'der' }))).to.equal(true)
  })

  it('of single values agrees: numbers, times, object identifiers', () => {
    const digits = fc.uint8Array({ minLength: 1, maxLength: 20 }).filter((bytes) => bytes.some((byte) => byte !== 0))
    fc.assert(
      fc.property(digits, (bytes) => {
        const [, content] = seenByForge(forged(positive(bytes)))
        const theirs = BigInt(`0x${Buffer.from(content as string, 'latin1').toString('hex')}`)
        expect(theirs).to.equal(BigInt(`0x${Buffer.from(bytes).toString('hex')}`))
        const ours = positiveOf(new DerReader(positive(bytes), 'it').next(), 'it')
        expect(BigInt(`0x${ours.toString('hex')}`)).to.equal(theirs)
      }),
    )
    // Years before 1950 have another form, which no certificate needs.
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1950, 0), max: Date.UTC(9999, 11) }), (at) => {
        const { type, value } = forged(time(at))
        const theirs = type === asn1.Type.UTCTIME ? asn1.utcTimeToDate(value as string) : asn1.generalizedTimeToDate(value as string)
        expect(theirs.getTime()).to.equal(seconds(at))
        expect(timeOf(new DerReader(time(at), 'it').next(), 'it')).to.equal(seconds(at))
      }),
    )
    const arcs = fc.tuple(fc.nat(2), fc.nat(39), fc.array(fc.nat(2 ** 31 - 1), { minLength: 1, maxLength: 8 }))
    fc.assert(
      fc.property(arcs, ([first, second, more]) => {
        const dotted = [first, second, ...more].join('.')
        expect(asn1.derToOid(forged(oid(dotted)).value as string)).to.equal(dotted)
      }),
    )
  })

  it('that our reader accepts, the other accepts and sees alike, however it is garbled', () => {
    const sources = [
      issueRoot('cluster.local', granted({ notBefore: 0, notAfter: 1e12 }), keys.p256),
      Buffer.from(requestPem({ key: keys.rsa }).replace(/-----[^-]*-----|\s/g, ''), 'base64'),
      sequence(der(tag.octetString, Buffer.alloc(200)), sequence(der(tag.null), oid('1.2.840.113549')), der(0xa3, positive(Buffer.from([1])))),
    ]
    const change = fc.record({ at: fc.nat(2000), byte: fc.nat(255) })
    let accepted = 0
    fc.assert(
      fc.property(fc.constantFrom(...sources), fc.array(change, { minLength: 1, maxLength: 3 }), (source, changes) => {
        const bytes = Buffer.from(source)
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte
        let ours: Seen
        try {
          ours = seenByUs(bytes)
        } catch {
          return
        }
        if (hasBmpString(ours)) return
        accepted++
        expect(seenByForge(forged(bytes))).to.deep.equal(ours)
      }),
      { numRuns: runs(3000) },
    )
    expect(accepted, 'garbled values that are DER').to.be.greaterThan(300)
  })
})

/** Whether there is a value with the number of BMP strings, in whatever class: node-forge decodes them while it reads. */
function hasBmpString([first, content]: Seen): boolean {
  return typeof content === 'string' ? (first & 0x1f) === 0x1e : content.some(hasBmpString)
}
