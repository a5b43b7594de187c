/** Whether this process has a certificate authority: of the variables, and of what lies in its directories. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'
import { wallClockMs } from '../runtime/clock.ts'

/** The two integrations that have a name; of neither a part is built. */
const external = { orchestrator: 'MESHD_RA_ORCHESTRATOR_API', mesh: 'MESHD_RA_MESH_API' }

/** Who signs certificates in this process. */
export interface GivenAuthority {
  readonly signs: boolean
  /** What the log says of it at start, if anything. */
  readonly warning: string | undefined
}

/**
 * Looks whether certificates are signed here: with `ENABLE_CA_SERVER`, where there is a secured port to ask on. Rejects with an Error that
 * names the variable or the file that keeps the authority from starting.
 */
export async function givenAuthority(options: Pick<DiscoveryOptions, 'secureGRPCAddr'>, features: Features): Promise<GivenAuthority> {
  const { ENABLE_CA_SERVER, EXTERNAL_CA, ROOT_CA_DIR, MESHD_CA_STATE_DIR } = features
  if (EXTERNAL_CA !== '' && EXTERNAL_CA !== external.orchestrator) {
    const known = EXTERNAL_CA === external.mesh ? 'is not supported' : `is not ${external.orchestrator}`
    throw new Error(`environment variable EXTERNAL_CA: ${JSON.stringify(EXTERNAL_CA.slice(0, 100))} ${known}`)
  }
  if (!ENABLE_CA_SERVER || options.secureGRPCAddr === '') return { signs: false, warning: undefined }
  if (EXTERNAL_CA !== '')
    return {
      signs: false,
      warning: `EXTERNAL_CA=${EXTERNAL_CA} needs an orchestrator, and there is no orchestrator client yet: no certificate is signed`,
    }
  const [{ readPluggedIn }, { openFileStorage }] = await Promise.all([import('./authority/plugged-in.ts'), import('./authority/file-storage.ts')])
  await readPluggedIn(ROOT_CA_DIR, wallClockMs())
  await (await openFileStorage(MESHD_CA_STATE_DIR)).close()
  return { signs: true, warning: undefined }
}
