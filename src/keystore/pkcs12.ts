/** Reads and writes PKCS #12 files (RFC 7292): the private keys and certificates of a key store, encrypted by a password. */
import { hash } from 'node:crypto'
import {
  bmpString,
  bmpStringOf,
  encode,
  integer,
  integerOf,
  membersOf,
  octets,
  octetsOf,
  oid,
  oidOf,
  readValue,
  sequence,
  set,
  tagged,
  taggedOctets,
  type Value,
} from './asn1.ts'
import { decrypt, encrypt, IterationBudget, isProtectedBy, protectionOf, shroud } from './encryption.ts'
import { KeyStoreFault, WrongPassword } from './fault.ts'
import { identifiers } from './identifiers.ts'

/** A private key of a file. */
export interface StoredKey {
  /** PKCS #8, DER. */
  readonly key: Buffer
  /** The name by which programs find it. Undefined when it has none. */
  readonly name: string | undefined
}

/** The contents of a file, in its order. */
export interface KeyStore {
  readonly keys: readonly StoredKey[]
  /** Certificates in DER. */
  readonly certificates: readonly Buffer[]
}

/** Makes random bytes. */
type Random = (bytes: number) => Buffer

const whole = 'the PKCS #12 file'

/**
 * Reads a file, which may be BER. Other contents than private keys and X.509 certificates are ignored. Without a password `''` is given,
 * for which both of its encodings are tried. Rejects with {@link KeyStoreFault} when the bytes are no such file, the password is wrong, an
 * algorithm is not supported, or deriving the keys takes too many iterations.
 */
export async function readPkcs12(bytes: Buffer, password: string): Promise<KeyStore> {
  const [version, content, protection] = membersOf(readValue(bytes, whole), whole)
  if (integerOf(version, 'the version') !== 3) throw new KeyStoreFault('it is a PKCS #12 file of another version than 3')
  const [type, wrapped] = membersOf(content, 'its content')
  if (oidOf(type, 'the type of its content') !== identifiers.data)
    throw new KeyStoreFault('it is protected by a certificate and not by a password, which is not supported')
  const safe = octetsOf(membersOf(wrapped, 'its content')[0], 'its content')
  const budget = new IterationBudget()
  // Programs disagree whether a file without a password has an empty one or none.
  const candidates = password === '' ? ['', null] : [password]
  if (protection !== undefined) {
    const fitting = candidates.find((one) => isProtectedBy(protection, safe, one, budget))
    if (fitting === undefined) throw new WrongPassword()
    return readSafe(safe, fitting, budget)
  }
  for (const [index, one] of candidates.entries())
    try {
      return await readSafe(safe, one, budget)
    } catch (error) {
      if (index === candidates.length - 1) throw error
    }
  throw new WrongPassword()
}

async function readSafe(safe: Buffer, password: string | null, budget: IterationBudget): Promise<KeyStore> {
  const found: { keys: StoredKey[]; certificates: Buffer[] } = { keys: [], certificates: [] }
  for (const part of membersOf(readValue(safe, 'its content'), 'its content')) {
    const [type, wrapped] = membersOf(part, 'a part of its content')
    const id = oidOf(type, 'the type of a part')
    const inner = membersOf(wrapped, 'a part of its content')[0]
    if (id === identifiers.data) await readBags(readBagsOf(octetsOf(inner, 'a part of its content')), password, budget, found)
    else if (id === identifiers.encryptedData) {
      const [, algorithm, encrypted] = membersOf(membersOf(inner, 'an encrypted part')[1], 'an encrypted part')
      const plain = await decrypt(algorithm, octetsOf(encrypted, 'an encrypted part', 0), password, budget)
      await readBags(readBagsOf(plain), password, budget, found)
    } else throw new KeyStoreFault('a part of it is encrypted for a certificate and not by a password, which is not supported')
  }
  return found
}

function readBagsOf(plain: Buffer): readonly Value[] {
  try {
    return membersOf(readValue(plain, 'a part of its content'), 'a part of its content')
  } catch {
    // One in 256 wrong passwords gives bytes whose padding is right.
    throw new WrongPassword()
  }
}

async function readBags(
  bags: readonly Value[],
  password: string | null,
  budget: IterationBudget,
  found: { readonly keys: StoredKey[]; readonly certificates: Buffer[] },
): Promise<void> {
  for (const bag of bags) {
    const [type, wrapped, attributes] = membersOf(bag, 'an entry')
    const id = oidOf(type, 'the type of an entry')
    const value = membersOf(wrapped, 'an entry')[0]
    const name = () => nameIn(attributes)
    if (id === identifiers.keyBag && value) found.keys.push({ key: encode(value), name: name() })
    else if (id === identifiers.shroudedKeyBag) {
      const [algorithm, encrypted] = membersOf(value, 'a key')
      found.keys.push({ key: await decrypt(algorithm, octetsOf(encrypted, 'a key'), password, budget), name: name() })
    } else if (id === identifiers.certificateBag) {
      const [kind, certificate] = membersOf(value, 'a certificate')
      if (oidOf(kind, 'the kind of a certificate') !== identifiers.x509Certificate) continue
      found.certificates.push(octetsOf(membersOf(certificate, 'a certificate')[0], 'a certificate'))
    } else if (id === identifiers.nestedBags) await readBags(membersOf(value, 'entries in an entry'), password, budget, found)
  }
}

function nameIn(attributes: Value | undefined): string | undefined {
  if (attributes === undefined) return undefined
  for (const attribute of membersOf(attributes, 'the attributes of an entry')) {
    const [type, values] = membersOf(attribute, 'an attribute')
    if (oidOf(type, 'the type of an attribute') === identifiers.friendlyName) return bmpStringOf(membersOf(values, 'an attribute')[0])
  }
  return undefined
}

/** A private key and its certificate chain under a name. */
export interface KeyEntry {
  readonly name: string
  /** PKCS #8, DER. */
  readonly key: Buffer
  /** Certificates in DER, that of the key first. */
  readonly chain: readonly Buffer[]
}

/** Writes a file with one private key and its chain, as `keytool` and OpenSSL 1.1 and newer read it. */
export async function writeKeyStore({ name, key, chain }: KeyEntry, password: string, random: Random): Promise<Buffer> {
  // The same id at key and certificate says that they belong together.
  const id = attribute(identifiers.localKeyId, octets(hash('sha256', chain[0] ?? key, 'buffer').subarray(0, 20)))
  const named = [attribute(identifiers.friendlyName, bmpString(name)), id]
  const certificates = chain.map((one, index) => certificateBag(one, index === 0 ? named : []))
  const keyBag = sequence(oid(identifiers.shroudedKeyBag), tagged(0, await shroud(key, password, random)), set(...named))
  return fileOf([await encryptedPart(certificates, password, random), dataPart(encode(sequence(keyBag)))], password, random)
}

/**
 * Writes a file with certificates (DER) that programs trust, Java included. Each is named after the first 16 digits of its SHA-256
 * fingerprint: `root-<digits>`.
 */
export async function writeTrustStore(certificates: readonly Buffer[], password: string, random: Random): Promise<Buffer> {
  const trusted = attribute(identifiers.trustedKeyUsage, oid(identifiers.anyExtendedKeyUsage))
  const bags = certificates.map((certificate) => {
    const name = `root-${hash('sha256', certificate).slice(0, 16)}`
    return certificateBag(certificate, [attribute(identifiers.friendlyName, bmpString(name)), trusted])
  })
  return fileOf([await encryptedPart(bags, password, random)], password, random)
}

const attribute = (id: string, value: Value): Value => sequence(oid(id), set(value))

function certificateBag(certificate: Buffer, attributes: readonly Value[]): Value {
  const value = sequence(oid(identifiers.x509Certificate), tagged(0, octets(certificate)))
  const parts = [oid(identifiers.certificateBag), tagged(0, value)]
  return attributes.length === 0 ? sequence(...parts) : sequence(...parts, set(...attributes))
}

const dataPart = (bytes: Buffer): Value => sequence(oid(identifiers.data), tagged(0, octets(bytes)))

async function encryptedPart(bags: readonly Value[], password: string, random: Random): Promise<Value> {
  const { algorithm, encrypted } = await encrypt(encode(sequence(...bags)), password, random)
  const content = sequence(oid(identifiers.data), algorithm, taggedOctets(0, encrypted))
  return sequence(oid(identifiers.encryptedData), tagged(0, sequence(integer(0), content)))
}

function fileOf(parts: readonly Value[], password: string, random: Random): Buffer {
  const safe = encode(sequence(...parts))
  return encode(sequence(integer(3), dataPart(safe), protectionOf(safe, password, random)))
}
