/** The objects that select a workload by its namespace and labels: one part of what the class of a proxy is found by. */
import type { ConfigObject, ProxyNode } from '../../../protocols/data.ts'
import type { EnvoyFilter, Gateway, Sidecar } from '../../snapshot/objects.ts'
import { selectsWorkload } from '../../snapshot/passed-on.ts'
import { allPolicies, policiesFor, selectingLabels } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { selectSidecar } from '../../snapshot/view.ts'
import { selectedFilters } from '../../xds/envoy-filter/selection.ts'

/** What selectors of objects look at. */
export interface SelectedWorkload {
  readonly type: ProxyNode['type']
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

/** The objects that select a workload. */
export interface SelectingObjects {
  readonly sidecar: Sidecar | undefined
  /** The Gateways that select a router; none of a sidecar. */
  readonly gateways: readonly Gateway[]
  /** EnvoyFilters by namespace and labels, in the order in which they apply. Whether a patch matches the proxy is not considered. */
  readonly filters: readonly EnvoyFilter[]
  /** The policies of each kind, as `<namespace>/<name>`. What they say does not decide the class. */
  readonly policies: readonly (readonly string[])[]
  /** The labels of the workload that the policies select it by. */
  readonly policyLabels: Readonly<Record<string, string>>
}

/** The parts of the snapshot that contain the objects. No other part may be read for them. */
export type SelectingParts = Pick<MeshSnapshot, 'settings' | 'mesh' | 'sidecars' | 'gateways' | 'envoyFilters' | 'policies'>

/** Finds the objects that select a workload. The result has no empty list or record of its own, because there is one result a workload. */
export function selectingObjects(parts: SelectingParts, workload: SelectedWorkload): SelectingObjects {
  const { type, labels } = workload
  const sidecar = type === 'sidecar' ? selectSidecar(parts, workload) : undefined
  const gateways = type === 'router' ? selectedGateways(parts, workload) : none
  const filters = selectedFilters(parts, workload)
  const policies = policiesFor(parts.policies, parts.mesh.rootNamespace, workload)
  const isPolicyless = allPolicies(policies).length === 0
  if (isPolicyless && !sidecar && gateways.length + filters.length === 0) return nothing
  const byPolicies = selectingLabels(policies)
  return {
    sidecar,
    gateways,
    filters: filters.length > 0 ? filters : none,
    policies: isPolicyless ? nothing.policies : [policies.authorization, policies.requests, policies.peers].map((list) => list.map(nameOf)),
    policyLabels: byPolicies.size > 0 ? Object.fromEntries(Object.entries(labels).filter(([name]) => byPolicies.has(name))) : nothing.policyLabels,
  }
}

const none: readonly never[] = []
const nothing: SelectingObjects = { sidecar: undefined, gateways: none, filters: none, policies: [none, none, none], policyLabels: {} }
const nameOf = ({ namespace, name }: ConfigObject): string => `${namespace}/${name}`

function selectedGateways({ gateways, settings }: SelectingParts, { namespace, labels }: SelectedWorkload): readonly Gateway[] {
  const scoped = settings.features.PILOT_SCOPE_GATEWAY_TO_NAMESPACE
  return gateways.filter((gateway) => selectsWorkload(gateway, { namespace, labels }, scoped))
}

/** The objects of a kind: a list, or lists by namespace. One that is the same object has the same objects. */
export type ObjectIndex = readonly ConfigObject[] | ReadonlyMap<string, readonly ConfigObject[]>

/** For each part with objects, these by kind. A part without a row is a type error. */
const objectsOf: {
  readonly [Part in Exclude<keyof SelectingParts, 'settings' | 'mesh'>]: (part: SelectingParts[Part]) => Record<string, ObjectIndex>
} = {
  sidecars: (sidecars) => ({ Sidecar: sidecars }),
  gateways: (gateways) => ({ Gateway: gateways }),
  envoyFilters: (envoyFilters) => ({ EnvoyFilter: envoyFilters }),
  policies: ({ authorization, requests, peers }) => ({
    AuthorizationPolicy: authorization,
    RequestAuthentication: requests,
    PeerAuthentication: peers,
  }),
}

/** The objects of all parts by kind. */
export function objectsByKind(parts: SelectingParts): Readonly<Record<string, ObjectIndex>> {
  const { sidecars, gateways, envoyFilters, policies } = objectsOf
  return {
    ...sidecars(parts.sidecars),
    ...gateways(parts.gateways),
    ...envoyFilters(parts.envoyFilters),
    ...policies(parts.policies),
  }
}
