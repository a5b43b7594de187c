/**
 * Reads the X.509 certificates of authorities (RFC 5280) and makes certificates with `node:crypto` signatures. Only the fields that a
 * certificate authority needs are read.
 */
import { hash, type KeyObject, sign } from 'node:crypto'
import { readPem } from '../identity/pem.ts'
import { bits, booleanOf, DerFault, DerReader, der, positive, positiveOf, sequence, tag, time, timeOf } from './der.ts'
import { algorithmFor, extension, objects, type SignatureAlgorithm } from './objects.ts'
import { type PublicKeyInfo, readPublicKey } from './public-key.ts'

/** A parsed certificate without its public key. Times are Unix milliseconds. */
export interface CertificateFields {
  readonly encoded: Buffer
  readonly serial: Buffer
  /** Issuer and subject are distinguished names in DER. */
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly notBefore: number
  readonly notAfter: number
  /** The `SubjectPublicKeyInfo` in DER, of whatever algorithm. */
  readonly keyInfo: Buffer
  readonly isAuthority: boolean
  /** The path length constraint: the maximum number of authorities between this one and a leaf. Infinite without the constraint. */
  readonly pathLength: number
  /** Whether its key may sign certificates. */
  readonly signsCertificates: boolean
  /** The subject key identifier. Undefined when the certificate has none. */
  readonly keyId: Buffer | undefined
  /** The list of subject alternative names (`GeneralNames` in DER). Undefined when the certificate has none. */
  readonly altNames: Buffer | undefined
}

/** A parsed certificate with its public key. */
export interface Certificate extends CertificateFields {
  readonly publicKey: PublicKeyInfo
}

/**
 * Parses a certificate in DER. Throws `DerFault` when the bytes are not a certificate or the algorithm of the public key is not supported.
 */
export function readCertificate(encoded: Buffer): Certificate {
  const fields = readCertificateFields(encoded)
  return { ...fields, publicKey: readPublicKey(fields.keyInfo) }
}

/** Parses a certificate in DER, and leaves its public key. Throws `DerFault` when the bytes are not a certificate. */
export function readCertificateFields(encoded: Buffer): CertificateFields {
  const whole = DerReader.of(encoded, tag.sequence, 'the certificate')
  const body = whole.structure(tag.sequence, 'body')
  whole.take(tag.sequence, 'algorithm')
  whole.take(tag.bitString, 'signature')
  whole.end()
  body.optional(0xa0)
  const serial = positiveOf(body.take(tag.integer, 'serial number'), 'the serial number')
  body.take(tag.sequence, 'algorithm')
  const issuer = body.take(tag.sequence, 'issuer').whole
  const validity = body.structure(tag.sequence, 'validity')
  const [notBefore, notAfter] = [timeOf(validity.next(), 'the start of the validity'), timeOf(validity.next(), 'the end of the validity')]
  const subject = body.take(tag.sequence, 'subject').whole
  const keyInfo = body.take(tag.sequence, 'public key').whole
  for (const unique of [0x81, 0x82]) body.optional(unique)
  const extensions = body.optional(0xa3)
  body.end()
  return { encoded, serial, issuer, subject, notBefore, notAfter, keyInfo, ...authorityOf(extensions?.content) }
}

/** Parses all certificates of a PEM text. Throws an Error with the number of the certificate that cannot be parsed. */
export function readCertificates(pem: string): Certificate[] {
  return readPem(pem)
    .filter(({ label }) => /^(X509 |TRUSTED )?CERTIFICATE$/.test(label))
    .map(({ der: encoded }, index) => {
      try {
        return readCertificate(encoded)
      } catch (error) {
        throw new Error(`certificate ${index + 1}: ${(error as Error).message}`)
      }
    })
}

type AuthorityPart = Pick<CertificateFields, 'isAuthority' | 'pathLength' | 'signsCertificates' | 'keyId' | 'altNames'>

function authorityOf(extensions: Buffer | undefined): AuthorityPart {
  const found = new Map<string, Buffer>()
  if (extensions)
    for (const all = DerReader.of(extensions, tag.sequence, 'the extensions'); !all.isDone; ) {
      const one = all.structure(tag.sequence, 'extension')
      const id = one.take(tag.oid, 'name').whole
      one.optional(tag.boolean)
      const key = id.toString('hex')
      if (found.has(key)) throw new DerFault('the certificate has one extension twice')
      found.set(key, one.take(tag.octetString, 'value').content)
    }
  const valueFor = (id: Buffer) => found.get(id.toString('hex'))
  const constraints = valueFor(objects.basicConstraints)
  const usage = valueFor(objects.keyUsage)
  const keyId = valueFor(objects.subjectKeyIdentifier)
  const basic = constraints && DerReader.of(constraints, tag.sequence, 'the basic constraints')
  const isAuthority = basic?.optional(tag.boolean)
  const length = basic?.optional(tag.integer)
  return {
    isAuthority: isAuthority !== undefined && booleanOf(isAuthority, 'the basic constraint'),
    pathLength: length === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(length.content.toString('hex'), 16),
    signsCertificates: usage === undefined || ((new DerReader(usage, 'the key usage').take(tag.bitString, 'key usage').content[1] ?? 0) & 0x04) !== 0,
    keyId: keyId && new DerReader(keyId, 'the identifier of the key').take(tag.octetString, 'identifier').content,
    altNames: valueFor(objects.subjectAltName),
  }
}

/**
 * The private key and the name of a signing authority. The fields that all certificates of the authority have in common are encoded once.
 */
export interface SigningKey {
  readonly key: KeyObject
  readonly algorithm: SignatureAlgorithm
  /** The signature algorithm and the issuer name, in DER. */
  readonly issued: Buffer
  /** The authority key identifier extension, in DER. */
  readonly byKey: Buffer
}

/** Returns the signing key of an authority. `subject` is its distinguished name in DER, `keyId` its subject key identifier. */
export function signingKey(key: KeyObject, subject: Buffer, keyId: Buffer): SigningKey {
  const algorithm = algorithmFor(key.asymmetricKeyType === 'rsa' ? 'rsa' : 'ec', key.asymmetricKeyDetails?.namedCurve)
  return {
    key,
    algorithm,
    issued: Buffer.concat([algorithm.encoded, subject]),
    byKey: extension(objects.authorityKeyIdentifier, false, sequence(der(0x80, keyId))),
  }
}

/** Computes the identifier of a key: the first 160 bits of the SHA-256 sum of its public key bits (RFC 7093, 2). */
export function keyIdOf({ bits: key }: Pick<PublicKeyInfo, 'bits'>): Buffer {
  return hash('sha256', key, 'buffer').subarray(0, 20)
}

/** The contents of a certificate to be made. Times are Unix milliseconds, rounded down to whole seconds. */
export interface CertificateContent {
  /** Sixteen random bytes. */
  readonly serial: Buffer
  /** A distinguished name in DER. */
  readonly subject: Buffer
  readonly notBefore: number
  readonly notAfter: number
  readonly publicKey: PublicKeyInfo
  /** Extensions in DER, concatenated, without the subject and authority key identifiers, which {@link makeCertificate} adds. */
  readonly extensions: Buffer
}

/** The version of certificates with extensions, in DER. */
export const version3 = der(0xa0, positive(Buffer.from([2])))

/** Makes a certificate and signs it. Returns it in DER. */
export function makeCertificate(content: CertificateContent, { key, algorithm, issued, byKey }: SigningKey): Buffer {
  const { serial, subject, notBefore, notAfter, publicKey, extensions } = content
  const ofKey = extension(objects.subjectKeyIdentifier, false, der(tag.octetString, keyIdOf(publicKey)))
  const body = sequence(
    version3,
    positive(serial),
    issued,
    sequence(time(notBefore), time(notAfter)),
    subject,
    publicKey.encoded,
    der(0xa3, sequence(extensions, ofKey, byKey)),
  )
  return sequence(body, algorithm.encoded, bits(sign(algorithm.hash, body, key)))
}
