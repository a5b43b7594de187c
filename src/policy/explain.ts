/** Explains which policy and rule would decide a described request to a workload, and with what status (`/debug/authz`). */
import type { ObjectReference } from '../../protocols/data.ts'
import type { DescribedRequest } from '../../protocols/messages/described-request.ts'
import { keyAt } from '../config/kinds.ts'
import { isDryRun, type WorkloadPolicies } from '../snapshot/policies.ts'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'
import { type Acceptor, refusedConnection } from './connection.ts'
import { type Considered, decide, type EvaluationContext, looksAtSource } from './evaluate.ts'
import { pathFault } from './paths.ts'
import { trustDomainsOf } from './patterns.ts'
import { checkTokens } from './tokens.ts'

/** The expected outcome of a request. */
export interface Explanation {
  /**
   * The status that the client would receive: 200 stands for any response of the workload, 0 for a closed connection or a decision of the
   * external authorizer.
   */
  readonly status: number
  readonly decidedBy: 'proxy' | 'PeerAuthentication' | 'RequestAuthentication' | 'AuthorizationPolicy' | 'external authorizer' | 'nothing'
  readonly policy: string | undefined
  readonly rule: number | undefined
  readonly reason: string
  /** `<iss>/<sub>` of the accepted token. */
  readonly requestPrincipal: string | undefined
  /** Whether policies of the proxy have rules on the address of the source. */
  readonly looksAtSource: boolean
  /** The results of all evaluated rules, in order. */
  readonly considered: readonly Considered[]
}

/** An explanation with references to its policies, by key. */
export interface ReferencedExplanation extends Explanation {
  readonly references: Readonly<Record<string, ObjectReference>>
}

/** The kind of the policy that decides. */
export const decidingKind = (decidedBy: Explanation['decidedBy']) =>
  decidedBy === 'PeerAuthentication' || decidedBy === 'RequestAuthentication' ? decidedBy : 'AuthorizationPolicy'

/** Returns the keys of the policies in an explanation. */
export function policyKeys({ policy, decidedBy, considered }: Explanation): string[] {
  const deciding = policy === undefined ? [] : [keyAt(decidingKind(decidedBy), policy)]
  return [...new Set([...deciding, ...considered.map((rule) => keyAt('AuthorizationPolicy', rule.policy))])]
}

/** Envoy's limit on the headers of a request, in bytes. */
const headerBytes = 60 * 1024

/** The maximum number of characters that one explanation may compare, which takes some hundredths of a second. */
const maxCompared = 20_000_000

/** The circumstances of an explanation: Unix seconds, and what is known of the proxy. */
interface Circumstances extends Acceptor {
  readonly now: number
  readonly trustsForwarded: boolean
  /** A host that the proxy serves, which is taken where the request has none; empty: it serves none. */
  readonly servedHost: string
}

/**
 * Explains a request. Given claims are treated as those of a valid token. Throws if the number of characters
 * to compare exceeds the limit, since other requests would have to wait.
 */
export async function explain(
  policies: WorkloadPolicies,
  described: DescribedRequest,
  snapshot: MeshSnapshot,
  { now, trustsForwarded, servedHost, ...acceptor }: Circumstances,
): Promise<Explanation> {
  const takenHost = described.protocol === 'http' && described.host === '' ? servedHost : ''
  const request = { ...described, host: described.host || takenHost }
  const { mesh, settings } = snapshot
  let left = maxCompared
  const context: EvaluationContext = {
    trustDomains: trustDomainsOf(snapshot),
    normalization: mesh.pathNormalization.normalization,
    ...{ trustsForwarded, takenHost },
    optOuts: settings.optOuts,
    spend: (characters) => {
      left -= characters
      if (left < 0) throw new Error(`the policies of this proxy and this request have more to compare than ${maxCompared} characters`)
    },
    isDryRun: (policy) => isDryRun(policy, settings.names.domain),
  }
  const http = request.protocol === 'http'
  const verdict = (status: number, decidedBy: Explanation['decidedBy'], reason: string): Explanation => ({
    status,
    decidedBy,
    policy: undefined,
    rule: undefined,
    reason,
    requestPrincipal: undefined,
    looksAtSource: policies.authorization.some(looksAtSource),
    considered: [],
  })
  const refused = refusedConnection(policies, request, snapshot, acceptor)
  if (refused) {
    const { policy, reason } = refused
    return { ...verdict(0, policy ? 'PeerAuthentication' : 'proxy', reason), policy: policy && `${policy.namespace}/${policy.name}` }
  }
  const unread = http ? pathFault(request.path, context.normalization !== 'NONE') : undefined
  if (unread !== undefined) return verdict(400, 'proxy', unread)
  if (http && sizeOf(request) > headerBytes) return verdict(431, 'proxy', `the headers are larger than ${headerBytes} bytes`)
  const early = decide(policies.authorization, request, context, ['CUSTOM'])
  if (early.verdict === 'external')
    return { ...verdict(0, 'external authorizer', early.reason), policy: early.policy, rule: early.rule, considered: early.considered }
  const tokens = http && !request.claims ? await checkTokens(policies.requests, snapshot.keySets, request, now) : { claims: request.claims }
  if ('refused' in tokens) return verdict(tokens.status, 'RequestAuthentication', tokens.refused)
  const decision = decide(policies.authorization, { ...request, claims: tokens.claims }, context, ['AUDIT', 'DENY', 'ALLOW'])
  const { iss, sub } = tokens.claims ?? {}
  const decidedBy = decision.policy !== undefined || decision.verdict === 'denied' ? 'AuthorizationPolicy' : 'nothing'
  return {
    ...verdict(decision.verdict === 'allowed' ? 200 : http ? 403 : 0, decidedBy, decision.reason),
    policy: decision.policy,
    rule: decision.rule,
    requestPrincipal: typeof iss === 'string' && typeof sub === 'string' ? `${iss}/${sub}` : undefined,
    considered: [...early.considered, ...decision.considered],
  }
}

function sizeOf({ headers, path, host, method }: DescribedRequest): number {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => name.length + value.length))
  return lines.reduce((sum, length) => sum + length, path.length + host.length + method.length)
}
