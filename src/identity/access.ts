/** Authorization of callers whose identity is verified (docs/identity.md, I4 to I11). */
import type { Caller, MeshNamesEvent, VouchingCluster } from '../../protocols/messages/identity.ts'
import type { GatewaySecret, SecretReader } from '../../protocols/messages/secrets.ts'
import { canonicalTrustDomain } from '../config/trust-domain.ts'
import { parseWorkload, type Workload } from './spiffe-id.ts'

/** The settings of the mesh that authorization depends on. */
export type MeshIdentityNames = Pick<MeshNamesEvent, 'trustDomain' | 'trustDomainAliases' | 'rootNamespace'>

/** Returns the identities of a caller that are SPIFFE ids of workloads, in any trust domain. */
export function workloadsOf({ identities }: Pick<Caller, 'identities'>): Workload[] {
  return identities.map(parseWorkload).filter((workload) => workload !== undefined)
}

/** Whether a trust domain is the mesh's own or one of its aliases. */
export function isOwnTrustDomain(trustDomain: string, { trustDomain: own, trustDomainAliases }: Omit<MeshIdentityNames, 'rootNamespace'>): boolean {
  return [own, ...trustDomainAliases].some((name) => canonicalTrustDomain(name) === trustDomain)
}

/** The other cluster that vouches for a caller; undefined for callers of the own cluster. */
export const otherCluster = ({ cluster }: Pick<Caller, 'cluster'>): string | undefined => (cluster && !cluster.isOwn ? cluster.id : undefined)

/** Names whom limits and turns are for: an identity, and the other cluster that vouches for it. Callers of that cluster take no share of the own one. */
export function principalOf(identity: string, caller: Pick<Caller, 'cluster'>): string {
  const cluster = otherCluster(caller)
  return cluster === undefined ? identity : `${identity} of the cluster ${cluster}`
}

/**
 * Returns the identities of a caller that may have rights in this mesh beside those of a workload: those of the own trust domain for which the
 * own cluster vouches (docs/identity.md, I7, I9). Everything that grants something by namespace or account asks this function.
 */
export function entitledWorkloads(caller: Pick<Caller, 'identities' | 'cluster'>, names: Omit<MeshIdentityNames, 'rootNamespace'>): Workload[] {
  if (otherCluster(caller) !== undefined) return []
  return workloadsOf(caller).filter(({ trustDomain }) => isOwnTrustDomain(trustDomain, names))
}

/** The fields of a proxy's node that claim an identity. */
export interface ClaimedNode {
  readonly namespace: string
  /** Metadata in the mesh form. Only `SERVICE_ACCOUNT` and `CLUSTER_ID` are used. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/**
 * Compares a proxy's node with its caller (`PILOT_ENABLE_XDS_IDENTITY_CHECK`). One of the caller's identities must have the node's
 * namespace and, when the node names a service account, that account; this identity is returned as the verified one of the connection. The
 * cluster that the node names must be the one that vouches for the caller, where one does.
 * Otherwise returns the reason for the status PermissionDenied. The reason contains only what the caller itself has sent.
 */
export function checkNode(caller: Caller, { namespace, metadata }: ClaimedNode): { readonly verified: string } | { readonly refused: string } {
  const account = metadata.SERVICE_ACCOUNT ?? ''
  const cluster = metadata.CLUSTER_ID ?? ''
  if (caller.cluster && cluster !== '' && cluster !== caller.cluster.id) {
    const claimed = typeof cluster === 'string' ? cluster : typeof cluster
    return {
      refused: `the node names the cluster ${quoted(claimed)} (metadata CLUSTER_ID), the cluster ${quoted(caller.cluster.id)} vouches for its identity`,
    }
  }
  for (const identity of caller.identities) {
    const workload = parseWorkload(identity)
    if (workload?.namespace === namespace && (account === '' || account === workload.account)) return { verified: identity }
  }
  const claimed = typeof account === 'string' ? account : typeof account
  const wanted = `namespace ${quoted(namespace)}${account === '' ? '' : `, service account ${quoted(claimed)}`}`
  return { refused: `${caller.identities.slice(0, 4).join(', ')} may not act for ${wanted}` }
}

/**
 * Returns the identity that a caller's certificate is issued for: its only one, which must be a workload's in a trust domain of the mesh. A
 * caller from another trust domain has an authority of its own; this authority must not vouch for names of that trust domain.
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
 * Whether a caller may read resources of a namespace; `undefined` stands for mesh-wide resources. Callers in the root namespace may read
 * everything, others the resources of their own namespace. Identities of foreign trust domains and of other clusters may read nothing.
 */
export function mayRead(caller: Caller, namespace: string | undefined, names: MeshIdentityNames): boolean {
  return entitledWorkloads(caller, names).some((workload) => workload.namespace === names.rootNamespace || workload.namespace === namespace)
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 200))

/**
 * Returns the service account with which a proxy reads gateway secrets of its own namespace. Undefined when it may not read any: it is not
 * a router, or its identity is not verified or belongs to another trust domain. `verified` is the verified identity of its connection
 * ({@link checkNode}), `cluster` what vouches for it. Where nothing says which cluster does, the node must not name another one than `own`.
 */
export function secretReader(
  { type, namespace, clusterId }: { readonly type: string; readonly namespace: string; readonly clusterId: string },
  { verified, cluster }: { readonly verified: string | undefined; readonly cluster: VouchingCluster | undefined },
  names: MeshIdentityNames,
  own: string,
): SecretReader | undefined {
  const workload = verified === undefined ? undefined : parseWorkload(verified)
  if (type !== 'router' || !workload || workload.namespace !== namespace || !isOwnTrustDomain(workload.trustDomain, names)) return undefined
  if (!cluster && clusterId !== '' && clusterId !== own) return undefined
  const other = otherCluster({ ...(cluster && { cluster }) })
  return { namespace, account: workload.account, ...(other !== undefined && { cluster: other }) }
}

/**
 * Whether a service account may read a Secret of its own namespace (docs/resources.md, K7): one that the annotation of the Secret names.
 * Without the annotation nobody may, unless the Secret has no private key, or `isForAll` (the opt-out `secret-accounts`).
 */
export function mayReadSecret(
  { account }: Pick<SecretReader, 'account'>,
  { serviceAccounts, material }: Pick<GatewaySecret, 'serviceAccounts' | 'material'>,
  isForAll: boolean,
): boolean {
  return serviceAccounts ? serviceAccounts.includes(account) : isForAll || material.pair === undefined
}
