/** Certificates: authorities, and those that sign themselves or that an authority signs (Go's `crypto/x509`). */
import { createPublicKey, type KeyObject, sign, verify, X509Certificate } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import { type CertificateFields, keyIdOf, readCertificateFields, version3 } from '../../ca/certificate.ts'
import { bits, bitsOf, DerReader, der, oid, positive, sequence, tag, time } from '../../ca/der.ts'
import { algorithmFor, authorityConstraints, bothEnds, extension, leafConstraints, leafUsage, objects } from '../../ca/objects.ts'
import { altNames, type WantedName } from '../../ca/signing-request.ts'
import { pemOf } from '../../identity/pem.ts'
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { fail, GoStruct, textOf, type Value } from '../values.ts'
import type { Clock } from './dates.ts'
import { bytesOf64, type Random } from './encodings.ts'
import { firstBlock, makeKey, type NewKey, privateKeyPem, readPrivateKey } from './keys.ts'

/** What a signature takes, in milliseconds as it is assumed, and the size of the smallest RSA key that signs, in bits. */
const [taken, smallestRsa] = [50, 1024]

/** What certificates depend on besides their arguments. */
interface Surroundings {
  readonly clock: Clock
  readonly random: Random
  readonly newKey: NewKey
}

/** What is asked for. */
interface Wanted {
  readonly name: string
  readonly addresses: readonly Value[]
  readonly hosts: readonly Value[]
  readonly days: number
  readonly isAuthority: boolean
}

/** Who signs; without fields the certificate signs itself. */
interface Signer {
  readonly key: KeyObject
  readonly fields?: CertificateFields
}

/** The message of a certificate with its key, both in PEM. */
const certificate = (cert: string, key: string): GoStruct =>
  new GoStruct(
    'sprig.certificate',
    new Map([
      ['Cert', cert],
      ['Key', key],
    ]),
  )

const usages = 0xa4
/** Key usage of an authority of templates: digital signature, key encipherment and signing of certificates. */
const authorityUsage = extension(objects.keyUsage, true, der(tag.bitString, Buffer.from([2, usages])))

/** Texts of the type PrintableString, which a name has where it can. */
const printable = /^[A-Za-z0-9 '()+,\-./:=?]*$/
const printableString = 0x13

function nameOf(text: string): Buffer {
  if (text === '') return sequence()
  if (!text.isWellFormed()) return fail('the common name is not UTF-8')
  const form = printable.test(text) ? printableString : tag.utf8String
  return sequence(der(tag.set, sequence(objects.commonName, der(form, Buffer.from(text)))))
}

function addressOf(value: Value): WantedName {
  // Go reads no zones, and IPv4 with four decimal numbers only.
  const isAddress =
    typeof value === 'string' &&
    (value.includes(':') ? !value.includes('%') && ipaddr.IPv6.isValid(value) : ipaddr.IPv4.isValidFourPartDecimal(value))
  return isAddress ? { address: Buffer.from(ipaddr.process(value).toByteArray()) } : fail('error parsing ip')
}

function hostOf(value: Value): WantedName {
  if (typeof value !== 'string') return fail('error processing alternate dns name: it is not a string')
  return /[^\x00-\x7f]/.test(value) ? fail('a dns name cannot be encoded as an IA5String') : { dns: value }
}

const ed25519 = sequence(oid('1.3.101.112'))

/** The digest that a key signs, and the algorithm in DER. */
function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: { namedCurve, modulusLength = 0 } = {} }: KeyObject) {
  if (type === 'ed25519') return { hash: null, encoded: ed25519 }
  if (type !== 'rsa' && type !== 'ec') return fail('only RSA, ECDSA and Ed25519 keys sign certificates')
  if (type === 'rsa' && modulusLength < smallestRsa) return fail(`RSA keys have at least ${smallestRsa} bits`)
  return algorithmFor(type, namedCurve)
}

// Not `KeyObject.equals`: of keys of two types, it leaves an error behind that the next key that is read fails with.
const infoOf = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })

const nanosOfDay = 24n * 3_600_000_000_000n

function made(budget: Budget, { clock, random }: Surroundings, wanted: Wanted, key: KeyObject, { key: signing, fields }: Signer): GoStruct {
  const { name, addresses, hosts, days, isAuthority } = wanted
  const names = [...hosts.map(hostOf), ...addresses.map(addressOf)]
  // Keys of other algorithms sign nothing, and are in no certificate.
  algorithmOf(key)
  const { hash, encoded } = algorithmOf(signing)
  budget.slow(taken)
  const info = infoOf(createPublicKey(key))
  const subject = nameOf(name)
  const issuer = fields?.subject ?? subject
  const byKey = issuer.equals(subject) ? undefined : fields?.keyId
  const now = clock()
  const body = sequence(
    version3,
    positive(random(16)),
    encoded,
    issuer,
    // As in Go, more days than 64 bits have nanoseconds for wrap around.
    sequence(...[now, now + BigInt.asIntN(64, nanosOfDay * BigInt(days))].map((nanos) => time(Number(nanos / 1_000_000n)))),
    subject,
    info,
    der(
      0xa3,
      sequence(
        ...(isAuthority ? [authorityUsage, bothEnds, authorityConstraints, identifierOf(info)] : [leafUsage, bothEnds, leafConstraints]),
        ...(byKey ? [extension(objects.authorityKeyIdentifier, false, sequence(der(0x80, byKey)))] : []),
        ...(names.length > 0 ? [extension(objects.subjectAltName, name === '', altNames(names))] : []),
      ),
    ),
  )
  const signature = sign(hash, body, signing)
  // A key that is damaged, but can be read, makes signatures that nobody accepts.
  if (!verify(hash, body, createPublicKey(signing), signature)) return fail('the private key makes no valid signature')
  return certificate(pemOf('CERTIFICATE', sequence(body, encoded, bits(signature))), privateKeyPem(key))
}

/** The extension with the identifier of a key. */
function identifierOf(info: Buffer): Buffer {
  const values = DerReader.of(info, tag.sequence, 'the public key')
  values.take(tag.sequence, 'algorithm')
  const key = bitsOf(values.take(tag.bitString, 'key'), 'the public key')
  return extension(objects.subjectKeyIdentifier, false, der(tag.octetString, keyIdOf({ bits: key })))
}

/** Reads the first certificate of a PEM text. Throws a TemplateError when there is none. */
function readCertificate(pem: string): { readonly fields: CertificateFields; readonly publicKey: KeyObject } {
  const block = firstBlock(pem)
  if (!block) return fail('unable to decode certificate')
  try {
    return { fields: readCertificateFields(block.der), publicKey: new X509Certificate(block.der).publicKey }
  } catch {
    return fail('error parsing certificate')
  }
}

function signerOf(authority: GoStruct): Signer {
  const { fields, publicKey } = readCertificate(String(authority.fields.get('Cert')))
  const key = readPrivateKey(String(authority.fields.get('Key')))
  return infoOf(createPublicKey(key)).equals(infoOf(publicKey)) ? { key, fields } : fail("provided PrivateKey doesn't match parent's PublicKey")
}

/** What a certificate with a parsed key costs to read, in characters. */
const readWork = 20_000

function custom(budget: Budget, cert: string, key: string): GoStruct {
  budget.spend(readWork)
  const texts = [cert, key].map((text) => {
    const bytes = bytesOf64(text)
    return typeof bytes === 'string' ? fail(bytes) : textOf(bytes)
  }) as [string, string]
  readCertificate(texts[0])
  readPrivateKey(texts[1])
  return certificate(...texts)
}

/** The functions by name. */
export function certificateFunctions(surroundings: Surroundings): Functions {
  const newKey = (budget: Budget) => makeKey(budget, surroundings.newKey, 'rsa2048')
  const authority = (budget: Budget, name: string, days: number, key: KeyObject) =>
    made(budget, surroundings, { name, addresses: [], hosts: [], days, isAuthority: true }, key, { key })
  type Names = readonly [name: string, addresses: readonly Value[], hosts: readonly Value[], days: number]
  const leaf = (budget: Budget, [name, addresses, hosts, days]: Names, key: KeyObject, signer: Signer) =>
    made(budget, surroundings, { name, addresses, hosts, days, isAuthority: false }, key, signer)
  const names = ['string', 'list', 'list', 'int'] as const
  return new Map(
    Object.entries({
      buildCustomCert: templateFunction(['string', 'string'], custom),
      genCA: templateFunction(['string', 'int'], (budget, name, days) => authority(budget, name, days, newKey(budget))),
      genCAWithKey: templateFunction(['string', 'int', 'string'], (budget, name, days, key) => authority(budget, name, days, readPrivateKey(key))),
      genSelfSignedCert: templateFunction(names, (budget, ...given) => {
        const key = newKey(budget)
        return leaf(budget, given, key, { key })
      }),
      genSelfSignedCertWithKey: templateFunction([...names, 'string'], (budget, name, addresses, hosts, days, pem) => {
        const key = readPrivateKey(pem)
        return leaf(budget, [name, addresses, hosts, days], key, { key })
      }),
      genSignedCert: templateFunction([...names, 'certificate'], (budget, name, addresses, hosts, days, signer) =>
        leaf(budget, [name, addresses, hosts, days], newKey(budget), signerOf(signer)),
      ),
      genSignedCertWithKey: templateFunction([...names, 'certificate', 'string'], (budget, name, addresses, hosts, days, signer, pem) =>
        leaf(budget, [name, addresses, hosts, days], readPrivateKey(pem), signerOf(signer)),
      ),
    }),
  )
}
