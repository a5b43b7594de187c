/** JSON Web Keys by description: keys that Envoy ignores, and keys that it accepts. */
import { generateKeyPairSync } from 'node:crypto'

const keyOf = (type: 'rsa' | 'ec' | 'ed25519' | 'ed448' | 'x25519', options: object = {}) =>
  generateKeyPairSync(type as 'ec', options as { namedCurve: string }).publicKey.export({ format: 'jwk' })
const encoded = (bytes: number[] | Buffer) => Buffer.from(bytes).toString('base64url')
/** A modulus of `bits` bits, which is odd. */
const modulus = (bits: number) => encoded([0x80, ...new Array<number>(bits / 8 - 2).fill(0x55), 1])

const rsa = keyOf('rsa', { modulusLength: 2048 })
const p256 = keyOf('ec', { namedCurve: 'P-256' })
const p384 = keyOf('ec', { namedCurve: 'P-384' })
const p521 = keyOf('ec', { namedCurve: 'P-521' })
const ed25519 = keyOf('ed25519')
const even = Buffer.from(rsa.n as string, 'base64url')
even[even.length - 1] = (even.at(-1) as number) & 0xfe

/** Envoy rejects a key set that contains only such keys. */
export const unusableKeys: Readonly<Record<string, unknown>> = {
  'RSA for ES256': { ...rsa, alg: 'ES256' },
  'RSA for HS256': { ...rsa, alg: 'HS256' },
  'RSA for none': { ...rsa, alg: 'none' },
  'RSA in standard base64': { ...rsa, n: `+/${(rsa.n as string).slice(2)}` },
  'RSA with exponent 1': { ...rsa, e: 'AQ' },
  'RSA with exponent 0': { ...rsa, e: 'AA' },
  'RSA with an even exponent': { ...rsa, e: encoded([1, 0, 2]) },
  'RSA with an exponent of 33 bits': { ...rsa, e: encoded([1, 0, 0, 0, 1]) },
  'RSA with a huge exponent': { ...rsa, e: modulus(2048) },
  'RSA without an exponent': { ...rsa, e: '' },
  'RSA of 256 bits': { kty: 'RSA', e: 'AQAB', n: modulus(256) },
  'RSA of over 16 kbit': { kty: 'RSA', e: 'AQAB', n: modulus(16_392) },
  'RSA with an even modulus': { ...rsa, n: encoded(even) },
  'RSA without a modulus': { kty: 'RSA', e: 'AQAB' },
  'RSA as a certificate alone': { kty: 'RSA', x5c: ['MIIB'] },
  'RSA with a number as modulus': { ...rsa, n: 1 },
  'P-256 for ES384': { ...p256, alg: 'ES384' },
  'P-256 for RS256': { ...p256, alg: 'RS256' },
  'P-256 as P-384': { ...p256, crv: 'P-384' },
  'P-256 beside its curve': { ...p256, y: p256.x },
  'P-256 without y': { kty: 'EC', crv: 'P-256', x: p256.x },
  'P-384 for ES256': { ...p384, alg: 'ES256' },
  'EC of an unknown curve': keyOf('ec', { namedCurve: 'secp256k1' }),
  'EC for an agreement': { ...p256, alg: 'ECDH-ES' },
  'OKP for RS256': { ...ed25519, alg: 'RS256' },
  'OKP for ES256': { ...ed25519, alg: 'ES256' },
  'OKP of another curve': keyOf('ed448'),
  'OKP for an agreement': keyOf('x25519'),
  'OKP that is short': { ...ed25519, x: encoded([1, 2, 3]) },
  'of an unknown type': { kty: 'X' },
  'of no type': { n: rsa.n, e: rsa.e },
  'no mapping': 'x',
  null: null,
  'with a kid that is a number': { ...rsa, kid: 1 },
}

/** Envoy accepts a key set that contains one of these keys. */
export const usableKeys: Readonly<Record<string, unknown>> = {
  RSA: rsa,
  'RSA for RS256': { ...rsa, alg: 'RS256', use: 'sig', kid: 'a' },
  'RSA for PS512': { ...rsa, alg: 'PS512' },
  'RSA with exponent 3': { ...rsa, e: 'Aw' },
  'RSA of 1,024 bits': keyOf('rsa', { modulusLength: 1024 }),
  'RSA of 16 kbit': { kty: 'RSA', e: 'AQAB', n: modulus(16_384) },
  'P-256': p256,
  'P-256 for ES256': { ...p256, alg: 'ES256' },
  'P-384': p384,
  'P-521 for ES512': { ...p521, alg: 'ES512' },
  'P-256 with padding': { ...p256, x: `${p256.x}=` },
  Ed25519: ed25519,
  'Ed25519 for EdDSA': { ...ed25519, alg: 'EdDSA' },
}
