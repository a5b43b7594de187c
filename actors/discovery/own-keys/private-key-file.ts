/** The only functions that read private keys in PEM from files and Secrets, so that no error message quotes a key. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { checkOwnFile } from '../../runtime/own-directory.ts'

/** Maximum size of a key file, in bytes. */
const largestKey = 65_536

/**
 * Reads a private key in PEM without a password. Throws an Error that names the file, but does not quote it, when the file cannot be
 * read, is larger than 64 KiB or holds no key. `own`: a key created by this program must be no symbolic link, and accessible to this user
 * only. `given`: a key provided by the user may be a symbolic link, as in mounted volumes, and may have any mode.
 */
export function readPrivateKey(path: string, whose: 'own' | 'given'): KeyObject {
  const pem = readBoundedFileSync(path, { most: largestKey, ...(whose === 'own' ? { check: checkOwnFile, refusesLinks: true } : {}) })
  return privateKeyOf(pem, path)
}

/** Returns the private key of a text in PEM without a password. Throws an Error that names where it is from, and does not quote it. */
export function privateKeyOf(pem: string, from: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // The library's error may quote the text, so it is not passed on.
    throw new Error(`${from}: holds no private key in PEM, or one that is encrypted`)
  }
}
