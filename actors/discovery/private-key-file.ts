/** The only function that reads private keys in PEM from files, so that no error message quotes a key. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readBoundedFileSync } from '../runtime/bounded-file.ts'
import { checkOwnFile } from '../runtime/own-directory.ts'

/** Maximum size of a key file, in bytes. */
const largestKey = 65_536

/**
 * Reads a private key in PEM without a password. Throws an Error that names the file, but does not quote it, when the file cannot be
 * read, is larger than 64 KiB or holds no key. `own`: a key created by this program must be no symbolic link, and accessible to this user
 * only. `given`: a key provided by the user may be a symbolic link, as in mounted volumes, and may have any mode.
 */
export function readPrivateKey(path: string, whose: 'own' | 'given'): KeyObject {
  const pem = readBoundedFileSync(path, { most: largestKey, ...(whose === 'own' ? { check: checkOwnFile, refusesLinks: true } : {}) })
  try {
    return createPrivateKey(pem)
  } catch {
    // The library's error may quote the file, so it is not passed on.
    throw new Error(`${path}: holds no private key in PEM, or one that is encrypted`)
  }
}
