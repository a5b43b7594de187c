/** The policies in force, and which of them select a workload (docs/resources.md, A1, A2). */
import { hash } from 'node:crypto'
import type { ConfigObject } from '../../protocols/data.ts'
import type { AuthorizationPolicySpec } from '../config/kinds/authorization-policy.ts'
import type { PeerAuthenticationSpec } from '../config/kinds/peer-authentication.ts'
import type { RequestAuthenticationSpec } from '../config/kinds/request-authentication.ts'
import { dryRunOf, isAttached, selectedLabelSets } from '../config/shapes/policies.ts'
import { isStandIn, type StandIn } from '../config/stand-in.ts'
import { labelsMatch } from '../model/match.ts'

/** A policy of its kind, or a stand-in, which has none of the kind's fields. {@link isStandIn} distinguishes them. */
export type AuthorizationPolicy = ConfigObject<AuthorizationPolicySpec> | StandIn
export type RequestAuthentication = ConfigObject<RequestAuthenticationSpec> | StandIn
export type PeerAuthentication = ConfigObject<PeerAuthenticationSpec> | StandIn

/** The action of an AuthorizationPolicy. */
export type Action = 'CUSTOM' | 'AUDIT' | 'DENY' | 'ALLOW'

/** Returns the action of a policy. A stand-in denies. */
export function actionOf(policy: AuthorizationPolicy): Action {
  return isStandIn(policy) ? 'DENY' : (policy.spec.action ?? 'ALLOW')
}

/**
 * Whether a policy is in dry-run mode (annotation `mesh.io/dry-run`): its result is reported and not enforced. Never true of a stand-in.
 */
export function isDryRun(policy: AuthorizationPolicy, domain: string): boolean {
  return dryRunOf(policy, domain) === true && !isStandIn(policy)
}

/** Policies by namespace, the oldest first. */
export interface PolicyIndex {
  readonly authorization: ReadonlyMap<string, readonly AuthorizationPolicy[]>
  readonly requests: ReadonlyMap<string, readonly RequestAuthentication[]>
  readonly peers: ReadonlyMap<string, readonly PeerAuthentication[]>
}

/** The part of a workload that selectors use. */
export interface Workload {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

/** The policies that select a workload. */
export interface WorkloadPolicies {
  /** Policies of the root namespace, then those of the workload's namespace, the oldest first in each. */
  readonly authorization: readonly AuthorizationPolicy[]
  readonly requests: readonly RequestAuthentication[]
  /** From the mesh-wide policy to the one of the workload. A mode that is unset in one is inherited from the policy before it. */
  readonly peers: readonly PeerAuthentication[]
}

/** All policies of a workload in one list. */
export const allPolicies = ({ authorization, requests, peers }: WorkloadPolicies) => [...authorization, ...requests, ...peers]

/** Groups objects by namespace. The order (oldest first) is kept. */
export function byNamespace<T extends ConfigObject>(objects: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const object of objects) {
    const group = groups.get(object.namespace)
    if (group) group.push(object)
    else groups.set(object.namespace, [object])
  }
  return groups
}

type Targeted = AuthorizationPolicy | RequestAuthentication | PeerAuthentication
const selectors = ({ spec }: Targeted) => selectedLabelSets(spec)
const hasSelector = (policy: PeerAuthentication) => selectors(policy).some((labels) => Object.keys(labels).length > 0)

/** The namespace of stand-ins for policies without a namespace (docs/resources.md, A12). They select workloads in every namespace. */
const anyNamespace = ''

/** Whether the policies of a namespace select workloads of all namespaces. */
export const isMeshWide = (namespace: string, rootNamespace: string): boolean => namespace === rootNamespace || namespace === anyNamespace

/** Whether a policy whose namespace applies to a workload selects it. */
const selects = (policy: Targeted, { namespace, labels }: Workload): boolean =>
  selectors(policy).some((wanted) => labelsMatch(wanted, labels)) &&
  (!isAttached(policy.spec) || policy.namespace === namespace || policy.namespace === anyNamespace)

/** The label names that the selectors of policies use. */
export function selectingLabels(policies: WorkloadPolicies): Set<string> {
  return new Set(allPolicies(policies).flatMap((policy) => selectors(policy).flatMap((labels) => Object.keys(labels))))
}

/** Finds the policies that select a workload. */
export function policiesFor(index: PolicyIndex, rootNamespace: string, workload: Workload): WorkloadPolicies {
  const { namespace } = workload
  const namespaces = [...new Set([anyNamespace, rootNamespace, namespace])]
  const select = <T extends AuthorizationPolicy | RequestAuthentication>(policies: ReadonlyMap<string, readonly T[]>) =>
    namespaces.flatMap((each) => (policies.get(each) ?? []).filter((policy) => selects(policy, workload)))
  return { authorization: select(index.authorization), requests: select(index.requests), peers: peersFor(index, rootNamespace, workload) }
}

/** Finds the PeerAuthentications that apply to a workload, from the mesh-wide one to its own. */
export function peersFor(index: PolicyIndex, rootNamespace: string, workload: Workload): readonly PeerAuthentication[] {
  const { namespace } = workload
  const own = index.peers.get(namespace) ?? []
  const mesh = index.peers.get(rootNamespace)?.find((policy) => !hasSelector(policy))
  const inNamespace = namespace === rootNamespace ? undefined : own.find((policy) => !hasSelector(policy))
  const ofWorkload = own.find((policy) => hasSelector(policy) && selects(policy, workload))
  const ofAny = index.peers.get(anyNamespace)?.find((policy) => selects(policy, workload))
  return [mesh, inNamespace, ofWorkload, ofAny].filter((policy) => policy !== undefined)
}

const digests = new WeakMap<object, string>()

/** A digest of the content of policies. Undefined when there are none. */
export function policiesDigest(policies: WorkloadPolicies): string | undefined {
  const parts = allPolicies(policies).map((policy) => {
    let digest = digests.get(policy)
    if (digest === undefined) {
      const { kind, namespace, name, annotations, spec } = policy
      digests.set(policy, (digest = hash('sha1', JSON.stringify([kind, namespace, name, annotations, spec]), 'base64')))
    }
    return digest
  })
  return parts.length === 0 ? undefined : hash('sha1', parts.join(), 'base64')
}

export type MutualTls = 'STRICT' | 'PERMISSIVE' | 'DISABLE'

/** The mutual TLS mode of a workload's port ({@link workloadMode}). */
export const mutualTls = (policies: Pick<WorkloadPolicies, 'peers'>, port: number): MutualTls => workloadMode(policies, port).mode

/**
 * The mutual TLS mode of a workload's port with the policy that sets it: the narrowest that sets one. By default it is PERMISSIVE. A
 * stand-in sets STRICT.
 */
export function workloadMode(
  { peers }: Pick<WorkloadPolicies, 'peers'>,
  port: number,
): { readonly mode: MutualTls; readonly policy: PeerAuthentication | undefined } {
  for (const policy of peers.toReversed()) {
    if (isStandIn(policy)) return { mode: 'STRICT', policy }
    const { portLevelMtls, mtls } = policy.spec
    // A port may be written with leading zeros.
    const ofPort = Object.entries(portLevelMtls ?? {}).find(([named]) => Number(named) === port)?.[1]
    for (const mode of [ofPort?.mode, mtls?.mode]) if (mode !== undefined && mode !== 'UNSET') return { mode, policy }
  }
  return { mode: 'PERMISSIVE', policy: undefined }
}

/** Ports for which the narrowest policy has a setting of their own. */
export function portsNamed({ peers }: Pick<WorkloadPolicies, 'peers'>): number[] {
  const narrowest = peers.at(-1)
  return narrowest && !isStandIn(narrowest) ? Object.keys(narrowest.spec.portLevelMtls ?? {}).map(Number) : []
}
