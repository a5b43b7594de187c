/** Decides where the control plane keeps its state: in a directory, or in Secrets of the cluster (docs/certificates.md, K1 and K8). */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { StatePlace } from '../../../protocols/messages/authority.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'
import type { Notice } from './exposure.ts'

/** The place, and the line for the log about it. */
export interface GivenPlace {
  readonly place: StatePlace
  readonly notices: readonly Notice[]
}

/**
 * Returns the place: a directory that `MESHD_CA_STATE_DIR` names (`isNamed`), without a cluster, or that has a state already; otherwise Secrets
 * of the control namespace.
 */
export function givenPlace(
  { hasCluster, isNamed }: { readonly hasCluster: boolean; readonly isNamed: boolean },
  { namespace: flag }: Pick<DiscoveryOptions, 'namespace'>,
  { MESHD_CA_STATE_DIR, POD_NAMESPACE }: Pick<Features, 'MESHD_CA_STATE_DIR' | 'POD_NAMESPACE'>,
): GivenPlace {
  if (!hasCluster || isNamed) return { place: { kind: 'directory' }, notices: [] }
  const namespace = flag || POD_NAMESPACE
  const directory = resolve(MESHD_CA_STATE_DIR)
  const line = (message: string): Notice => ({ level: 'info', message })
  if (existsSync(join(directory, 'state.json')))
    return {
      place: { kind: 'directory' },
      notices: [line(`the state of an earlier start is in ${directory} and stays there; docs/certificates.md says how it is moved into Secrets`)],
    }
  return {
    place: { kind: 'secrets', namespace },
    notices: [line(`the state of the control plane is kept in Secrets of namespace ${namespace}; MESHD_CA_STATE_DIR names a directory instead`)],
  }
}
