/** Type URLs of the resources that are served, their short names, and the order they are pushed in (docs/resources.md, Q3). */

import { typeUrlsOf } from '../names/mesh-names.ts'

const prefix = 'type.googleapis.com/'

export const clusterType = `${prefix}envoy.config.cluster.v3.Cluster`
export const endpointType = `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`
export const listenerType = `${prefix}envoy.config.listener.v3.Listener`
export const routeType = `${prefix}envoy.config.route.v3.RouteConfiguration`
export const virtualHostType = `${prefix}envoy.config.route.v3.VirtualHost`
export const secretType = `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`
export const extensionConfigType = `${prefix}envoy.config.core.v3.TypedExtensionConfig`

/** `mesh.networking.nds.v1.NameTable` (protocols/proto/mesh/networking/nds/v1/nds.proto). */
export const { mesh: nameTableType, alias: aliasNameTableType } = typeUrlsOf('mesh.networking.nds.v1.NameTable')

/** Types in the order in which a proxy is sent them. */
export const pushOrder: readonly string[] = [
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
])

/** Other types that clients have asked for; they choose the names, so only so many are told apart. */
const others = new Set<string>()
const mostOthers = 50

/** `cds`, `eds` ...; the URL itself for a type without a short name, `other` once there are too many of those. */
export function shortType(typeUrl: string): string {
  const short = shortNames.get(typeUrl)
  if (short !== undefined) return short
  if (others.size < mostOthers && typeUrl.length < 200) others.add(typeUrl)
  return others.has(typeUrl) ? typeUrl : 'other'
}

/** Whether a subscription without names means every resource of the type. */
export function isWildcardType(typeUrl: string): boolean {
  return typeUrl !== endpointType && typeUrl !== routeType && typeUrl !== secretType
}

/** Whether an answer in state of the world holds all that is subscribed to of the type, so that what is not in it is gone. */
export function isWholeType(typeUrl: string): boolean {
  return typeUrl === clusterType || typeUrl === listenerType
}
