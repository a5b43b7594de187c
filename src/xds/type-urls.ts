/** Type URLs of the served resources, their short names, and the order in which types are pushed (docs/resources.md, Q3). */

import { typeUrlsOf } from '../names/mesh-names.ts'

const prefix = 'type.googleapis.com/'

export const clusterType = `${prefix}envoy.config.cluster.v3.Cluster`
export const endpointType = `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`
export const listenerType = `${prefix}envoy.config.listener.v3.Listener`
export const routeType = `${prefix}envoy.config.route.v3.RouteConfiguration`
export const virtualHostType = `${prefix}envoy.config.route.v3.VirtualHost`
export const secretType = `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`
/** What a proxy told of itself: no resource that is served. */
export const nodeType = `${prefix}envoy.config.core.v3.Node`
export const extensionConfigType = `${prefix}envoy.config.core.v3.TypedExtensionConfig`

/** `mesh.networking.nds.v1.NameTable` (protocols/proto/mesh/networking/nds/v1/nds.proto). */
export const { mesh: nameTableType, alias: aliasNameTableType } = typeUrlsOf('mesh.networking.nds.v1.NameTable')

/** `mesh.security.v1.TrustBundle` (protocols/proto/mesh/security/v1/trust_bundle.proto). */
export const trustBundleType = `${prefix}mesh.security.v1.TrustBundle`

/** `mesh.v1.HealthInformation`: the type of requests by which agents report the health of their workloads. It has no resources. */
export const { mesh: healthType, alias: aliasHealthType } = typeUrlsOf('mesh.v1.HealthInformation')

/** Types in the order in which they are sent to a proxy. */
export const pushOrder: readonly string[] = [
  trustBundleType,
  clusterType,
  endpointType,
  listenerType,
  routeType,
  virtualHostType,
  secretType,
  extensionConfigType,
  nameTableType,
  aliasNameTableType,
]

const shortNames: ReadonlyMap<string, string> = new Map([
  [clusterType, 'cds'],
  [endpointType, 'eds'],
  [listenerType, 'lds'],
  [routeType, 'rds'],
  [virtualHostType, 'vhds'],
  [secretType, 'sds'],
  [extensionConfigType, 'ecds'],
  [nameTableType, 'nds'],
  [aliasNameTableType, 'nds'],
  [trustBundleType, 'trust'],
])

/** The type URLs by short name. */
export const shortTypes: ReadonlyMap<string, string> = new Map([...shortNames].map(([typeUrl, short]) => [short, typeUrl]))

/** Other type URLs that clients subscribed to. Clients choose the names, so only a limited number is reported separately. */
const others = new Set<string>()
const maxOthers = 50

/** Returns `cds`, `eds` ...; for a type without a short name its URL, or `other` once the limit of those is reached. */
export function shortType(typeUrl: string): string {
  const short = shortNames.get(typeUrl)
  if (short !== undefined) return short
  if (others.size < maxOthers && typeUrl.length < 200) others.add(typeUrl)
  return others.has(typeUrl) ? typeUrl : 'other'
}

/** Whether an empty subscription means all resources of the type (S1, D1). */
export function isWildcardType(typeUrl: string): boolean {
  return typeUrl !== endpointType && typeUrl !== routeType && typeUrl !== secretType
}

/** Whether a state-of-the-world response contains all subscribed resources of the type, so that a missing resource is removed (S5). */
export function isWholeType(typeUrl: string): boolean {
  return typeUrl === clusterType || typeUrl === listenerType
}
