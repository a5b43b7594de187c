/** Decides whether debug pages and client status are open to local callers without a credential. */
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'
import { secretNames } from '../../../src/names/secret-names.ts'
import { within } from '../../runtime/timers.ts'
import type { CallSecret } from '../cluster/secret-calls.ts'

/** The longest time that a start waits for the Secret of an authority, in milliseconds. */
const longestMs = 5000

/**
 * Whether local callers need no credential (`ENABLE_DEBUG_ON_LOOPBACK`). With `auto`, they need none while no TLS material is configured
 * (a serving certificate, or an authority in `ROOT_CA_DIR` or the Secret `cacerts`), because TLS material indicates more than a trial
 * installation. `secrets`: calls about Secrets, where the state of the control plane is kept in some.
 */
export async function isOpenOnLoopback(
  { tlsCertFile }: Pick<DiscoveryOptions, 'tlsCertFile'>,
  features: Features,
  secrets?: { readonly call: CallSecret },
): Promise<boolean> {
  const wanted = features.ENABLE_DEBUG_ON_LOOPBACK
  if (wanted !== 'auto') return wanted
  if (tlsCertFile !== '') return false
  const { isPluggedIn } = await import('../authority/plugged-in.ts')
  // A directory, or a Secret, that cannot be read counts as one with an authority.
  return !(await isPluggedIn(features.ROOT_CA_DIR).catch(() => true)) && (secrets === undefined || (await isMissing(secrets.call)))
}

/** Whether it is known that there is no Secret with an authority that is plugged in. */
async function isMissing(call: CallSecret): Promise<boolean> {
  let isKnown = false
  await within(
    longestMs,
    call({ verb: 'get', name: secretNames.pluggedIn }).then(({ outcome }) => (isKnown = outcome === 'missing')),
  )
  return isKnown
}
