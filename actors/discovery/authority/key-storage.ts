/**
 * Stores the private keys of the certificate authority as files. Loaded only by signer threads and the `ca` command: no other thread sees
 * a private key.
 */
import type { KeyObject } from 'node:crypto'
import { dirname, join } from 'node:path'
import { syncDirectory, writeNewFile } from '../../runtime/durable-file.ts'
import { readPrivateKey } from '../own-keys/private-key-file.ts'
import type { KeyPlace } from './storage.ts'

/** A directory of keys. */
export type KeyDirectory = Extract<KeyPlace, { readonly kind: 'directory' }>

/** The path of the key of a certificate, by the certificate's id. Throws when the id is malformed. */
export function keyPath({ directory }: KeyDirectory, id: string): string {
  if (!/^[0-9a-f]{64}$/.test(id)) throw new Error(`${JSON.stringify(id.slice(0, 100))} is not the id of a certificate`)
  return join(directory, `${id}.pem`)
}

/**
 * Stores the key of a certificate (PKCS #8, PEM), readable by this user only and durable when the call returns. Throws when a key is
 * stored already: it is never replaced.
 */
export function storeKey(place: KeyDirectory, id: string, key: KeyObject): void {
  const path = keyPath(place, id)
  writeNewFile(path, key.export({ type: 'pkcs8', format: 'pem' }) as string)
  syncDirectory(dirname(path))
}

/**
 * Reads the key of a certificate, whose file must be accessible to this user only. Throws an Error that names the file and does not
 * contain its content.
 */
export function readKey(place: KeyDirectory, id: string): KeyObject {
  return readPrivateKey(keyPath(place, id), 'own')
}
