/** Random secrets that are created once per process and passed to every push queue that it starts. */
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import type { ProcessSecrets } from '../../protocols/messages/config.ts'

/** Creates the secrets of a process. */
export function processSecrets(): ProcessSecrets {
  return { versionKey: randomBytes(32).toString('hex'), lockedKeys: lockedKeySet() }
}

/**
 * A key set whose private key is discarded (docs/resources.md, A3): tokens of an issuer whose keys are unavailable are checked against
 * it, and so are refused.
 */
function lockedKeySet(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: randomUUID() }] })
}
