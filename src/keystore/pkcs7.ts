/** Reads and writes certificates in PKCS #7 (RFC 5652, 5.1): signed data that nobody signed, which only holds certificates. */
import { encode, integer, isSequence, membersOf, oid, oidOf, readValue, sequence, set, tagged, taggedIn } from './asn1.ts'
import { KeyStoreFault } from './fault.ts'
import { identifiers } from './identifiers.ts'

const whole = 'the PKCS #7 file'

/**
 * Returns the X.509 certificates of a file in DER, in no particular order. Signatures over other contents are not looked at. Throws {@link
 * KeyStoreFault} when the bytes are no such file, or it holds no certificate.
 */
export function readPkcs7(bytes: Buffer): Buffer[] {
  const [type, wrapped] = membersOf(readValue(bytes, whole), whole)
  if (oidOf(type, 'its type') !== identifiers.signedData) throw new KeyStoreFault('it is a PKCS #7 file of another kind than signed data')
  const certificates = taggedIn(membersOf(membersOf(wrapped, whole)[0], whole).slice(3), 0)
  const found = certificates === undefined ? [] : membersOf(certificates, 'its certificates').filter(isSequence)
  if (found.length === 0) throw new KeyStoreFault('it holds no certificate')
  return found.map(encode)
}

/** Writes a file with certificates, each in DER. */
export function writePkcs7(certificates: readonly Buffer[]): Buffer {
  const held = tagged(0, ...certificates.map((one) => readValue(one, 'a certificate')))
  const content = sequence(integer(1), set(), sequence(oid(identifiers.data)), held, set())
  return encode(sequence(oid(identifiers.signedData), tagged(0, content)))
}
