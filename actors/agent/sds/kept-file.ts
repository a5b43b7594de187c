/** The file in which a workload's secrets outlive a restart of the agent (docs/certificates.md, H1 to H4). */
import { join } from 'node:path'
import { type KeptSecrets, keptText, readKept } from '../../../src/agent/kept-secrets.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { isGone } from '../../runtime/directory-watch.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'

/** Largest file in bytes. */
const fileBytes = 1_048_576
const secretsFile = 'secrets.json'
/** The roots once more, for connections to discovery (`learnedRootsFile`). */
const rootsFile = 'root-cert.pem'

/** Reads what is kept in a directory; undefined when nothing is. Rejects with an Error that names the file when it cannot be used, or others can use it. */
export async function readKeptFile(directory: string): Promise<KeptSecrets | undefined> {
  const path = join(directory, secretsFile)
  try {
    return readKept(await readBoundedFile(path, { most: fileBytes, check: (found) => checkOwnFile(path, found), isNoLink: true }))
  } catch (error) {
    if (isGone(error)) return undefined
    const { message } = error as Error
    throw new Error(message.includes(path) ? message : `${path}: ${message}`)
  }
}

/** Keeps secrets in a directory, which is made for this user alone. Throws an Error that names what cannot be written. */
export function writeKeptFile(directory: string, kept: KeptSecrets): void {
  ownDirectory(directory)
  replaceFile(join(directory, secretsFile), keptText(kept))
  replaceFile(join(directory, rootsFile), kept.roots)
}
