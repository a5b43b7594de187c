/** What is made by chance when the process starts, and handed to every push queue that it starts. */
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import type { ProcessSecrets } from '../../protocols/messages/config.ts'

/** Makes the secrets of a process. */
export function processSecrets(): ProcessSecrets {
  return { versionKey: randomBytes(32).toString('hex'), lockedKeys: lockedKeySet() }
}

/** A public key whose private half nobody has (docs/resources.md, A3): tokens of an issuer whose keys cannot be had are refused. */
function lockedKeySet(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: randomUUID() }] })
}
