/**
 * Key stores that `pilot-discovery ca` imports and exports (docs/certificates.md, J1 to J5). Runs in the process of the command. The library
 * for them is loaded when a file is one.
 */
import { createPrivateKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { pemOf, readPem } from '../../../src/identity/pem.ts'
import { passwordOf, passwordToWriteOf } from '../../../src/keystore/password.ts'
import { inFile, readBoundedBytes, readBoundedFile } from '../../runtime/bounded-file.ts'

/** An authority from a key store. Certificates are PEM. */
export interface StoredAuthorityFile {
  readonly key: KeyObject
  /** The certificate of the key. */
  readonly certificate: string
  /** All other certificates, in the order of the file. */
  readonly others: string
  /** Those of all certificates that are self-signed. */
  readonly roots: string
}

/**
 * Reads a PKCS #12 file with one private key. The password is the first line of `passwordFile`; none when that is empty. Rejects with an
 * Error that says what is wrong; faults of the content are without the name of the file.
 */
export async function readKeyStore(path: string, passwordFile: string): Promise<StoredAuthorityFile> {
  const bytes = await readBoundedBytes(path)
  const password = passwordFile === '' ? '' : await readPassword(passwordFile, passwordOf)
  const { readPkcs12 } = await import('../../../src/keystore/pkcs12.ts')
  const { WrongPassword } = await import('../../../src/keystore/fault.ts')
  const { keys, certificates } = await readPkcs12(bytes, password).catch((error: unknown) => {
    if (!(error instanceof WrongPassword) || passwordFile !== '') throw error
    throw new Error('it has a password, which --password-file has to name')
  })
  const [stored, ...more] = keys
  if (!stored) throw new Error('it holds no private key')
  if (more.length > 0)
    throw new Error(`it holds ${keys.length} private keys (${keys.map(({ name }) => JSON.stringify(name ?? '')).join(', ')}), not one`)
  const key = privateKeyOf(stored.key)
  const read = certificates.map((one, index) => certificateOf(one, index + 1))
  const own = read.find((one) => one.checkPrivateKey(key))
  if (!own) throw new Error('it holds no certificate of its private key')
  const textOf = (some: readonly X509Certificate[]) => some.map(({ raw }) => pemOf('CERTIFICATE', raw)).join('')
  return {
    key,
    certificate: textOf([own]),
    others: textOf(read.filter((one) => one !== own)),
    roots: textOf(read.filter((one) => one.checkIssued(one) && one.verify(one.publicKey))),
  }
}

function privateKeyOf(key: Buffer): KeyObject {
  try {
    return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  } catch {
    // The library's error may quote the key, so it is not passed on.
    throw new Error('it holds a private key of an unknown kind')
  }
}

function certificateOf(bytes: Buffer, number: number): X509Certificate {
  try {
    return new X509Certificate(bytes)
  } catch (error) {
    throw new Error(`certificate ${number}: ${(error as Error).message}`)
  }
}

/** The first byte of a file in DER: that of a sequence. */
const sequenceByte = 0x30

/**
 * Reads the certificates of a file in PEM, or in PKCS #7 (DER or PEM), as a text in PEM. Rejects with an Error that says what is wrong;
 * faults of the content are without the name of the file.
 */
export async function readCertificatesFile(path: string): Promise<string> {
  const bytes = await readBoundedBytes(path)
  const text = bytes.toString('utf8')
  const held = bytes[0] === sequenceByte ? bytes : readPem(text, (label) => label === 'PKCS7' || label === 'CMS')[0]?.der
  if (held === undefined) return text
  const { readPkcs7 } = await import('../../../src/keystore/pkcs7.ts')
  return readPkcs7(held)
    .map((one) => pemOf('CERTIFICATE', one))
    .join('')
}

/**
 * Returns the bytes of a file with roots (PEM each): PKCS #12 with the password of `passwordFile` when its name ends in `.p12` or `.pfx`,
 * PKCS #7 when it ends in `.p7b` or `.p7c`. Rejects with an Error that names a flag for another ending, and for a password that is missing,
 * empty, unusable in Java or without effect.
 */
export async function trustStoreOf(path: string, roots: readonly string[], passwordFile: string): Promise<Buffer> {
  const certificates = roots.map((root) => new X509Certificate(root).raw)
  if (/[.]p7[bc]$/i.test(path)) {
    if (passwordFile !== '') throw new Error('--password-file has no effect: a PKCS #7 file has no password')
    const { writePkcs7 } = await import('../../../src/keystore/pkcs7.ts')
    return writePkcs7(certificates)
  }
  if (!/[.](p12|pfx)$/i.test(path)) throw new Error(`--truststore: ${path} ends neither in .p12 or .pfx (PKCS #12) nor in .p7b or .p7c (PKCS #7)`)
  if (passwordFile === '') throw new Error('--password-file is needed: a PKCS #12 file has a password')
  const password = await readPassword(passwordFile, passwordToWriteOf)
  const { writeTrustStore } = await import('../../../src/keystore/pkcs12.ts')
  return writeTrustStore(certificates, password, randomBytes)
}

async function readPassword(path: string, password: (text: string) => string): Promise<string> {
  const text = await readBoundedFile(path)
  return inFile(path, () => password(text))
}
