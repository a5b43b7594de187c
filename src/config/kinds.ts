/** Every kind of configuration object: its group, its versions, the shape of its spec, and whether it takes effect yet. */
import { envoyFilterSpec, serviceEntrySpec, workloadEntrySpec, workloadGroupSpec } from './registry-specs.ts'
import { authorizationPolicySpec, peerAuthenticationSpec, requestAuthenticationSpec } from './security-specs.ts'
import type { Shape } from './shape.ts'
import { destinationRuleSpec, gatewaySpec, sidecarSpec, virtualServiceSpec } from './traffic-specs.ts'

/** A kind of configuration object. */
export interface Kind {
  readonly name: string
  readonly plural: string
  /** First label of the API group; the mesh domain follows. */
  readonly group: 'networking' | 'security'
  readonly versions: readonly string[]
  readonly spec: Shape<unknown>
}

const networking = ['v1alpha3', 'v1beta1', 'v1']
const security = ['v1beta1', 'v1']

/** All kinds by name. */
export const kinds: ReadonlyMap<string, Kind> = new Map(
  (
    [
      { name: 'VirtualService', plural: 'virtualservices', group: 'networking', versions: networking, spec: virtualServiceSpec },
      { name: 'DestinationRule', plural: 'destinationrules', group: 'networking', versions: networking, spec: destinationRuleSpec },
      { name: 'Gateway', plural: 'gateways', group: 'networking', versions: networking, spec: gatewaySpec },
      { name: 'ServiceEntry', plural: 'serviceentries', group: 'networking', versions: networking, spec: serviceEntrySpec },
      { name: 'WorkloadEntry', plural: 'workloadentries', group: 'networking', versions: networking, spec: workloadEntrySpec },
      { name: 'WorkloadGroup', plural: 'workloadgroups', group: 'networking', versions: networking, spec: workloadGroupSpec },
      { name: 'Sidecar', plural: 'sidecars', group: 'networking', versions: networking, spec: sidecarSpec },
      { name: 'EnvoyFilter', plural: 'envoyfilters', group: 'networking', versions: networking, spec: envoyFilterSpec },
      { name: 'AuthorizationPolicy', plural: 'authorizationpolicies', group: 'security', versions: security, spec: authorizationPolicySpec },
      { name: 'RequestAuthentication', plural: 'requestauthentications', group: 'security', versions: security, spec: requestAuthenticationSpec },
      { name: 'PeerAuthentication', plural: 'peerauthentications', group: 'security', versions: security, spec: peerAuthenticationSpec },
    ] satisfies Kind[]
  ).map((kind) => [kind.name, kind]),
)

/** The key of an object among all others: `<Kind>/<namespace>/<name>`. */
export function configKey(object: { kind: string; namespace: string; name: string }): string {
  return `${object.kind}/${object.namespace}/${object.name}`
}
