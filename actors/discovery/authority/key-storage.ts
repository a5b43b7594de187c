/** Private keys of the certificate authority, as files. Only signer threads and the `ca` command load this module: no other thread sees a private key. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncDirectory, writeNewFile } from '../../runtime/durable-file.ts'
import { checkOwnFile } from '../../runtime/own-directory.ts'
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
    const found = fstatSync(file)
    checkOwnFile(path, found)
    if (found.size > largestKey) throw new Error(`${path}: has more than ${largestKey} bytes`)
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
