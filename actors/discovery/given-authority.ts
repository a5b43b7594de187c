/** Whether this process has a certificate authority: of the variables, and of what lies in its directories. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'
import { wallClockMs } from '../runtime/clock.ts'

/** Why a value of `EXTERNAL_CA` cannot be used; the first may be once there is an orchestrator to ask. */
const unusable = new Map([
  ['MESHD_RA_ORCHESTRATOR_API', 'needs an orchestrator, and there is no orchestrator client yet'],
  ['MESHD_RA_MESH_API', 'is not supported'],
])

/** Who signs certificates in this process. */
export interface GivenAuthority {
  readonly signs: boolean
}

/**
 * Looks whether certificates are signed here: with `ENABLE_CA_SERVER`, where there is a secured port to ask on. Rejects with an Error that
 * names the variable or the file that keeps the authority from starting.
 */
export async function givenAuthority(options: Pick<DiscoveryOptions, 'secureGRPCAddr'>, features: Features): Promise<GivenAuthority> {
  const { ENABLE_CA_SERVER, EXTERNAL_CA, ROOT_CA_DIR, MESHD_CA_STATE_DIR } = features
  if (EXTERNAL_CA !== '') {
    const reason = unusable.get(EXTERNAL_CA) ?? `is none of ${[...unusable.keys()].join(', ')}`
    throw new Error(`environment variable EXTERNAL_CA: ${JSON.stringify(EXTERNAL_CA.slice(0, 100))} ${reason}`)
  }
  if (!ENABLE_CA_SERVER || options.secureGRPCAddr === '') return { signs: false }
  const [{ readPluggedIn }, { openFileStorage }] = await Promise.all([import('./authority/plugged-in.ts'), import('./authority/file-storage.ts')])
  await readPluggedIn(ROOT_CA_DIR, wallClockMs())
  await (await openFileStorage(MESHD_CA_STATE_DIR)).close()
  return { signs: true }
}
