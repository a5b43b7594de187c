/** Which policy and rule would decide a described request to a workload, and with what status (`/debug/authz`). */
import { isDryRun, type WorkloadPolicies } from '../snapshot/policies.ts'
import type { MeshSnapshot } from '../snapshot/snapshot.ts'
import { type Circumstances, type Considered, type DescribedRequest, decide } from './evaluate.ts'
import { trustDomainsOf } from './patterns.ts'
import { checkTokens } from './tokens.ts'

/** What would happen. */
export interface Explanation {
  /** What the client would see: 200 stands for whatever the workload answers, 0 for a connection that is closed. */
  readonly status: number
  readonly decidedBy: 'proxy' | 'RequestAuthentication' | 'AuthorizationPolicy' | 'external authorizer' | 'nothing'
  readonly policy: string | undefined
  readonly rule: number | undefined
  readonly reason: string
  /** `<iss>/<sub>` of the token that was accepted. */
  readonly requestPrincipal: string | undefined
  /** Every rule that was looked at, in order. */
  readonly considered: readonly Considered[]
}

/** Envoy's bound on the headers of a request, in bytes. */
const headerBytes = 60 * 1024

/** Characters that an explanation may compare: some hundredths of a second. */
const mostCompared = 20_000_000

/**
 * Explains a request at a time (Unix seconds). Claims that are given count as those of a good token. Throws where there is so much to compare that
 * others would wait for it.
 */
export async function explain(
  policies: WorkloadPolicies,
  request: DescribedRequest,
  snapshot: MeshSnapshot,
  { now, trustsForwarded }: { readonly now: number; readonly trustsForwarded: boolean },
): Promise<Explanation> {
  const { mesh, settings } = snapshot
  let left = mostCompared
  const circumstances: Circumstances = {
    trustDomains: trustDomainsOf(snapshot),
    normalization: mesh.pathNormalization.normalization,
    trustsForwarded,
    optOuts: settings.optOuts,
    spend: (characters) => {
      left -= characters
      if (left < 0) throw new Error(`the policies of this proxy and this request have more to compare than ${mostCompared} characters`)
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
    considered: [],
  })
  if (http && !request.path.startsWith('/')) return verdict(400, 'proxy', 'a path starts with a slash')
  if (http && request.path.includes('#')) return verdict(400, 'proxy', 'a path with a fragment is not a request')
  if (http && sizeOf(request) > headerBytes) return verdict(431, 'proxy', `the headers are larger than ${headerBytes} bytes`)
  const early = decide(policies.authorization, request, circumstances, ['CUSTOM'])
  if (early.verdict === 'external')
    return { ...verdict(0, 'external authorizer', early.reason), policy: early.policy, rule: early.rule, considered: early.considered }
  const tokens = http && !request.claims ? await checkTokens(policies.requests, snapshot.keySets, request, now) : { claims: request.claims }
  if ('refused' in tokens) return verdict(tokens.status, 'RequestAuthentication', tokens.refused)
  const decision = decide(policies.authorization, { ...request, claims: tokens.claims }, circumstances, ['AUDIT', 'DENY', 'ALLOW'])
  const { iss, sub } = tokens.claims ?? {}
  return {
    status: decision.verdict === 'allowed' ? 200 : http ? 403 : 0,
    decidedBy: decision.policy !== undefined || decision.verdict === 'denied' ? 'AuthorizationPolicy' : 'nothing',
    policy: decision.policy,
    rule: decision.rule,
    reason: decision.reason,
    requestPrincipal: typeof iss === 'string' && typeof sub === 'string' ? `${iss}/${sub}` : undefined,
    considered: [...early.considered, ...decision.considered],
  }
}

function sizeOf({ headers, path, host, method }: DescribedRequest): number {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => name.length + value.length))
  return lines.reduce((sum, length) => sum + length, path.length + host.length + method.length)
}
