/** The roots that verify what a signer of the orchestrator signs, on the main thread (docs/certificates.md, E4). */
import { certificatesOf } from '../../../src/identity/pem.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { inFile, readIfThere } from '../../runtime/bounded-file.ts'
import type { ClusterConnection } from './cluster-connection.ts'

/** The file with the roots, beside the process. */
export const signerRootsFile = './etc/external-ca-cert/root-cert.pem'

/**
 * Returns what reads the roots: those of the file, or of a cluster without the file the CA of its API server. A file that was there is not
 * replaced by that CA when it goes. Rejects with the reason why there are none.
 */
export function signerRoots(connection: Pick<ClusterConnection, 'access'>, path = signerRootsFile): () => Promise<string> {
  let hadFile = false
  return async () => {
    const text = await readIfThere(path)
    if (text === undefined && hadFile) throw new Error(`${path}: is not there any more`)
    if (text !== undefined) {
      const roots = inFile(path, () => certificatesOf(text))
      hadFile = true
      return roots.map(String).join('')
    }
    const { ca } = await connection.access(false)
    if (ca === undefined || ca === '')
      throw new Error(`${path} does not exist, and the connection to the cluster has no CA: no root verifies the signer`)
    return certificatesOf(ca).map(String).join('')
  }
}

/** Returns the answer to the question. */
export const signerRootsAnswers = (roots: () => Promise<string>): BoundedAnswers<'signerRoots'> => ({ signerRoots: () => roots() })
