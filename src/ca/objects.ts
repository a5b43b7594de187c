/** ASN.1 objects of certificates and signing requests, encoded once: algorithms, extensions, attributes. */
import { der, oid, sequence, tag } from './der.ts'

/** Object identifiers, in DER. */
export const objects = {
  rsaEncryption: oid('1.2.840.113549.1.1.1'),
  ecPublicKey: oid('1.2.840.10045.2.1'),
  p256: oid('1.2.840.10045.3.1.7'),
  p384: oid('1.3.132.0.34'),
  p521: oid('1.3.132.0.35'),
  commonName: oid('2.5.4.3'),
  organization: oid('2.5.4.10'),
  extensionRequest: oid('1.2.840.113549.1.9.14'),
  subjectKeyIdentifier: oid('2.5.29.14'),
  keyUsage: oid('2.5.29.15'),
  subjectAltName: oid('2.5.29.17'),
  basicConstraints: oid('2.5.29.19'),
  nameConstraints: oid('2.5.29.30'),
  authorityKeyIdentifier: oid('2.5.29.35'),
  extendedKeyUsage: oid('2.5.29.37'),
  serverAuth: oid('1.3.6.1.5.5.7.3.1'),
  clientAuth: oid('1.3.6.1.5.5.7.3.2'),
} as const

/** A signature algorithm: the digest, and the type of key that it is used with. */
export interface SignatureAlgorithm {
  readonly hash: 'sha256' | 'sha384' | 'sha512'
  readonly keyType: 'rsa' | 'ec'
  /** `AlgorithmIdentifier`, in DER. */
  readonly encoded: Buffer
}

const rsa = (hash: SignatureAlgorithm['hash'], id: string): SignatureAlgorithm => ({
  hash,
  keyType: 'rsa',
  encoded: sequence(oid(id), der(tag.null)),
})
const ecdsa = (hash: SignatureAlgorithm['hash'], id: string): SignatureAlgorithm => ({ hash, keyType: 'ec', encoded: sequence(oid(id)) })

/** The signature algorithms that are accepted in requests and used for signing (RFC 4055, RFC 5758). SHA-1 and MD5 are not among them. */
export const signatureAlgorithms: readonly SignatureAlgorithm[] = [
  rsa('sha256', '1.2.840.113549.1.1.11'),
  rsa('sha384', '1.2.840.113549.1.1.12'),
  rsa('sha512', '1.2.840.113549.1.1.13'),
  ecdsa('sha256', '1.2.840.10045.4.3.2'),
  ecdsa('sha384', '1.2.840.10045.4.3.3'),
  ecdsa('sha512', '1.2.840.10045.4.3.4'),
]

/** Returns the algorithm that a key signs with: SHA-256 for RSA and P-256, SHA-384 for P-384, SHA-512 for P-521. */
export function algorithmFor(keyType: 'rsa' | 'ec', curve?: string): SignatureAlgorithm {
  const hash = curve === 'secp384r1' ? 'sha384' : curve === 'secp521r1' ? 'sha512' : 'sha256'
  return signatureAlgorithms.find((one) => one.keyType === keyType && one.hash === hash) as SignatureAlgorithm
}

const yes = der(tag.boolean, Buffer.from([0xff]))

/** Encodes an extension. */
export function extension(id: Buffer, isCritical: boolean, value: Buffer): Buffer {
  return isCritical ? sequence(id, yes, der(tag.octetString, value)) : sequence(id, der(tag.octetString, value))
}

/** Basic constraints of an authority. */
export const authorityConstraints = extension(objects.basicConstraints, true, sequence(yes))
/** Basic constraints of a leaf certificate. */
export const leafConstraints = extension(objects.basicConstraints, true, sequence())

const usage = (unused: number, byte: number) => extension(objects.keyUsage, true, der(tag.bitString, Buffer.from([unused, byte])))
/** Key usage of a leaf: digital signature and key encipherment. */
export const leafUsage = usage(5, 0xa0)
/** Key usage of an authority: signing of certificates and of revocation lists. */
export const authorityUsage = usage(1, 0x06)
/** Extended key usage of a leaf: both ends of a TLS connection. */
export const bothEnds = extension(objects.extendedKeyUsage, false, sequence(objects.serverAuth, objects.clientAuth))

/** Encodes a distinguished name. Each relative distinguished name has one attribute. */
export function distinguishedName(attributes: readonly (readonly [id: Buffer, text: string])[]): Buffer {
  return sequence(...attributes.map(([id, text]) => der(tag.set, sequence(id, der(tag.utf8String, Buffer.from(text))))))
}
