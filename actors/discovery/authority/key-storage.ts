/** Private keys of the certificate authority, as files. Only signer threads and the `ca` command load this module: no other thread sees a private key. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncDirectory, writeNewFile } from './durable-file.ts'
import type { KeyPlace } from './storage.ts'

/** Largest file of a key that is read, in bytes. */
const largestKey = 65_536

/** The path of the key of a certificate, by the certificate's id. */
export function keyPath({ directory }: KeyPlace, id: string): string {
  if (!/^[0-9a-f]{64}$/.test(id)) throw new Error(`${JSON.stringify(id.slice(0, 100))} is not the id of a certificate`)
  return join(directory, `${id}.pem`)
}

/** Stores the key of a certificate (PKCS #8, PEM), readable for this user alone and durable when the call returns. A key that is there is never replaced: throws. */
export function storeKey(place: KeyPlace, id: string, key: KeyObject): void {
  const path = keyPath(place, id)
  writeNewFile(path, key.export({ type: 'pkcs8', format: 'pem' }) as string)
  syncDirectory(dirname(path))
}

/**
 * Reads the key of a certificate. Throws an Error that names the file, and nothing of what is in it, when it is not there, is not a
 * file of this user, can be read or written by others, or holds no private key.
 */
export function readKey(place: KeyPlace, id: string): KeyObject {
  const path = keyPath(place, id)
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const { mode, uid, size } = fstatSync(file)
    const fault = keyFileFault({ isFile: (mode & constants.S_IFMT) === constants.S_IFREG, mode, uid, size }, process.getuid?.())
    if (fault !== undefined) throw new Error(`${path}: ${fault}`)
    const pem = readFileSync(file, 'utf8')
    try {
      return createPrivateKey(pem)
    } catch {
      // What the library says of it may quote the file.
      throw new Error(`${path}: holds no private key in PEM`)
    }
  } finally {
    closeSync(file)
  }
}

interface KeyFile {
  readonly isFile: boolean
  readonly mode: number
  readonly uid: number
  readonly size: number
}

/** Why a file must not be used as a private key; undefined when it may. */
function keyFileFault({ isFile, mode, uid, size }: KeyFile, user: number | undefined): string | undefined {
  if (!isFile) return 'is not a regular file'
  if (size > largestKey) return `has more than ${largestKey} bytes`
  // Systems without users have no such modes either.
  if (user === undefined) return undefined
  if (uid !== user) return `belongs to user ${uid}, not to user ${user} that this process runs as`
  const open = mode & 0o077
  return open === 0
    ? undefined
    : `others can use it (mode ${(mode & 0o777).toString(8).padStart(4, '0')}): chmod 600 it, and make a new key if someone may have read it`
}
