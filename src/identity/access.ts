/** What a caller whose identity is known may do (docs/identity.md, I4 to I8). */
import type { Caller, MeshNamesEvent } from '../../protocols/messages/identity.ts'
import type { SecretReader } from '../../protocols/messages/secrets.ts'
import { canonicalTrustDomain } from '../config/trust-domain.ts'
import { parseWorkload, type Workload } from './spiffe-id.ts'

/** The names of the mesh that decide what a caller may do. */
export type MeshIdentityNames = Pick<MeshNamesEvent, 'trustDomain' | 'trustDomainAliases' | 'rootNamespace'>

/** The identities of a caller that are those of workloads, in any trust domain. */
export function workloadsOf({ identities }: Pick<Caller, 'identities'>): Workload[] {
  return identities.map(parseWorkload).filter((workload) => workload !== undefined)
}

/** Whether a trust domain is that of the mesh or one of its aliases. */
export function isOwnTrustDomain(trustDomain: string, { trustDomain: own, trustDomainAliases }: Omit<MeshIdentityNames, 'rootNamespace'>): boolean {
  return [own, ...trustDomainAliases].some((name) => canonicalTrustDomain(name) === trustDomain)
}

/** The parts of a proxy's node that say for whom it wants configuration. */
export interface ClaimedNode {
  readonly namespace: string
  /** Metadata in the mesh form; `SERVICE_ACCOUNT` counts. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/**
 * Holds a proxy's node against its caller (`PILOT_ENABLE_XDS_IDENTITY_CHECK`). One of the caller's identities must be of the node's
 * namespace and, where the node names a service account, of that account; it is the verified identity of the connection. Otherwise
 * returns the reason, for the status PermissionDenied: it names what the caller sent itself and nothing else.
 */
export function checkNode(caller: Caller, { namespace, metadata }: ClaimedNode): { readonly verified: string } | { readonly refused: string } {
  const account = metadata.SERVICE_ACCOUNT ?? ''
  for (const identity of caller.identities) {
    const workload = parseWorkload(identity)
    if (workload?.namespace === namespace && (account === '' || account === workload.account)) return { verified: identity }
  }
  const claimed = typeof account === 'string' ? account : typeof account
  const wanted = `namespace ${quoted(namespace)}${account === '' ? '' : `, service account ${quoted(claimed)}`}`
  return { refused: `${caller.identities.slice(0, 4).join(', ')} may not act for ${wanted}` }
}

/**
 * The identity that a caller gets a certificate for: the only one that it has, that of a workload of the mesh. Whoever comes with a
 * certificate of another trust domain has that trust domain's authority: ours would vouch for names that are not its own.
 */
export function identityToCertify(
  { identities }: Pick<Caller, 'identities'>,
  names: Omit<MeshIdentityNames, 'rootNamespace'>,
): { readonly identity: string } | { readonly refused: string } {
  const [identity, ...others] = identities
  if (identity === undefined || others.length > 0) return { refused: `the caller has ${identities.length} identities: a certificate names one` }
  const workload = parseWorkload(identity)
  if (!workload) return { refused: 'the identity of the caller is not that of a workload' }
  return isOwnTrustDomain(workload.trustDomain, names)
    ? { identity }
    : { refused: 'the caller is of another trust domain, whose authority is another' }
}

/**
 * Whether a caller may read what belongs to a namespace; undefined stands for what is about the mesh as a whole. Callers of the root
 * namespace may read everything, others what is of their own namespace. Identities of foreign trust domains may read nothing.
 */
export function mayRead(caller: Caller, namespace: string | undefined, names: MeshIdentityNames): boolean {
  return workloadsOf(caller).some(
    (workload) => isOwnTrustDomain(workload.trustDomain, names) && (workload.namespace === names.rootNamespace || workload.namespace === namespace),
  )
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 200))

/**
 * The service account as which a proxy reads secrets of gateways, those of its own namespace. Undefined when it may read none: it is no router, or its identity was
 * not verified, or is of another trust domain. `verified` is the verified identity of its connection ({@link checkNode}).
 */
export function secretReader(
  { type, namespace }: { readonly type: string; readonly namespace: string },
  verified: string | undefined,
  names: MeshIdentityNames,
): SecretReader | undefined {
  const workload = verified === undefined ? undefined : parseWorkload(verified)
  if (type !== 'router' || !workload || workload.namespace !== namespace || !isOwnTrustDomain(workload.trustDomain, names)) return undefined
  return { namespace, account: workload.account }
}
