/** Private keys: those that templates make, and those that they are given in PEM. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { bitsOf, DerReader, der, oid, positive, sequence, tag } from '../../ca/der.ts'
import { pemOf } from '../../identity/pem.ts'
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { bytesOf, fail } from '../values.ts'
import { bytesOf64 } from './encodings.ts'

/** The kinds of keys that templates make. The number is the size of an RSA key in bits. */
export type KeyKind = 'rsa4096' | 'rsa2048' | 'dsa' | 'ecdsa' | 'ed25519'

/** Makes a private key: RSA, DSA with 2048 and 256 bits, ECDSA on P-256, or Ed25519. */
export type NewKey = (kind: KeyKind) => KeyObject

/** What making a key takes, in milliseconds as they are assumed. */
const taken: Readonly<Record<KeyKind, number>> = { rsa4096: 2000, rsa2048: 300, dsa: 500, ecdsa: 5, ed25519: 5 }

/** Makes a key within the budget. */
export function makeKey(budget: Budget, newKey: NewKey, kind: KeyKind): KeyObject {
  budget.slow(taken[kind])
  return newKey(kind)
}

/** The first block of a PEM text, of whatever label. Undefined when there is none. */
export function firstBlock(text: string): { readonly label: string; readonly der: Buffer } | undefined {
  const lines = bytesOf(text).toString('latin1')
  for (const [, label = '', body = ''] of lines.matchAll(/(?<=^|\n)-----BEGIN (.*)-----[ \t\r]*\n([^-]*)(?<=\n)-----END \1-----[ \t\r]*(?=\n|$)/g)) {
    const bytes = bytesOf64(body.replaceAll(/[ \t]/g, ''))
    if (typeof bytes !== 'string') return { label, der: bytes }
  }
  return undefined
}

/** The structures of private keys by label, and the tag of the second value of each. */
const structures = {
  'PRIVATE KEY': { type: 'pkcs8', second: tag.sequence },
  'RSA PRIVATE KEY': { type: 'pkcs1', second: tag.integer },
  'EC PRIVATE KEY': { type: 'sec1', second: tag.octetString },
} as const

/** The largest RSA key that is read, in bits. */
const largestRsa = 8192

const curves: readonly (string | undefined)[] = ['secp224r1', 'prime256v1', 'secp384r1', 'secp521r1']
const types: readonly (string | undefined)[] = ['rsa', 'ec', 'ed25519', 'x25519']

/** Reads a private key in PEM: PKCS #8, PKCS #1, SEC 1, or the form of OpenSSL for DSA. Throws a TemplateError when it is none. */
export function readPrivateKey(pem: string): KeyObject {
  const block = firstBlock(pem)
  if (!block) return fail('no PEM data in input')
  const { label, der: bytes } = block
  const structure = Object.hasOwn(structures, label) ? structures[label as keyof typeof structures] : undefined
  if (!structure && label !== dsaLabel)
    return fail(label.endsWith(' PRIVATE KEY') ? `invalid private key type ${label.slice(0, 60)}` : 'no private key data in PEM block')
  const key = readStructure(bytes, structure)
  const { asymmetricKeyType: type, asymmetricKeyDetails: { namedCurve } = {} } = key
  if (structure && (!types.includes(type) || (type === 'ec' && !curves.includes(namedCurve))))
    return fail('the private key is of an unknown algorithm')
  if (type === 'rsa') checkRsa(key)
  return key
}

/** Checks the numbers of a key, of which OpenSSL takes any. Throws a TemplateError. */
function checkRsa(key: KeyObject): void {
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) > largestRsa) fail(`RSA keys have at most ${largestRsa} bits`)
  const { n, e, d, p, q, dp, dq, qi } = key.export({ format: 'jwk' })
  const [modulus, exponent, secret, one, other, ofOne, ofOther, inverse] = [n, e, d, p, q, dp, dq, qi].map((digits = '') =>
    BigInt(`0x0${Buffer.from(digits, 'base64url').toString('hex')}`),
  ) as [bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint]
  const isWhole =
    one > 1n &&
    other > 1n &&
    one * other === modulus &&
    [one, other].every((prime) => (exponent * secret) % (prime - 1n) === 1n) &&
    ofOne === secret % (one - 1n) &&
    ofOther === secret % (other - 1n) &&
    (inverse * other) % one === 1n
  if (!isWhole) fail('the numbers of the RSA key do not belong together')
}

function readStructure(bytes: Buffer, structure: (typeof structures)[keyof typeof structures] | undefined): KeyObject {
  try {
    if (!structure) return readDsa(bytes)
    const values = DerReader.of(bytes, tag.sequence, 'the private key')
    values.take(tag.integer, 'version')
    values.take(structure.second, 'key')
    return createPrivateKey({ key: bytes, format: 'der', type: structure.type })
  } catch {
    // What the libraries say about a key may be a part of it.
    return fail('the private key cannot be parsed')
  }
}

/** Returns a private key in the PEM that Go gives its type. */
export function privateKeyPem(key: KeyObject): string {
  if (key.asymmetricKeyType === 'dsa') return pemOf(dsaLabel, dsaOf(key))
  const type = key.asymmetricKeyType === 'rsa' ? 'pkcs1' : key.asymmetricKeyType === 'ec' ? 'sec1' : 'pkcs8'
  return key.export({ type, format: 'pem' }).toString()
}

const dsaLabel = 'DSA PRIVATE KEY'
const dsaId = oid('1.2.840.10040.4.1')
const zero = positive(Buffer.from([0]))

/** Encodes a DSA key as OpenSSL does: a version, the parameters, the public and the private number. */
function dsaOf(key: KeyObject): Buffer {
  const whole = DerReader.of(key.export({ type: 'pkcs8', format: 'der' }), tag.sequence, 'the key')
  whole.take(tag.integer, 'version')
  const algorithm = whole.structure(tag.sequence, 'algorithm')
  algorithm.take(tag.oid, 'name')
  const parameters = algorithm.take(tag.sequence, 'parameters').content
  const priv = whole.take(tag.octetString, 'private number').content
  const info = DerReader.of(createPublicKey(key).export({ type: 'spki', format: 'der' }), tag.sequence, 'the public key')
  info.take(tag.sequence, 'algorithm')
  return sequence(zero, parameters, bitsOf(info.take(tag.bitString, 'public number'), 'the public key'), priv)
}

function readDsa(bytes: Buffer): KeyObject {
  const values = DerReader.of(bytes, tag.sequence, 'the private key')
  values.take(tag.integer, 'version')
  const [p, q, g] = [values.take(tag.integer, 'p').whole, values.take(tag.integer, 'q').whole, values.take(tag.integer, 'g').whole]
  values.take(tag.integer, 'public number')
  const priv = values.take(tag.integer, 'private number').whole
  const encoded = sequence(zero, sequence(dsaId, sequence(p, q, g)), der(tag.octetString, priv))
  return createPrivateKey({ key: encoded, format: 'der', type: 'pkcs8' })
}

const kinds: Readonly<Record<string, KeyKind>> = { '': 'rsa4096', rsa: 'rsa4096', dsa: 'dsa', ecdsa: 'ecdsa', ed25519: 'ed25519' }

/** The functions by name. */
export const keyFunctions = (newKey: NewKey): Functions =>
  new Map([
    [
      'genPrivateKey',
      templateFunction(['string'], (budget, type) => {
        const kind = Object.hasOwn(kinds, type) ? kinds[type] : undefined
        return kind ? privateKeyPem(makeKey(budget, newKey, kind)) : `Unknown type ${type}`
      }),
    ],
  ])
