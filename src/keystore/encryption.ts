/**
 * Encryption by a password and protection against changes, as PKCS #12 files have them. Keys of PBES2 and its ciphers are those of
 * `node:crypto`; the key derivation of PKCS #12 and its older ciphers, which `node:crypto` lacks, are those of node-forge.
 */
import { createCipheriv, createDecipheriv, createHmac, pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import forge from 'node-forge'
import { integer, integerOf, membersOf, nothing, octets, octetsOf, oid, oidOf, sequence, type Value } from './asn1.ts'
import { KeyStoreFault, WrongPassword } from './fault.ts'
import { identifiers } from './identifiers.ts'

/**
 * The iterations with which keys are derived from a password in files that are written: as many as OpenSSL uses by default. More would not
 * protect these files, because each stands beside the same key without a password, or holds public data.
 */
const writtenIterations = 2048

/** The maximum number of iterations of all key derivations of one file that is read: a second or two of computing for each kind. */
const mostIterations = { pbkdf2: 5_000_000, pkcs12: 500_000 }

const deriveKey = promisify(pbkdf2)

const ciphers: Readonly<Record<string, { readonly name: string; readonly keyBytes: number }>> = {
  '2.16.840.1.101.3.4.1.2': { name: 'aes-128-cbc', keyBytes: 16 },
  '2.16.840.1.101.3.4.1.22': { name: 'aes-192-cbc', keyBytes: 24 },
  [identifiers.aes256Cbc]: { name: 'aes-256-cbc', keyBytes: 32 },
  '1.2.840.113549.3.7': { name: 'des-ede3-cbc', keyBytes: 24 },
}

const hmacs: Readonly<Record<string, string>> = {
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.8': 'sha224',
  [identifiers.hmacSha256]: 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
}
const defaultHmac = 'sha1'

/** The digests of the protection against changes. */
const digests: Readonly<Record<string, { readonly name: string; readonly make: () => forge.md.MessageDigest }>> = {
  '1.3.14.3.2.26': { name: 'sha1', make: forge.md.sha1.create },
  [identifiers.sha256]: { name: 'sha256', make: forge.md.sha256.create },
  '2.16.840.1.101.3.4.2.2': { name: 'sha384', make: forge.md.sha384.create },
  '2.16.840.1.101.3.4.2.3': { name: 'sha512', make: forge.md.sha512.create },
}

/** The ciphers of PKCS #12 itself that node-forge has: 3DES with three keys, and RC2 with 40 bits. Both derive their keys with SHA-1. */
const pkcs12Ciphers = ['1.2.840.113549.1.12.1.3', '1.2.840.113549.1.12.1.6']
/** How often they run the key derivation: for a key of at most two blocks, and for the initial value. */
const pkcs12Derivations = 3

/** Returns such a cipher for decryption. The types of node-forge leave it out. */
const { getCipher } = (
  forge.pki as unknown as { pbe: { getCipher(id: string, parameters: Value, password: string | null): forge.cipher.BlockCipher } }
).pbe

/** The iterations that the key derivations of one file may still take. */
export class IterationBudget {
  readonly #left = { ...mostIterations }

  /** Subtracts the iterations of one key derivation. Throws {@link KeyStoreFault} when they are none or more than are left. */
  take(kind: keyof typeof mostIterations, count: number): void {
    if (count < 1) throw new KeyStoreFault('a key is derived from the password with no iterations')
    this.#left[kind] -= count
    if (this.#left[kind] < 0)
      throw new KeyStoreFault(`deriving its keys takes more than ${mostIterations[kind].toLocaleString('en')} iterations, which is refused`)
  }
}

/** Encrypts bytes with AES-256-CBC by PBES2, and returns the algorithm with its parameters and the result. `random` makes random bytes. */
export async function encrypt(plain: Buffer, password: string, random: (bytes: number) => Buffer): Promise<{ algorithm: Value; encrypted: Buffer }> {
  const [salt, start] = [random(16), random(16)]
  const key = await deriveKey(password, salt, writtenIterations, 32, 'sha256')
  const cipher = createCipheriv('aes-256-cbc', key, start)
  const derivation = sequence(octets(salt), integer(writtenIterations), sequence(oid(identifiers.hmacSha256), nothing()))
  const parameters = sequence(sequence(oid(identifiers.pbkdf2), derivation), sequence(oid(identifiers.aes256Cbc), octets(start)))
  return { algorithm: sequence(oid(identifiers.pbes2), parameters), encrypted: Buffer.concat([cipher.update(plain), cipher.final()]) }
}

/**
 * Decrypts bytes that were encrypted with `algorithm`. Rejects with {@link KeyStoreFault} when the password is wrong, the algorithm is not
 * supported, or the budget is used up.
 */
export async function decrypt(algorithm: Value | undefined, encrypted: Buffer, password: string | null, budget: IterationBudget): Promise<Buffer> {
  const [name, parameters] = membersOf(algorithm, 'the algorithm of its encryption')
  const id = oidOf(name, 'the algorithm of its encryption')
  if (id === identifiers.pbes2) return decryptPbes2(parameters, encrypted, password ?? '', budget)
  if (!pkcs12Ciphers.includes(id)) throw new KeyStoreFault(`it is encrypted by ${id}, which is not supported`)
  const [salt, count] = membersOf(parameters, 'the parameters of its encryption')
  const iterations = integerOf(count, 'the number of iterations')
  budget.take('pkcs12', pkcs12Derivations * iterations)
  // Made anew, because node-forge reads them only in DER.
  const known = sequence(octets(octetsOf(salt, 'the salt of its encryption')), integer(iterations))
  const cipher = getCipher(id, known, password)
  cipher.update(forge.util.createBuffer(encrypted.toString('latin1')))
  if (!cipher.finish()) throw new WrongPassword()
  return Buffer.from(cipher.output.getBytes(), 'latin1')
}

async function decryptPbes2(parameters: Value | undefined, encrypted: Buffer, password: string, budget: IterationBudget): Promise<Buffer> {
  const [derivation, scheme] = membersOf(parameters, 'the parameters of its encryption')
  const [derivedBy, derivedWith] = membersOf(derivation, 'the key derivation of its encryption')
  const by = oidOf(derivedBy, 'the key derivation of its encryption')
  if (by !== identifiers.pbkdf2) throw new KeyStoreFault(`its keys are derived by ${by}, which is not supported`)
  const [salt, count, ...rest] = membersOf(derivedWith, 'the parameters of its key derivation')
  const hmacAlgorithm = rest.find(({ value }) => Array.isArray(value))
  const hmac = hmacAlgorithm === undefined ? defaultHmac : hmacs[oidOf(membersOf(hmacAlgorithm, 'the digest')[0], 'the digest')]
  if (hmac === undefined) throw new KeyStoreFault('its keys are derived with a digest that is not supported')
  const [schemeId, start] = membersOf(scheme, 'the cipher of its encryption')
  const id = oidOf(schemeId, 'the cipher of its encryption')
  const cipher = ciphers[id]
  if (!cipher) throw new KeyStoreFault(`it is encrypted by ${id}, which is not supported`)
  const iterations = integerOf(count, 'the number of iterations')
  budget.take('pbkdf2', iterations)
  const key = await deriveKey(password, octetsOf(salt, 'the salt of its encryption'), iterations, cipher.keyBytes, hmac)
  try {
    const decipher = createDecipheriv(cipher.name, key, octetsOf(start, 'the initial value of its cipher'))
    return Buffer.concat([decipher.update(encrypted), decipher.final()])
  } catch (error) {
    throw error instanceof KeyStoreFault ? error : new WrongPassword()
  }
}

/** Returns the `MacData` that protects bytes against changes by a password, with SHA-256. */
export function protectionOf(bytes: Buffer, password: string, random: (bytes: number) => Buffer): Value {
  const salt = random(16)
  const sum = sumOf(bytes, password, salt, writtenIterations, identifiers.sha256)
  return sequence(sequence(sequence(oid(identifiers.sha256), nothing()), octets(sum)), octets(salt), integer(writtenIterations))
}

/**
 * Whether `MacData` protects these bytes by this password. Throws {@link KeyStoreFault} when its algorithm is not supported or the budget is
 * used up.
 */
export function isProtectedBy(protection: Value, bytes: Buffer, password: string | null, budget: IterationBudget): boolean {
  const [info, saltValue, count] = membersOf(protection, 'its protection against changes')
  const [algorithm, sumValue] = membersOf(info, 'its protection against changes')
  const id = oidOf(membersOf(algorithm, 'the digest of its protection')[0], 'the digest of its protection')
  if (!digests[id]) throw new KeyStoreFault(`it is protected against changes by ${id}, which is not supported`)
  const iterations = count === undefined ? 1 : integerOf(count, 'the number of iterations')
  budget.take('pkcs12', iterations)
  const sum = sumOf(bytes, password, octetsOf(saltValue, 'the salt of its protection'), iterations, id)
  const given = octetsOf(sumValue, 'the sum of its protection')
  return given.length === sum.length && timingSafeEqual(given, sum)
}

/** The purpose of a derived key: that of the protection against changes. */
const forProtection = 3

function sumOf(bytes: Buffer, password: string | null, salt: Buffer, iterations: number, digest: string): Buffer {
  const { name, make } = digests[digest] as (typeof digests)[string]
  const md = make()
  const key = forge.pkcs12.generateKey(password, forge.util.createBuffer(salt.toString('latin1')), forProtection, iterations, md.digestLength, md)
  return createHmac(name, Buffer.from(key.getBytes(), 'latin1')).update(bytes).digest()
}

/** Returns the `EncryptedPrivateKeyInfo` of a key in PKCS #8. */
export async function shroud(key: Buffer, password: string, random: (bytes: number) => Buffer): Promise<Value> {
  const { algorithm, encrypted } = await encrypt(key, password, random)
  return sequence(algorithm, octets(encrypted))
}
