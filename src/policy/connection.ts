/** Whether a sidecar takes a described connection, by the mode of mutual TLS of its port (docs/resources.md, A2, L10, L11). */
import type { DescribedRequest } from '../../protocols/messages/described-request.ts'
import { isStandIn } from '../config/stand-in.ts'
import { type PeerAuthentication, portsNamed, type WorkloadPolicies, workloadMode } from '../snapshot/policies.ts'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'

/** The proxy that a connection is opened to. */
export interface Acceptor {
  /** A gateway takes connections as its servers say, not by modes. */
  readonly isGateway: boolean
  /** Whether it has a certificate: without one it cannot offer mutual TLS. */
  readonly hasCertificate: boolean
}

/** Why a connection is not taken. */
export interface Refusal {
  /** The PeerAuthentication that sets the mode; undefined if none has a part in it. */
  readonly policy: PeerAuthentication | undefined
  readonly reason: string
}

/** Says why a connection is not taken; undefined: it is. A request with a principal comes by mutual TLS, one without in plain text. */
export function refusedConnection(
  policies: WorkloadPolicies,
  { peer, destinationPort }: DescribedRequest,
  { mesh, settings }: MeshSnapshot,
  acceptor: Acceptor,
): Refusal | undefined {
  if (acceptor.isGateway) return undefined
  const { mode, policy } = workloadMode(policies, destinationPort)
  const refused = (reason: string): Refusal => ({ policy, reason: `${reason}${otherPorts(policies, destinationPort)}` })
  const set = `mutual TLS is ${mode}${policy && isStandIn(policy) ? ', as which an invalid PeerAuthentication counts' : ''}`
  if (mode === 'STRICT' && peer === undefined)
    return refused(`${set}, and the request has no principal: a connection in plain text is closed (a caller of the mesh has one: name it)`)
  if (peer === undefined) return undefined
  if (mode === 'DISABLE')
    return refused(`${set}: plain text alone is taken, which sidecars of callers send here, so a request that gets through has no principal`)
  if (!acceptor.hasCertificate) return { policy: undefined, reason: 'the proxy has no certificate, so it cannot take mutual TLS' }
  const domains = [mesh.trustDomain, ...mesh.trustDomainAliases]
  if (settings.features.PILOT_SKIP_VALIDATE_TRUST_DOMAIN || domains.some((domain) => peer.startsWith(`${domain}/`))) return undefined
  return { policy: undefined, reason: `the principal is of none of the trust domains of the mesh: ${domains.join(', ')}` }
}

/** The ports with modes of their own, where the request names none. */
function otherPorts(policies: WorkloadPolicies, port: number): string {
  const named = portsNamed(policies)
  return port !== 0 || named.length === 0 ? '' : `; modes of their own have the ports ${named.slice(0, 20).join(', ')}: name the port`
}
