/** The filters that enforce the policies of a workload, in order (docs/resources.md, A5): CUSTOM, tokens, AUDIT, DENY, ALLOW. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Any } from '@bufbuild/protobuf/wkt'
import { type PolicySchema, RBAC_Action, type RBACSchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import { ExtAuthzSchema } from '../../../protocols/gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.js'
import { JwtAuthenticationSchema } from '../../../protocols/gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.js'
import { RBACSchema as HttpRbacSchema } from '../../../protocols/gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.js'
import { ExtAuthzSchema as NetworkExtAuthzSchema } from '../../../protocols/gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.js'
import { RBACSchema as NetworkRbacSchema } from '../../../protocols/gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.js'
import { type Condition, isHttpOnly, resolveRule } from '../../config/policy-attributes.ts'
import { isStandIn } from '../../config/stand-in.ts'
import { contain } from '../../model/faults.ts'
import { trustDomainsOf } from '../../policy/patterns.ts'
import { type Action, type AuthorizationPolicy, actionOf, isDryRun, type WorkloadPolicies } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { pack } from '../message.ts'
import { type Authorizer, authorizerOf, grpcAuthorizer, httpAuthorizer } from './authorizers.ts'
import { type GuardedHeaders, guardedHeaders, noGuardedHeaders } from './guarded-headers.ts'
import { jwtFilter } from './jwt-filter.ts'
import { matchesAll, policyName, type RuleTarget, rulePolicy } from './rbac.ts'

type Rules = MessageInitShape<typeof RBACSchema>
type Policies = Record<string, MessageInitShape<typeof PolicySchema>>

/** A packed filter by name; the same type for HTTP and network filter chains. */
export interface NamedFilter {
  readonly name: string
  readonly configType: { readonly case: 'typedConfig'; readonly value: Any }
}

type Protocol = RuleTarget['protocol']
/** Which attributes of a request are trusted. */
type Trust = Pick<RuleTarget, 'trustsForwarded'>

const filterNames = { http: 'envoy.filters.http', tcp: 'envoy.filters.network' } as const
/** The prefix of policy names in the RBAC filter that selects requests for an external authorizer. */
const customPrefix = 'mesh-ext-authz-'
const customStat = 'mesh_ext_authz_'

/** The filters for the policies of a workload, for HTTP and for TCP filter chains. */
export interface PolicyFilters {
  readonly http: readonly NamedFilter[]
  readonly tcp: readonly NamedFilter[]
  /** Whether the policies apply to requests and could not be enforced on plain TCP connections (docs/resources.md, A11). */
  readonly needRequests: boolean
  /** The headers that are removed from requests before anything else. */
  readonly headers: GuardedHeaders
}

/** Makes the filters. If policies cannot be expressed in Envoy's configuration, the reason is reported and everything is denied. */
export function filtersOf(policies: WorkloadPolicies, snapshot: MeshSnapshot, trust: Trust, report: (reason: string) => void): PolicyFilters {
  const make = (protocol: Protocol) =>
    contain(
      () => policyFilters(protocol, policies, snapshot, trust),
      (reason) => {
        report(reason)
        return [denyAll(protocol, 'default-deny-all-due-to-policies-that-cannot-be-expressed')]
      },
    )
  const needRequests = contain(
    () => judgeRequests(policies, snapshot),
    () => true,
  )
  const headers = contain(
    () => guardedHeaders(policies, snapshot),
    () => ({ ...noGuardedHeaders, dropsUnderscores: true }),
  )
  const authorizer = contain(
    () => authorizerFor(policies, snapshot),
    () => undefined,
  )
  if (authorizer && 'reason' in authorizer && !authorizer.isReported) report(authorizer.reason)
  return { http: make('http'), tcp: make('tcp'), needRequests, headers }
}

/** Returns the authorizer of the CUSTOM policies, or the reason why there is none; undefined if there are no such policies. */
function authorizerFor(policies: WorkloadPolicies, snapshot: MeshSnapshot): ReturnType<typeof authorizerOf> | undefined {
  const custom = snapshot.settings.plugins.includes('ext_authz') ? customPolicies(policies, snapshot) : []
  return custom.length > 0 ? authorizerOf(custom, snapshot) : undefined
}

/**
 * Whether TCP connections would bypass what the policies demand of requests (tokens; a CUSTOM policy with a condition on requests, or whose
 * provider only checks requests), or could never be allowed (ALLOW rules that all have conditions on requests; a DENY rule with such
 * conditions only).
 */
function judgeRequests(policies: WorkloadPolicies, snapshot: MeshSnapshot): boolean {
  const { plugins, optOuts, names } = snapshot.settings
  if (optOuts.has('undeclared-ports')) return false
  if (plugins.includes('authn') && jwtFilter(policies.requests, snapshot.keySets, '')) return true
  const authorizer = authorizerFor(policies, snapshot)
  if (authorizer && 'kind' in authorizer && (authorizer.kind === 'http' || rulesOf(customPolicies(policies, snapshot)).some(asksOfRequests)))
    return true
  if (!plugins.includes('authz')) return false
  const rules = (action: Action) => rulesOf(policies.authorization.filter((policy) => actionOf(policy) === action && !isDryRun(policy, names.domain)))
  const allow = rules('ALLOW')
  return (allow.length > 0 && allow.every(asksOfRequests)) || rules('DENY').some((rule) => rule.length > 0 && rule.every(isOfRequests))
}

/** Returns the conditions of each rule of the policies. */
const rulesOf = (policies: readonly AuthorizationPolicy[]): (readonly Condition[])[] =>
  policies.flatMap((policy) =>
    isStandIn(policy)
      ? []
      : (policy.spec.rules ?? []).map((rule) => resolveRule(rule, policy.namespace)).map(({ from, to, when }) => [from, to, when].flat(2)),
  )
const isOfRequests = ({ attribute }: Condition): boolean => isHttpOnly(attribute)
const asksOfRequests = (conditions: readonly Condition[]): boolean => conditions.some(isOfRequests)

const denyAll = (protocol: Protocol, name: string): NamedFilter =>
  rbac(protocol, { rules: { action: RBAC_Action.DENY, policies: { [name]: matchesAll } } })

/** Returns the filters for one protocol; empty if no policy selects the workload. */
export function policyFilters(protocol: Protocol, policies: WorkloadPolicies, snapshot: MeshSnapshot, trust: Trust): NamedFilter[] {
  const common = { protocol, ...trust, ...judgedBy(snapshot) }
  const jwt = protocol === 'http' ? jwtFilter(policies.requests, snapshot.keySets, snapshot.settings.lockedKeys) : undefined
  const plugins: Readonly<Record<string, () => NamedFilter[]>> = {
    ext_authz: () => customFilters({ ...common, allows: false }, policies, snapshot),
    authn: () => (jwt ? [named('envoy.filters.http.jwt_authn', pack(JwtAuthenticationSchema, jwt))] : []),
    authz: () =>
      (['AUDIT', 'DENY', 'ALLOW'] as const).flatMap((action) => stage(action, { ...common, allows: action === 'ALLOW' }, policies, snapshot)),
  }
  return snapshot.settings.plugins.flatMap((name) => (Object.hasOwn(plugins, name) ? (plugins[name]?.() ?? []) : []))
}

/** Returns the settings of the mesh on which the meaning of rules depends. */
const judgedBy = (snapshot: MeshSnapshot) => ({
  trustDomains: trustDomainsOf(snapshot),
  normalization: snapshot.mesh.pathNormalization.normalization,
  optOuts: snapshot.settings.optOuts,
})

const named = (name: string, value: Any): NamedFilter => ({ name, configType: { case: 'typedConfig', value } })

function stage(action: Exclude<Action, 'CUSTOM'>, target: RuleTarget, policies: WorkloadPolicies, snapshot: MeshSnapshot): NamedFilter[] {
  const { domain } = snapshot.settings.names
  const chosen = policies.authorization.filter((policy) => actionOf(policy) === action)
  const enforced = chosen.filter((policy) => !isDryRun(policy, domain))
  const tried = chosen.filter((policy) => isDryRun(policy, domain))
  if (chosen.length === 0) return []
  const rules = (list: readonly AuthorizationPolicy[]): Rules => ({
    action: action === 'AUDIT' ? RBAC_Action.LOG : RBAC_Action[action],
    policies: compile(list, target, ''),
  })
  return [
    rbac(target.protocol, {
      ...(enforced.length > 0 ? { rules: rules(enforced) } : {}),
      ...(tried.length > 0 ? { shadowRules: rules(tried), shadowRulesStatPrefix: `mesh_dry_run_${action.toLowerCase()}_` } : {}),
    }),
  ]
}

function rbac(protocol: Protocol, config: { rules?: Rules; shadowRules?: Rules; shadowRulesStatPrefix?: string }): NamedFilter {
  const name = `${filterNames[protocol]}.rbac`
  if (protocol === 'http') return named(name, pack(HttpRbacSchema, config as MessageInitShape<typeof HttpRbacSchema>))
  return named(name, pack(NetworkRbacSchema, { ...config, statPrefix: 'tcp.' } as MessageInitShape<typeof NetworkRbacSchema>))
}

/** Returns all rules of the policies. A policy without rules has none; an ALLOW stage without rules denies everything. */
function compile(policies: readonly AuthorizationPolicy[], target: RuleTarget, prefix: string): Policies {
  const compiled: Policies = {}
  for (const policy of policies) {
    if (isStandIn(policy)) {
      compiled[prefix + policyName(policy, 0)] = matchesAll
      continue
    }
    for (const [index, rule] of (policy.spec.rules ?? []).entries()) {
      const made = rulePolicy(resolveRule(rule, policy.namespace), target)
      if (made) compiled[prefix + policyName(policy, index)] = made
    }
  }
  return compiled
}

const customPolicies = ({ authorization }: WorkloadPolicies, { settings }: MeshSnapshot): AuthorizationPolicy[] =>
  authorization.filter((policy) => actionOf(policy) === 'CUSTOM' && !isDryRun(policy, settings.names.domain))

/** Returns filters that send matching requests to the workload's external authorizer, or deny everything if there is none. */
function customFilters(target: RuleTarget, policies: WorkloadPolicies, snapshot: MeshSnapshot): NamedFilter[] {
  const { protocol } = target
  const custom = customPolicies(policies, snapshot)
  if (custom.length === 0) return []
  const authorizer = authorizerOf(custom, snapshot)
  if ('reason' in authorizer) return [denyAll(protocol, 'default-deny-all-due-to-bad-CUSTOM-action')]
  if (protocol === 'tcp' && authorizer.kind === 'http') return []
  const rules: Rules = { action: RBAC_Action.DENY, policies: compile(custom, target, customPrefix) }
  return [rbac(protocol, { shadowRules: rules, shadowRulesStatPrefix: customStat }), externalAuthorization(protocol, authorizer)]
}

function externalAuthorization(protocol: Protocol, authorizer: Authorizer): NamedFilter {
  const filterEnabledMetadata = {
    filter: `${filterNames[protocol]}.rbac`,
    path: [{ segment: { case: 'key' as const, value: `${customStat}shadow_effective_policy_id` } }],
    value: { matchPattern: { case: 'stringMatch' as const, value: { matchPattern: { case: 'prefix' as const, value: customPrefix } } } },
  }
  const name = `${filterNames[protocol]}.ext_authz`
  if (protocol === 'tcp')
    return named(
      name,
      pack(NetworkExtAuthzSchema, {
        statPrefix: 'tcp.',
        failureModeAllow: authorizer.failOpen,
        transportApiVersion: 2,
        filterEnabledMetadata: filterEnabledMetadata as never,
        grpcService: grpcAuthorizer(authorizer) as never,
      }),
    )
  return named(
    name,
    pack(ExtAuthzSchema, {
      failureModeAllow: authorizer.failOpen,
      clearRouteCache: authorizer.clearRouteCache,
      ...(authorizer.body ? { withRequestBody: authorizer.body } : {}),
      transportApiVersion: 2,
      filterEnabledMetadata: filterEnabledMetadata as never,
      ...(authorizer.statusOnError !== undefined ? { statusOnError: { code: authorizer.statusOnError } } : {}),
      services:
        authorizer.kind === 'grpc'
          ? { case: 'grpcService', value: grpcAuthorizer(authorizer) as never }
          : { case: 'httpService', value: httpAuthorizer(authorizer) as never },
    }),
  )
}
