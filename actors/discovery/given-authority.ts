/** Decides, from variables and directories, whether this process has a certificate authority. */
import type { StatePlace } from '../../protocols/messages/authority.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'

/** Why a value of `EXTERNAL_CA` cannot be used. The first value may become usable with an orchestrator client. */
const unusable = new Map([
  ['MESHD_RA_ORCHESTRATOR_API', 'needs an orchestrator, and the orchestrator client has no such part yet'],
  ['MESHD_RA_MESH_API', 'is not supported'],
])

/** `signs`: whether this process signs certificates. */
export interface GivenAuthority {
  readonly signs: boolean
}

/**
 * Certificates are signed with `ENABLE_CA_SERVER` if there is a secured port. Rejects with an Error that names the variable or file that
 * keeps the authority from starting. Secrets are looked at later: whether they can be read may change.
 */
export async function givenAuthority(
  options: Pick<DiscoveryOptions, 'secureGRPCAddr'>,
  features: Features,
  place: StatePlace,
): Promise<GivenAuthority> {
  const { ENABLE_CA_SERVER, EXTERNAL_CA, ROOT_CA_DIR, MESHD_CA_STATE_DIR } = features
  if (EXTERNAL_CA !== '') {
    const reason = unusable.get(EXTERNAL_CA) ?? `is none of ${[...unusable.keys()].join(', ')}`
    throw new Error(`environment variable EXTERNAL_CA: ${JSON.stringify(EXTERNAL_CA.slice(0, 100))} ${reason}`)
  }
  if (!ENABLE_CA_SERVER || options.secureGRPCAddr === '') return { signs: false }
  const [{ readPluggedIn }, { openFileStorage }] = await Promise.all([import('./authority/plugged-in.ts'), import('./authority/file-storage.ts')])
  await readPluggedIn(ROOT_CA_DIR)
  if (place.kind === 'directory') await (await openFileStorage(MESHD_CA_STATE_DIR)).close()
  return { signs: true }
}
