/**
 * Hostile certificate chains: cheap to send and costly to verify. OpenSSL builds and checks a whole chain in one call, and goes on after
 * errors, so nothing in them has to be signed. A TLS client presents such a chain to a server, or a TLS server to its clients.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { bits, der, oid, positive, sequence, tag, time } from '../src/ca/der.ts'
import { pemOf } from '../src/identity/pem.ts'

/** The shape of a chain. */
export interface ChainShape {
  /** Number of names (DNS, one letter) of the leaf. */
  readonly names: number
  /** Number of intermediate authorities. OpenSSL follows at most 100. */
  readonly authorities: number
  /** Number of excluded name constraints of each authority. */
  readonly constraints: number
  /** Size of the RSA keys and signatures of the authorities in bits, at most 16384; undefined for P-256. */
  readonly rsaBits?: number
}

/**
 * The shapes with the highest cost. OpenSSL compares all names of the leaf with all constraints of an authority, unless these are more than
 * 2^20 comparisons, and accepts a message with a chain of up to 100 KB.
 */
export const costlyShapes = {
  /** 88 KB, 0.7 to 1.2 s of CPU. */
  names: { names: 12_000, authorities: 72, constraints: 82 },
  /** 93 KB, about 0.7 s of CPU. */
  exponents: { names: 0, authorities: 74, constraints: 0, rsaBits: 3072 },
  /** 88 KB, 0.15 s of CPU: the largest keys cost less a byte than those with the largest exponents. */
  keys: { names: 0, authorities: 20, constraints: 0, rsaBits: 16_384 },
} as const satisfies Record<string, ChainShape>

const signatures = { ecdsa: oid('1.2.840.10045.4.3.2'), rsa: oid('1.2.840.113549.1.1.11') }
const extensions = { names: oid('2.5.29.17'), basic: oid('2.5.29.19'), constraints: oid('2.5.29.30') }
const commonName = oid('2.5.4.3')
const rsaKey = sequence(oid('1.2.840.113549.1.1.1'), der(tag.null))
const hourMs = 3_600_000

/** Returns a chain and the key of its leaf in PEM, valid from an hour before to an hour after the Unix time `now` in milliseconds. */
export function costlyChain(shape: ChainShape, now: number): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const names = sequence(...Array.from({ length: shape.names }, () => dnsName))
  const leaf = certificate(0, spki, shape, now, shape.names > 0 ? [extension(extensions.names, names)] : [])
  const authorities = Array.from({ length: shape.authorities }, (_, index) => {
    const key = shape.rsaBits === undefined ? spki : rsaOf(shape.rsaBits)
    const basic = extension(extensions.basic, sequence(der(tag.boolean, Buffer.from([0xff]))))
    return certificate(index + 1, key, shape, now, shape.constraints > 0 ? [basic, constrained(shape.constraints)] : [basic])
  })
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: [leaf, ...authorities].map((each) => pemOf('CERTIFICATE', each)).join(''),
  }
}

/** A GeneralName of type dNSName. The constraint has another letter, so that no name matches any constraint. */
const dnsName = der(0x82, Buffer.from('a'))
const excludedName = sequence(der(0x82, Buffer.from('b')))

const constrained = (count: number): Buffer =>
  extension(extensions.constraints, sequence(der(0xa1, ...Array.from({ length: count }, () => excludedName))))

const extension = (id: Buffer, value: Buffer): Buffer => sequence(id, der(tag.octetString, value))

/**
 * An RSA key whose modulus is a random odd number, with the largest exponent that OpenSSL accepts: of any size for keys of up to 3072 bits,
 * otherwise of 64 bits.
 */
function rsaOf(size: number): Buffer {
  const modulus = randomBytes(size / 8)
  modulus[0] = 0xff
  modulus[modulus.length - 1] = 0xff
  const exponent = Buffer.alloc(size > 3072 ? 8 : size / 8 - 1, 0xff)
  return sequence(rsaKey, bits(sequence(positive(modulus), positive(exponent))))
}

/** A version 3 certificate with the number `index` in its chain, issued by the next one, with a random signature. */
function certificate(index: number, spki: Buffer, { rsaBits }: ChainShape, now: number, extended: readonly Buffer[]): Buffer {
  const algorithm = rsaBits === undefined ? sequence(signatures.ecdsa) : sequence(signatures.rsa, der(tag.null))
  const validity = sequence(time(now - hourMs), time(now + hourMs))
  const body = sequence(
    der(0xa0, positive(Buffer.from([2]))),
    positive(Buffer.from([index + 1])),
    algorithm,
    nameOf(index + 1),
    validity,
    nameOf(index),
    spki,
    ...(extended.length > 0 ? [der(0xa3, sequence(...extended))] : []),
  )
  return sequence(body, algorithm, bits(rsaBits === undefined ? ecdsaSignature() : rsaSignature(rsaBits)))
}

const nameOf = (index: number): Buffer => sequence(der(tag.set, sequence(commonName, der(tag.utf8String, Buffer.from(`${index}`)))))

const ecdsaSignature = (): Buffer => sequence(positive(randomBytes(32)), positive(randomBytes(32)))

function rsaSignature(size: number): Buffer {
  const signature = randomBytes(size / 8)
  // Below the modulus.
  signature[0] = 0x7f
  return signature
}
