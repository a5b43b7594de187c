/** The file that preserves a workload's secrets over a restart of the agent (docs/certificates.md, H1 to H4). */
import { join } from 'node:path'
import { type KeptSecrets, keptText, readKept } from '../../../src/agent/kept-secrets.ts'
import { inFile, readIfThere } from '../../runtime/bounded-file.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'

const secretsFile = 'secrets.json'
/** A copy of the roots for connections to discovery (`learned` of `RootsSource`). */
const rootsFile = 'root-cert.pem'

/**
 * Reads the stored secrets. Undefined when there are none. Rejects with an Error that names the file when it cannot be used or other users
 * have access to it.
 */
export async function readKeptFile(directory: string): Promise<KeptSecrets | undefined> {
  const path = join(directory, secretsFile)
  const text = await readIfThere(path, { check: checkOwnFile, refusesLinks: true })
  return text === undefined ? undefined : inFile(path, () => readKept(text))
}

/** Stores secrets. The directory is created with access for this user only. Throws an Error that names what cannot be written. */
export function writeKeptFile(directory: string, kept: KeptSecrets): void {
  ownDirectory(directory)
  replaceFile(join(directory, secretsFile), keptText(kept))
  replaceFile(join(directory, rootsFile), kept.roots)
}
