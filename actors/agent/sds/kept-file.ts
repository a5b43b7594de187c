/** The file that preserves a workload's secrets over a restart of the agent (docs/certificates.md, H1 to H4). */
import { join } from 'node:path'
import { type KeptSecrets, keptText, readKept } from '../../../src/agent/kept-secrets.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { isGone } from '../../runtime/directory-watch.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'

/** The maximum size of the file, in bytes. */
const fileBytes = 1_048_576
const secretsFile = 'secrets.json'
/** A copy of the roots for connections to discovery (`learned` of `RootsSource`). */
const rootsFile = 'root-cert.pem'

/**
 * Reads the stored secrets. Undefined when there are none. Rejects with an Error that names the file when it cannot be used or other users
 * have access to it.
 */
export async function readKeptFile(directory: string): Promise<KeptSecrets | undefined> {
  const path = join(directory, secretsFile)
  try {
    return readKept(await readBoundedFile(path, { most: fileBytes, check: (found) => checkOwnFile(path, found), refusesLinks: true }))
  } catch (error) {
    if (isGone(error)) return undefined
    const { message } = error as Error
    throw new Error(message.includes(path) ? message : `${path}: ${message}`)
  }
}

/** Stores secrets. The directory is created with access for this user only. Throws an Error that names what cannot be written. */
export function writeKeptFile(directory: string, kept: KeptSecrets): void {
  ownDirectory(directory)
  replaceFile(join(directory, secretsFile), keptText(kept))
  replaceFile(join(directory, rootsFile), kept.roots)
}
