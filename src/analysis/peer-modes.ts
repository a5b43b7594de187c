/** Answers which mode of mutual TLS counts for workloads (docs/resources.md, A2). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { PeerAuthenticationSpec } from '../config/kinds/peer-authentication.ts'
import { selectedLabels } from '../config/shapes/policies.ts'
import { labelsMatch } from '../model/match.ts'
import { peersOf } from './claims.ts'
import type { World } from './world.ts'

/**
 * Returns the mode of mutual TLS that counts for the workloads of a selector: of the policy that selects them, of the namespace, or of the
 * mesh, with the policy. Undefined where ports differ, and without a policy.
 */
export function peerMode(
  namespace: string,
  labels: Readonly<Record<string, string>>,
  world: World,
): { mode: string; policy: ConfigObject } | undefined {
  const of = (owner: string) => world.claimants(peersOf(owner)) as readonly ConfigObject<PeerAuthenticationSpec>[]
  const selecting = of(namespace).filter(({ spec }) => Object.keys(selectedLabels(spec)).length > 0 && labelsMatch(selectedLabels(spec), labels))
  const whole = (owner: string) => of(owner).filter(({ spec }) => Object.keys(selectedLabels(spec)).length === 0)
  for (const policy of [...selecting.slice(0, 1), ...whole(namespace).slice(0, 1), ...whole(world.mesh.rootNamespace).slice(0, 1)]) {
    if (policy.spec.portLevelMtls) return undefined
    const mode = policy.spec.mtls?.mode ?? 'UNSET'
    if (mode !== 'UNSET') return { mode, policy }
  }
  return undefined
}
