/** Who sees debug pages and client status without a credential: of the variables, and of what is configured. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'

/**
 * Whether callers of this machine need no credential (`ENABLE_DEBUG_ON_LOOPBACK`). Unless that is said, they need none while no TLS
 * material is configured, neither a serving certificate nor an authority in `ROOT_CA_DIR`: who has some runs more than a trial.
 */
export async function isOpenOnLoopback({ tlsCertFile }: Pick<DiscoveryOptions, 'tlsCertFile'>, features: Features): Promise<boolean> {
  const wanted = features.ENABLE_DEBUG_ON_LOOPBACK
  if (wanted !== 'auto') return wanted
  if (tlsCertFile !== '') return false
  const { isPluggedIn } = await import('./authority/plugged-in.ts')
  // A directory that cannot be looked into is taken for one that holds something.
  return !(await isPluggedIn(features.ROOT_CA_DIR).catch(() => true))
}
