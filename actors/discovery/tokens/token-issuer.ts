/** Issues workload tokens signed with a key of this machine (docs/identity.md, K6 and K10), for `pilot-discovery token`. */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { lstatSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { calculateJwkThumbprint, exportJWK, type JWK, SignJWT } from 'jose'
import type { TokenOrder } from '../../../protocols/messages/identity.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { localIssuer, localKeysFile, tokenAudiences } from '../../../src/identity/token-rules.ts'
import { isGone, readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { createOnce, syncDirectory, writeNewFile } from '../../runtime/durable-file.ts'
import { ownDirectory } from '../../runtime/own-directory.ts'
import { readPrivateKey } from '../own-keys/private-key-file.ts'

const keyFile = 'token-key.pem'

/** Issues a token and, if requested, writes it to a file. Throws an Error that names the file or variable and the reason. */
export async function issueToken({ namespace, account, audience, ttlMs, output }: TokenOrder): Promise<string> {
  const { features } = readFeatures(process.env)
  const directory = resolve(features.MESHD_CA_STATE_DIR)
  ownDirectory(directory)
  const key = keyOf(directory)
  const { x = '', y = '' } = await exportJWK(createPublicKey(key))
  const jwk: JWK = { kty: 'EC', crv: 'P-256', x, y }
  const kid = await calculateJwkThumbprint(jwk)
  publish(join(directory, localKeysFile), JSON.stringify({ keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] }))
  const now = Math.floor(wallClockMs() / 1000)
  const token = await new SignJWT({ sub: `system:serviceaccount:${namespace}:${account}` })
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'JWT' })
    .setIssuer(localIssuer)
    .setAudience(audience === '' ? (tokenAudiences(features.TOKEN_AUDIENCES)[0] as string) : audience)
    .setIssuedAt(now)
    .setExpirationTime(now + Math.ceil(ttlMs / 1000))
    .sign(key)
  if (output !== '') replaceWhole(resolve(output), `${token}\n`)
  return token
}

/**
 * Returns the key of the directory, which is created if there is none. If several processes create one at the same time, all use the
 * first.
 */
function keyOf(directory: string): KeyObject {
  const path = join(directory, keyFile)
  if (!isThere(path)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    createOnce(path, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
  }
  const key = within(() => readPrivateKey(path, 'own'))
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error(`${path}: is not a P-256 key in PEM: remove it to have another made`)
  return key
}

/** Adds the remedy to errors about unusable keys. */
function within(read: () => KeyObject): KeyObject {
  try {
    return read()
  } catch (error) {
    throw new Error(`${(error as Error).message}; remove it to have another key made`)
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path).isFile()
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** Writes the public key where the service looks for it, unless it is there already. */
function publish(path: string, keys: string): void {
  try {
    if (readBoundedFileSync(path) === keys) return
  } catch {
    // The file is missing or unreadable, and is written again.
  }
  replaceWhole(path, keys)
}

/** Replaces a file atomically; safe if several processes do so at the same time. */
function replaceWhole(path: string, content: string): void {
  const next = `${path}.${randomUUID()}`
  writeNewFile(next, content)
  try {
    renameSync(next, path)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
  syncDirectory(dirname(path))
}
