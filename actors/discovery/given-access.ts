/** Decides whether debug pages and client status are open to local callers without a credential. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'

/**
 * Whether local callers need no credential (`ENABLE_DEBUG_ON_LOOPBACK`). With `auto`, they need none while no TLS material is configured
 * (a serving certificate, or an authority in `ROOT_CA_DIR`), because TLS material indicates more than a trial installation.
 */
export async function isOpenOnLoopback({ tlsCertFile }: Pick<DiscoveryOptions, 'tlsCertFile'>, features: Features): Promise<boolean> {
  const wanted = features.ENABLE_DEBUG_ON_LOOPBACK
  if (wanted !== 'auto') return wanted
  if (tlsCertFile !== '') return false
  const { isPluggedIn } = await import('./authority/plugged-in.ts')
  // A directory that cannot be read counts as one with an authority.
  return !(await isPluggedIn(features.ROOT_CA_DIR).catch(() => true))
}
