import { createPublicKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { makeCertificate, readCertificate, readCertificates } from '../../../src/ca/certificate.ts'
import { bits, der, oid, positive, sequence, tag } from '../../../src/ca/der.ts'
import { issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import { extension, objects } from '../../../src/ca/objects.ts'
import { makeSigningRequest } from '../../../src/ca/signing-request.ts'
import { pemOf } from '../../../src/identity/pem.ts'
import { vouchedExtension, vouchingCluster } from '../../../src/identity/vouched.ts'
import {
  asksFor,
  authority,
  certificateSigning,
  dns,
  keys,
  named,
  type RequestParts,
  requestBytes,
  requestPem,
  uri,
} from '../../harness/signing-requests.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/reviews'
const now = Date.UTC(2026, 10, 22, 8)
const grant = () => ({ serial: randomBytes(16), notBefore: now, notAfter: now + 3_600_000 })
const rootOf = (key: typeof keys.p256) => {
  const root = readCertificate(issueRoot('cluster.local', { ...grant(), notAfter: now + 86_400_000 }, key))
  return { root: new X509Certificate(root.encoded), signer: signingKeyOf(root, key) }
}
const { root, signer } = rootOf(keys.p256)
const issue = (request: string, who = identity) => new X509Certificate(issueWorkload(request, who, grant(), signer))

describe('a workload certificate', () => {
  const large = generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey
  for (const [name, key] of Object.entries({ ...keys, 'RSA of 4096 bits': large }))
    for (const [signing, rootKey] of Object.entries(keys))
      it(`for a key of ${name} signed with ${signing} verifies against the root and names the identity`, () => {
        const by = rootOf(rootKey)
        const certificate = new X509Certificate(issueWorkload(makeSigningRequest(key, [{ uri: identity }]), identity, grant(), by.signer))
        expect(certificate.verify(by.root.publicKey)).to.equal(true)
        expect(certificate.checkIssued(by.root)).to.equal(true)
        expect(certificate.checkPrivateKey(key)).to.equal(true)
        expect(certificate.subjectAltName).to.equal(`URI:${identity}`)
        expect([certificate.ca, by.root.ca]).to.deep.equal([false, true])
        expect(certificate.validFromDate.getTime()).to.equal(now)
      })

  it('names the identity of the caller, whatever trust domain the request names', () => {
    const certificate = issue(requestPem({ names: [uri('spiffe://old.example/ns/shop/sa/reviews')] }))
    expect(certificate.subjectAltName).to.equal(`URI:${identity}`)
    expect(issue(requestPem()).subjectAltName).to.equal(`URI:${identity}`)
  })

  it('has the identity as common name only if the request has a common name and the identity fits', () => {
    expect(issue(requestPem({ commonName: 'admin' })).subject).to.equal(`CN=${identity}`)
    expect(issue(requestPem({ commonName: 'admin' }), `spiffe://cluster.local/ns/shop/sa/${'r'.repeat(60)}`).subject ?? '').to.equal('')
    expect(issue(requestPem()).subject ?? '').to.equal('')
  })

  it('names the other cluster that vouches for the identity, which nothing in the request can change', () => {
    const request = requestPem({ names: [uri(identity)] })
    expect(vouchingCluster(issueWorkload(request, identity, grant(), signer))).to.equal(undefined)
    for (const cluster of ['west', 'a', 'b'.repeat(200), 'c'.repeat(253), 'ö']) {
      const made = issueWorkload(request, identity, grant(), signer, cluster)
      expect(vouchingCluster(made)).to.equal(cluster)
      const certificate = new X509Certificate(made)
      expect([certificate.verify(root.publicKey), certificate.subjectAltName]).to.deep.equal([true, `URI:${identity}`])
    }
    // The bytes of the extension elsewhere are none, and two of them are no certificate of the authority.
    const marks = ['east', 'west'].map((id) => extension(vouchedExtension, false, der(tag.utf8String, Buffer.from(id))))
    const content = { ...grant(), subject: sequence(), publicKey: readCertificate(root.raw).publicKey }
    const hidden = extension(oid('1.2.3.4'), false, marks[0] as Buffer)
    expect(vouchingCluster(makeCertificate({ ...content, extensions: hidden }, signer))).to.equal(undefined)
    expect(vouchingCluster(makeCertificate({ ...content, extensions: Buffer.concat([hidden, marks[1] as Buffer]) }, signer))).to.equal('west')
    expect(() => vouchingCluster(makeCertificate({ ...content, extensions: Buffer.concat(marks) }, signer))).to.throw('which cluster vouches')
  })

  it('is not issued for a name that is not a workload identity', () => {
    for (const who of ['', 'spiffe://cluster.local', 'spiffe://cluster.local/ns/a/sa/b\0', 'https://a/ns/b/sa/c'])
      expect(() => issue(requestPem(), who), who).to.throw('is not the identity of a workload')
  })

  it('is parsed with the values that it was issued with', () => {
    const encoded = issueWorkload(requestPem(), identity, grant(), signer)
    const read = readCertificate(encoded)
    expect([read.isAuthority, read.signsCertificates, read.publicKey.kind]).to.deep.equal([false, false, { type: 'ec', curve: 'P-256' }])
    expect(read.serial.toString('hex').padStart(32, '0').toUpperCase()).to.equal(new X509Certificate(encoded).serialNumber.padStart(32, '0'))
    expect(readCertificates(pemOf('CERTIFICATE', encoded) + root.toString())).to.have.length(2)
  })
})

describe('a serving certificate', () => {
  it('names the DNS names and addresses of its request', () => {
    const request = makeSigningRequest(keys.p256, [{ dns: 'meshd.mesh-system.svc' }, { address: Buffer.from([127, 0, 0, 1]) }])
    const certificate = new X509Certificate(issueServing(request, grant(), signer))
    expect(certificate.subjectAltName).to.equal('DNS:meshd.mesh-system.svc, IP Address:127.0.0.1')
  })

  it('is not issued for a workload identity or without a host', () => {
    expect(() => issueServing(requestPem({ names: [uri(identity)] }), grant(), signer)).to.throw('names something other than hosts (URI)')
    expect(() => issueServing(requestPem(), grant(), signer)).to.throw('names no host')
  })
})

describe('a signing request', () => {
  const rsa = (modulus: Buffer, exponent: number) =>
    sequence(
      sequence(objects.rsaEncryption, der(tag.null)),
      bits(sequence(positive(modulus), positive(Buffer.from(exponent.toString(16).padStart(10, '0'), 'hex')))),
    )
  const modulus = (size: number) => Buffer.from(['80', ...Array.from({ length: size / 8 - 2 }, () => '11'), '01'].join(''), 'hex')
  const point = createPublicKey(keys.p256).export({ type: 'spki', format: 'der' })
  const refused: Record<string, [RequestParts | string, string]> = {
    nothing: ['', 'is not one CERTIFICATE REQUEST in PEM'],
    'a certificate': [root.toString(), 'is not one CERTIFICATE REQUEST in PEM'],
    'two requests': [requestPem() + requestPem(), 'is not one CERTIFICATE REQUEST in PEM'],
    'too many bytes': ['x'.repeat(16_385), 'has more than 16384 bytes'],
    'no base64': ['-----BEGIN CERTIFICATE REQUEST-----\n***\n-----END CERTIFICATE REQUEST-----', 'is not base64'],
    'no end': ['-----BEGIN CERTIFICATE REQUEST-----\nAAAA', 'has no end'],
    'more than the request': [pemOf('CERTIFICATE REQUEST', Buffer.concat([requestBytes(), Buffer.from([0])])), 'has more in it than it may'],
    'less than the request': [pemOf('CERTIFICATE REQUEST', requestBytes().subarray(0, -1)), 'is cut short'],
    'a later version': [{ version: 1 }, 'version other than 1'],
    'a CA': [{ extensions: [authority] }, 'CA:TRUE'],
    'a key that signs certificates': [{ extensions: [certificateSigning] }, 'signs certificates'],
    'another workload': [{ names: [uri('spiffe://cluster.local/ns/shop/sa/admin')] }, 'is not the identity of the caller'],
    'another namespace': [{ names: [uri('spiffe://cluster.local/ns/bank/sa/reviews')] }, 'is not the identity of the caller'],
    'two identities': [{ names: [uri(identity), uri('spiffe://cluster.local/ns/shop/sa/admin')] }, 'asks for 2 names'],
    'its identity twice': [{ names: [uri(identity), uri(identity)] }, 'asks for 2 names'],
    'a host beside its identity': [{ names: [uri(identity), dns('admin.shop')] }, 'asks for 2 names'],
    'a host': [{ names: [dns('admin.shop')] }, 'not the SPIFFE id of a workload'],
    'another kind of name': [{ names: [der(0xa4, Buffer.alloc(0))] }, 'not the SPIFFE id of a workload'],
    'a NUL in its name': [{ names: [uri(`${identity}\0.evil`)] }, 'not printable ASCII'],
    'a NUL in a host': [{ names: [dns('good.example\0.evil')] }, 'not printable ASCII'],
    'a space in its name': [{ names: [uri(`${identity} `)] }, 'not printable ASCII'],
    'very many names': [{ names: Array.from({ length: 65 }, () => uri(identity)) }, 'more than 64 names'],
    'names twice': [{ extensions: [named(uri(identity)), named(uri(identity))] }, 'asks for one extension twice'],
    'extensions twice': [{ attributes: Buffer.concat([asksFor(named(uri(identity))), asksFor(authority)]) }, 'asks for extensions twice'],
    'two lists of extensions in one': [
      { attributes: sequence(objects.extensionRequest, der(tag.set, sequence(named(uri(identity))), sequence(authority))) },
      'has more in it than it may',
    ],
    'an RSA key of 1024 bits': [{ key: generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey }, 'has 1024 bits; 2048 to 4096 are allowed'],
    'an RSA key of 8192 bits': [{ publicKey: rsa(modulus(8192), 65537) }, 'has 8192 bits'],
    'an exponent of 3': [{ publicKey: rsa(modulus(2048), 3) }, 'exponent'],
    'a very large exponent': [{ publicKey: rsa(modulus(2048), 2 ** 32 + 1) }, 'exponent'],
    'an even modulus': [{ publicKey: rsa(Buffer.concat([modulus(2048).subarray(0, -1), Buffer.from([2])]), 65537) }, 'is even'],
    'a key of Ed25519': [
      { publicKey: createPublicKey(generateKeyPairSync('ed25519').privateKey).export({ type: 'spki', format: 'der' }) },
      'neither RSA nor ECDSA',
    ],
    'a key on P-521': [{ key: generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey }, 'curve other than P-256 and P-384'],
    'a key on secp256k1': [{ key: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey }, 'curve other than P-256 and P-384'],
    'a point that is not on its curve': [
      { publicKey: Buffer.concat([point.subarray(0, -1), Buffer.from([(point.at(-1) ?? 0) ^ 1])]) },
      'does not verify',
    ],
    'the key of another': [{ publicKey: createPublicKey(keys.p384).export({ type: 'spki', format: 'der' }) }, 'does not verify'],
    'an RSA signature on an ECDSA key': [{ algorithm: sequence(oid('1.2.840.113549.1.1.11'), der(tag.null)) }, 'does not verify'],
    'a signature with SHA-1': [{ algorithm: sequence(oid('1.2.840.10045.4.1')) }, 'signed with an algorithm other than'],
    'a body that was changed': [
      { commonName: 'a', garble: (bytes) => bytes.set([0x62], bytes.indexOf(Buffer.from([0x0c, 0x01, 0x61])) + 2) },
      'does not verify',
    ],
  }
  for (const [what, [parts, reason]] of Object.entries(refused))
    it(`is rejected with ${what}`, () => {
      const request = typeof parts === 'string' ? parts : requestPem(parts)
      expect(() => issue(request)).to.throw(reason)
    })

  it('is accepted with extensions that the certificate then does not have', () => {
    const certificate = issue(
      requestPem({
        extensions: [named(uri(identity)), der(tag.sequence, oid('2.5.29.37'), der(tag.octetString, sequence(oid('1.3.6.1.5.5.7.3.3'))))],
      }),
    )
    expect(certificate.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
  })
})
