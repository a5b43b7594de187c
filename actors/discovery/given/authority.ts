/** Decides, from variables and directories, whether this process has a certificate authority, and whose. */
import type { StatePlace } from '../../../protocols/messages/authority.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'

/** The value of `EXTERNAL_CA` with which a signer of the orchestrator signs. */
const bySigner = 'MESHD_RA_ORCHESTRATOR_API'
/** The other value of the specification. */
const bySelf = 'MESHD_RA_MESH_API'

/** The name of a signer, as the orchestrator demands it: a domain, and a path. */
const signerName = /^(?=.{3,571}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?\/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** Whether this process signs certificates, and who does it: its own authority, or a signer of the orchestrator. */
export type GivenAuthority = { readonly signs: false } | { readonly signs: true; readonly by: 'own' | 'signer' }

/**
 * Certificates are signed with `ENABLE_CA_SERVER` if there is a secured port. Rejects with an Error that names the variable or file that
 * keeps the authority from starting. Secrets are looked at later: whether they can be read may change.
 */
export async function givenAuthority(
  options: Pick<DiscoveryOptions, 'secureGRPCAddr'>,
  features: Features,
  { place, hasCluster }: { readonly place: StatePlace; readonly hasCluster: boolean },
): Promise<GivenAuthority> {
  const { ENABLE_CA_SERVER, EXTERNAL_CA, ORCH_SIGNER, PILOT_CERT_PROVIDER, ROOT_CA_DIR, MESHD_CA_STATE_DIR } = features
  checkExternal(features, hasCluster)
  if (!ENABLE_CA_SERVER || options.secureGRPCAddr === '') return { signs: false }
  if (EXTERNAL_CA !== '') return { signs: true, by: 'signer' }
  if (PILOT_CERT_PROVIDER === 'orchestrator' && hasCluster && ORCH_SIGNER === '')
    throw new Error('environment variable PILOT_CERT_PROVIDER: orchestrator needs ORCH_SIGNER, the signer of the serving certificate')
  const [{ readPluggedIn }, { openFileStorage }] = await Promise.all([import('../authority/plugged-in.ts'), import('../authority/file-storage.ts')])
  await readPluggedIn(ROOT_CA_DIR)
  if (place.kind === 'directory') await (await openFileStorage(MESHD_CA_STATE_DIR)).close()
  return { signs: true, by: 'own' }
}

function checkExternal({ EXTERNAL_CA, ORCH_SIGNER }: Features, hasCluster: boolean): void {
  const value = JSON.stringify(EXTERNAL_CA.slice(0, 100))
  if (ORCH_SIGNER !== '' && !signerName.test(ORCH_SIGNER))
    throw new Error(`environment variable ORCH_SIGNER: ${JSON.stringify(ORCH_SIGNER.slice(0, 100))} is no signer: expected <domain>/<path>`)
  if (EXTERNAL_CA === '') return
  if (EXTERNAL_CA === bySelf) throw new Error(`environment variable EXTERNAL_CA: ${value} is not supported`)
  if (EXTERNAL_CA !== bySigner) throw new Error(`environment variable EXTERNAL_CA: ${value} is none of ${bySigner}, ${bySelf}`)
  if (ORCH_SIGNER === '') throw new Error(`environment variable EXTERNAL_CA: ${value} needs ORCH_SIGNER, the signer of the orchestrator`)
  if (!hasCluster) throw new Error(`environment variable EXTERNAL_CA: ${value} needs a cluster: --orchconfig <file>, or a pod`)
}
