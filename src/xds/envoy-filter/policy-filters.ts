/** The filters that enforce policies, for patches that change or remove them. */

/** The filter that validates JWTs. */
export const authentication = 'envoy.filters.http.jwt_authn'

const httpPolicies: ReadonlySet<string> = new Set([authentication, 'envoy.filters.http.rbac', 'envoy.filters.http.ext_authz'])
const networkPolicies: ReadonlySet<string> = new Set(['envoy.filters.network.rbac', 'envoy.filters.network.ext_authz'])

/** Whether an HTTP filter of this name enforces policies. */
export const isHttpPolicy = (name: string): boolean => httpPolicies.has(name)

/** Whether an HTTP or network filter of this name enforces policies. */
export const isPolicyFilter = (name: string): boolean => isHttpPolicy(name) || networkPolicies.has(name)

/** The consequence of a patch that removes such a filter, for reports. */
export const enforcedNoMore = 'what policies enforce by this filter is enforced no more'
/** The consequence of a patch that changes such a filter, for reports. */
export const enforcedOtherwise = 'what policies enforce by this filter may be enforced otherwise'

/** Per-route settings of filters in route configurations, virtual hosts and routes. */
interface WithSettings {
  readonly typedPerFilterConfig?: Readonly<Record<string, unknown>>
  readonly virtualHosts?: readonly WithSettings[]
  readonly routes?: readonly WithSettings[]
}

/** Returns the names of policy-enforcing filters for which a message has per-route settings, at any level. */
export function policySettings({ typedPerFilterConfig = {}, virtualHosts = [], routes = [] }: WithSettings): string[] {
  return [...new Set([...Object.keys(typedPerFilterConfig).filter(isPolicyFilter), ...[...virtualHosts, ...routes].flatMap(policySettings)])]
}
