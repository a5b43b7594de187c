/**
 * Random secrets that every push queue and writer of a process uses. They are kept in the state directory or in a Secret, so that a process
 * that starts again, and replicas that share the place, give equal content equal versions: a proxy that reconnects is sent nothing that it
 * has.
 */
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ProcessSecrets } from '../../../protocols/messages/config.ts'
import { secretNames, secretTypes } from '../../../src/names/secret-names.ts'
import { isGone, readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { createOnce } from '../../runtime/durable-file.ts'
import { checkOwnFile } from '../../runtime/own-directory.ts'
import { pause, within } from '../../runtime/timers.ts'
import type { CallSecret } from '../cluster/secret-calls.ts'

/** The name of the file in the state directory (docs/certificates.md, K7). */
const secretsFile = 'version-secrets.json'

/** The secrets of a process, and why they are not those of the state; undefined if they are, or if there is no such directory. */
export interface KeptSecrets {
  readonly secrets: ProcessSecrets
  readonly warning: string | undefined
}

/** Reads the secrets from a state directory, or creates them there. Without such a directory, or if it cannot be used, they last as long as the process. */
export function keptSecrets(directory: string): KeptSecrets {
  const path = join(resolve(directory), secretsFile)
  if (!existsSync(directory)) return { secrets: newSecrets(), warning: undefined }
  try {
    return { secrets: read(path) ?? create(path), warning: undefined }
  } catch (error) {
    return unkept((error as Error).message)
  }
}

/** How often a Secret is asked for whose API server does not answer, and the pause before that in milliseconds. */
const attempts = { most: 4, pauseMs: 1000 }

/** The longest time that a start waits for the Secret, in milliseconds: nothing is served and logged before. */
const longestMs = 5000

/** Like {@link keptSecrets}, with a Secret of a namespace. `call` makes one call to the API server. */
export async function sharedSecrets(place: { readonly call: CallSecret; readonly namespace: string }): Promise<KeptSecrets> {
  const reading = fromSecret(place)
  let found: KeptSecrets | undefined
  await within(
    longestMs,
    reading.then((secrets) => (found = secrets)),
  )
  return found ?? unkept(`the API server has not answered within ${longestMs / 1000} s`)
}

async function fromSecret({ call, namespace }: { readonly call: CallSecret; readonly namespace: string }): Promise<KeptSecrets> {
  const { versions: name } = secretNames
  const where = `Secret ${namespace}/${name}`
  const made = newSecrets()
  const data = { [secretsFile]: Buffer.from(JSON.stringify(made)).toString('base64') }
  const secret = { name, type: secretTypes.state, data, resourceVersion: '' }
  for (let attempt = 1; ; attempt++) {
    const found = await call({ verb: 'get', name })
    const answer = found.outcome === 'missing' ? await call({ verb: 'create', secret }) : found
    if (answer.outcome === 'done') {
      try {
        return { secrets: secretsOf(Buffer.from(answer.secret.data[secretsFile] ?? '', 'base64').toString('utf8'), where), warning: undefined }
      } catch (error) {
        return unkept((error as Error).message)
      }
    }
    // A conflict: another replica has made it meanwhile.
    const isOver = attempt === attempts.most || (answer.outcome === 'failed' && !answer.mayPass)
    if (isOver) return unkept(answer.outcome === 'failed' ? answer.reason : `${where}: is changed by others all the time`)
    if (answer.outcome === 'failed') await pause(attempts.pauseMs)
  }
}

function unkept(reason: string): KeptSecrets {
  const consequence = 'after the next start, proxies that reconnect are sent route configurations and name tables again that they have'
  return { secrets: newSecrets(), warning: `the secrets of versions are not kept: ${reason}; ${consequence}` }
}

/** If several processes create the file at the same time, all use the first. */
function create(path: string): ProcessSecrets {
  createOnce(path, JSON.stringify(newSecrets()))
  const created = read(path)
  if (!created) throw new Error(`${path}: was removed while it was created`)
  return created
}

/** Undefined if there is no such file. Throws an Error that names the file and does not quote it. */
function read(path: string): ProcessSecrets | undefined {
  try {
    return secretsOf(readBoundedFileSync(path, { check: checkOwnFile, refusesLinks: true }), path)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

function secretsOf(text: string, path: string): ProcessSecrets {
  let found: Partial<ProcessSecrets> | null = null
  try {
    found = JSON.parse(text)
  } catch {
    // The library's error may quote the file.
  }
  const { versionKey, lockedKeys } = found ?? {}
  if (typeof versionKey !== 'string' || !/^[0-9a-f]{64}$/.test(versionKey) || !isKeySet(lockedKeys))
    throw new Error(`${path}: does not hold the secrets of versions: remove it to have new ones made`)
  return { versionKey, lockedKeys }
}

function isKeySet(text: unknown): text is string {
  try {
    return typeof text === 'string' && JSON.parse(text).keys.length === 1
  } catch {
    return false
  }
}

function newSecrets(): ProcessSecrets {
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
