/** Which filters enforce policies, for those that patch them. */

/** The filter that checks tokens. */
export const authentication = 'envoy.filters.http.jwt_authn'

const httpPolicies: ReadonlySet<string> = new Set([authentication, 'envoy.filters.http.rbac', 'envoy.filters.http.ext_authz'])
const networkPolicies: ReadonlySet<string> = new Set(['envoy.filters.network.rbac', 'envoy.filters.network.ext_authz'])

/** Whether an HTTP filter of this name enforces policies. */
export const isHttpPolicy = (name: string): boolean => httpPolicies.has(name)

/** Whether a filter of this name enforces policies. */
export const isPolicyFilter = (name: string): boolean => isHttpPolicy(name) || networkPolicies.has(name)

/** What follows for policies from a patch that takes such a filter away. */
export const enforcedNoMore = 'what policies enforce by this filter is enforced no more'
/** What follows from a patch that changes it. */
export const enforcedOtherwise = 'what policies enforce by this filter may be enforced otherwise'

/** Settings of filters for routes, as route configurations, virtual hosts and routes have them. */
interface WithSettings {
  readonly typedPerFilterConfig?: Readonly<Record<string, unknown>>
  readonly virtualHosts?: readonly WithSettings[]
  readonly routes?: readonly WithSettings[]
}

/** Names of the filters that enforce policies for which a message has settings for routes. */
export function policySettings({ typedPerFilterConfig = {}, virtualHosts = [], routes = [] }: WithSettings): string[] {
  return [...new Set([...Object.keys(typedPerFilterConfig).filter(isPolicyFilter), ...[...virtualHosts, ...routes].flatMap(policySettings)])]
}
