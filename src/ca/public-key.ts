/** Public keys of certificates and signing requests, and the checks that a workload's key must pass (docs/certificates.md, Q3). */

import { count } from '../model/counts.ts'
import { bitsOf, DerFault, DerReader, positiveOf, tag } from './der.ts'
import { objects } from './objects.ts'

/** The type and parameters of a key. RSA sizes are in bits; an exponent of more than 32 bits is infinite. */
export type KeyKind =
  | { readonly type: 'rsa'; readonly bits: number; readonly exponent: number; readonly isOdd: boolean }
  | { readonly type: 'ec'; readonly curve: 'P-256' | 'P-384' | 'P-521' }

/** The sizes of RSA keys that are certified, in bits. */
const rsaBits = { least: 2048, most: 4096 }

const curves: readonly (readonly [id: Buffer, name: 'P-256' | 'P-384' | 'P-521', coordinate: number])[] = [
  [objects.p256, 'P-256', 32],
  [objects.p384, 'P-384', 48],
  [objects.p521, 'P-521', 66],
]

/** A `SubjectPublicKeyInfo`. */
export interface PublicKeyInfo {
  readonly kind: KeyKind
  /** In DER, as in the enclosing structure. */
  readonly encoded: Buffer
  /** The public key bits without the algorithm identifier. Key identifiers are computed from them (RFC 7093). */
  readonly bits: Buffer
}

/** Parses a `SubjectPublicKeyInfo`. Throws {@link DerFault} when the bytes are none, or the algorithm is not supported. */
export function readPublicKey(encoded: Buffer): PublicKeyInfo {
  const info = DerReader.of(encoded, tag.sequence, 'the public key')
  const algorithm = info.structure(tag.sequence, 'the algorithm of the public key')
  const id = algorithm.take(tag.oid, 'name').whole
  const bits = bitsOf(info.take(tag.bitString, 'key'), 'the public key')
  info.end()
  if (id.equals(objects.rsaEncryption)) {
    algorithm.take(tag.null, 'parameters')
    algorithm.end()
    return { kind: readRsa(bits), encoded, bits }
  }
  if (!id.equals(objects.ecPublicKey)) throw new DerFault('the public key is neither RSA nor ECDSA')
  const curve = algorithm.take(tag.oid, 'curve').whole
  algorithm.end()
  const found = curves.find(([known]) => known.equals(curve))
  if (!found) throw new DerFault('the public key is on a curve other than P-256 and P-384')
  const [, name, coordinate] = found
  if (bits[0] !== 4 || bits.length !== 1 + 2 * coordinate) throw new DerFault('the public key is not an uncompressed point of its curve')
  return { kind: { type: 'ec', curve: name }, encoded, bits }
}

/** Returns why a workload's key is not certified. Undefined when it is. */
export function weakness({ kind }: PublicKeyInfo): string | undefined {
  if (kind.type === 'ec') return kind.curve === 'P-521' ? 'the public key is on a curve other than P-256 and P-384' : undefined
  if (kind.bits < rsaBits.least || kind.bits > rsaBits.most)
    return `the RSA key has ${count(kind.bits, 'bit')}; ${rsaBits.least} to ${rsaBits.most} are allowed`
  if (!kind.isOdd) return 'the modulus of the RSA key is even'
  // Small exponents have been attacked, and large ones make verification expensive.
  const { exponent } = kind
  return exponent < 65537 || exponent % 2 === 0 || exponent === Number.POSITIVE_INFINITY
    ? 'the exponent of the RSA key is not an odd number from 65537 to 2^32'
    : undefined
}

function readRsa(bits: Buffer): KeyKind {
  const numbers = DerReader.of(bits, tag.sequence, 'the RSA key')
  const modulus = positiveOf(numbers.take(tag.integer, 'modulus'), 'the modulus of the RSA key')
  const exponent = positiveOf(numbers.take(tag.integer, 'exponent'), 'the exponent of the RSA key')
  numbers.end()
  return {
    type: 'rsa',
    bits: modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24,
    exponent: exponent.length > 4 ? Number.POSITIVE_INFINITY : exponent.readUIntBE(0, exponent.length),
    isOdd: ((modulus.at(-1) ?? 0) & 1) === 1,
  }
}
