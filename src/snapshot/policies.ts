/** The policies in force: which of them select a workload (discovery behaviour 2.10 to 2.12). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { AuthorizationPolicySpec, PeerAuthenticationSpec, RequestAuthenticationSpec } from '../config/security-specs.ts'
import { labelsMatch } from '../model/match.ts'

export type AuthorizationPolicy = ConfigObject<AuthorizationPolicySpec & Invalid>
export type RequestAuthentication = ConfigObject<RequestAuthenticationSpec & Invalid>
export type PeerAuthentication = ConfigObject<PeerAuthenticationSpec & Invalid>

/** A policy that was never valid stands in for itself, as the strictest there could be. */
interface Invalid {
  /** What is wrong with it. */
  readonly invalid?: string
}

/** What an AuthorizationPolicy does. */
export type Action = 'CUSTOM' | 'AUDIT' | 'DENY' | 'ALLOW'

/** What a policy does; one that was never valid denies. */
export function actionOf({ spec }: AuthorizationPolicy): Action {
  return spec.invalid !== undefined ? 'DENY' : (spec.action ?? 'ALLOW')
}

/** Policies by namespace, the oldest first. */
export interface PolicyIndex {
  readonly authorization: ReadonlyMap<string, readonly AuthorizationPolicy[]>
  readonly requests: ReadonlyMap<string, readonly RequestAuthentication[]>
  readonly peers: ReadonlyMap<string, readonly PeerAuthentication[]>
}

/** A workload as far as policies select it. */
export interface Workload {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

/** The policies that select a workload. */
export interface WorkloadPolicies {
  /** Those of the root namespace first, then those of its own, each the oldest first. */
  readonly authorization: readonly AuthorizationPolicy[]
  readonly requests: readonly RequestAuthentication[]
  /** From the mesh's to the workload's own: each may leave something to the one before it. */
  readonly peers: readonly PeerAuthentication[]
}

/** Groups objects, oldest first, by namespace. */
export function byNamespace<T extends ConfigObject>(objects: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const object of objects) {
    const group = groups.get(object.namespace)
    if (group) group.push(object)
    else groups.set(object.namespace, [object])
  }
  return groups
}

const selectorOf = (policy: { spec: { selector?: { matchLabels?: Record<string, string> } } }) => policy.spec.selector?.matchLabels ?? {}
const hasSelector = (policy: Parameters<typeof selectorOf>[0]) => Object.keys(selectorOf(policy)).length > 0

/** Finds the policies that select a workload. */
export function policiesFor(index: PolicyIndex, rootNamespace: string, workload: Workload): WorkloadPolicies {
  const { namespace, labels } = workload
  const namespaces = namespace === rootNamespace ? [namespace] : [rootNamespace, namespace]
  const select = <T extends AuthorizationPolicy | RequestAuthentication>(policies: ReadonlyMap<string, readonly T[]>) =>
    namespaces.flatMap((each) => (policies.get(each) ?? []).filter((policy) => labelsMatch(selectorOf(policy), labels)))
  return { authorization: select(index.authorization), requests: select(index.requests), peers: peersFor(index, rootNamespace, workload) }
}

/** Finds the PeerAuthentications that a workload goes by, from the mesh's to its own. */
export function peersFor(index: PolicyIndex, rootNamespace: string, { namespace, labels }: Workload): readonly PeerAuthentication[] {
  const own = index.peers.get(namespace) ?? []
  const mesh = index.peers.get(rootNamespace)?.find((policy) => !hasSelector(policy))
  const inNamespace = namespace === rootNamespace ? undefined : own.find((policy) => !hasSelector(policy))
  const ofWorkload = own.find((policy) => hasSelector(policy) && labelsMatch(selectorOf(policy), labels))
  return [mesh, inNamespace, ofWorkload].filter((policy) => policy !== undefined)
}

export type MutualTls = 'STRICT' | 'PERMISSIVE' | 'DISABLE'

/** What a workload asks of its peers on a port: what the narrowest policy says that says anything, else PERMISSIVE. */
export function mutualTls({ peers }: Pick<WorkloadPolicies, 'peers'>, port: number): MutualTls {
  for (const { spec } of peers.toReversed()) {
    if (spec.invalid !== undefined) return 'STRICT'
    for (const mode of [spec.portLevelMtls?.[port]?.mode, spec.mtls?.mode]) if (mode !== undefined && mode !== 'UNSET') return mode
  }
  return 'PERMISSIVE'
}

/** Ports that a policy speaks of by number. */
export function portsNamed({ peers }: Pick<WorkloadPolicies, 'peers'>): number[] {
  return Object.keys(peers.at(-1)?.spec.portLevelMtls ?? {}).map(Number)
}
