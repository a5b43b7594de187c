/** Reads private keys from files: the one way for all of them, so that no error quotes a key. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { Stats } from 'node:fs'
import { readBoundedFileSync } from '../runtime/bounded-file.ts'
import { checkOwnFile } from '../runtime/own-directory.ts'

/** Largest file of a key that is read, in bytes. */
const largestKey = 65_536

/**
 * Reads a private key, PEM without a password. Throws an Error that names the file, and nothing of what is in it, when it cannot be read, is larger than 64 KiB or
 * holds none. One that this program has made (`own`) must be no link, and a file that nobody but this user can use; one that is given (`given`)
 * may be a link, as in a volume that is mounted, and have any mode.
 */
export function readPrivateKey(path: string, whose: 'own' | 'given'): KeyObject {
  const check = (found: Stats) => {
    if (whose === 'own') checkOwnFile(path, found)
    if (!found.isFile() || found.size > largestKey) throw new Error(`${path}: is not a file of at most ${largestKey} bytes`)
  }
  const pem = readBoundedFileSync(path, { most: largestKey, check, isNoLink: whose === 'own' })
  try {
    return createPrivateKey(pem)
  } catch {
    // What the library says of it may quote the file.
    throw new Error(`${path}: holds no private key in PEM, or one that is encrypted`)
  }
}
