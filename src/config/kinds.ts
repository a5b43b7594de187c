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
  readonly selects: Selection
}

/**
 * The proxies whose class an object decides: those of its namespace, or all where that is the root namespace; all routers; or none, where what
 * changes for a proxy follows from what its namespace sees.
 */
export type Selection = 'namespace' | 'routers' | 'none'

const networking = ['v1alpha3', 'v1beta1', 'v1']
const security = ['v1beta1', 'v1']

/** All kinds by name. */
export const kinds: ReadonlyMap<string, Kind> = new Map(
  (
    [
      { name: 'VirtualService', plural: 'virtualservices', group: 'networking', versions: networking, spec: virtualServiceSpec, selects: 'none' },
      { name: 'DestinationRule', plural: 'destinationrules', group: 'networking', versions: networking, spec: destinationRuleSpec, selects: 'none' },
      { name: 'Gateway', plural: 'gateways', group: 'networking', versions: networking, spec: gatewaySpec, selects: 'routers' },
      { name: 'ServiceEntry', plural: 'serviceentries', group: 'networking', versions: networking, spec: serviceEntrySpec, selects: 'none' },
      { name: 'WorkloadEntry', plural: 'workloadentries', group: 'networking', versions: networking, spec: workloadEntrySpec, selects: 'none' },
      { name: 'WorkloadGroup', plural: 'workloadgroups', group: 'networking', versions: networking, spec: workloadGroupSpec, selects: 'none' },
      { name: 'Sidecar', plural: 'sidecars', group: 'networking', versions: networking, spec: sidecarSpec, selects: 'namespace' },
      { name: 'EnvoyFilter', plural: 'envoyfilters', group: 'networking', versions: networking, spec: envoyFilterSpec, selects: 'namespace' },
      {
        name: 'AuthorizationPolicy',
        plural: 'authorizationpolicies',
        group: 'security',
        versions: security,
        spec: authorizationPolicySpec,
        selects: 'namespace',
      },
      {
        name: 'RequestAuthentication',
        plural: 'requestauthentications',
        group: 'security',
        versions: security,
        spec: requestAuthenticationSpec,
        selects: 'namespace',
      },
      {
        name: 'PeerAuthentication',
        plural: 'peerauthentications',
        group: 'security',
        versions: security,
        spec: peerAuthenticationSpec,
        selects: 'namespace',
      },
    ] satisfies Kind[]
  ).map((kind) => [kind.name, kind]),
)

/** The key of an object among all others: `<Kind>/<namespace>/<name>`. */
export function configKey(object: { kind: string; namespace: string; name: string }): string {
  return `${object.kind}/${object.namespace}/${object.name}`
}
