/** The table of all kinds of configuration objects. A kind is declared in a file of its own. */
import { authorizationPolicy } from './kinds/authorization-policy.ts'
import { destinationRule } from './kinds/destination-rule.ts'
import { envoyFilter } from './kinds/envoy-filter.ts'
import { gateway } from './kinds/gateway.ts'
import type { Kind } from './kinds/kind.ts'
import { peerAuthentication } from './kinds/peer-authentication.ts'
import { proxyConfig } from './kinds/proxy-config.ts'
import { requestAuthentication } from './kinds/request-authentication.ts'
import { serviceEntry } from './kinds/service-entry.ts'
import { sidecar } from './kinds/sidecar.ts'
import { telemetry } from './kinds/telemetry.ts'
import { trafficExtension } from './kinds/traffic-extension.ts'
import { virtualService } from './kinds/virtual-service.ts'
import { wasmPlugin } from './kinds/wasm-plugin.ts'
import { workloadEntry } from './kinds/workload-entry.ts'
import { workloadGroup } from './kinds/workload-group.ts'

const declared = [
  virtualService,
  destinationRule,
  gateway,
  serviceEntry,
  workloadEntry,
  workloadGroup,
  sidecar,
  envoyFilter,
  authorizationPolicy,
  requestAuthentication,
  peerAuthentication,
  telemetry,
  proxyConfig,
  wasmPlugin,
  trafficExtension,
] as const

/** The name of a declared kind. */
export type KindName = (typeof declared)[number]['name']

/** All kinds, by {@link kindId}. */
export const kinds: ReadonlyMap<string, Kind<KindName>> = new Map(declared.map((kind) => [kind.name, kind]))

/** What identifies an object among all objects. A group that is not given is that of the mesh's kind, or the core group. */
export interface ObjectId {
  readonly group?: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** The cluster; it identifies objects of {@link clusterKinds} only. */
  readonly cluster?: string
}

/** The kinds of the core group that describe a cluster. Each cluster has objects of its own, of whatever name. */
export const clusterKinds: ReadonlySet<string> = new Set(['Namespace', 'Node', 'Pod'])

/**
 * Returns the id of a kind, which is unique among the kinds of all groups: `<Kind>` for the kinds of {@link kinds} and those without a group,
 * `<Kind>.<group>` for kinds of other groups, such as `Gateway.gateway.networking.k8s.io`. It is the key of {@link kinds}.
 */
export function kindId({ group = '', kind }: Pick<ObjectId, 'group' | 'kind'>): string {
  if (group === '') return kind
  const own = kinds.get(kind)?.group
  return own !== undefined && group.startsWith(own) && group[own.length] === '.' ? kind : `${kind}.${group}`
}

/**
 * Returns the key of an object, which is unique among all objects: `<kind id>/<namespace>/<name>`, followed by `@<cluster>` for a kind of
 * {@link clusterKinds} whose cluster is known. Keys are made here and read by {@link readKey} and {@link kindOfKey}, and nowhere else.
 */
export function configKey(object: ObjectId): string {
  const key = `${kindId(object)}/${object.namespace}/${object.name}`
  return object.cluster && clusterKinds.has(object.kind) && !object.group ? `${key}@${object.cluster}` : key
}

/** Returns the key of an object of a kind of the mesh that is given by its path, `<namespace>/<name>`. */
export const keyAt = (kind: KindName, path: string): string => `${kind}/${path}`

/** Returns the {@link kindId} in a key. */
export function kindOfKey(key: string): string {
  const slash = key.indexOf('/')
  return slash < 0 ? key : key.slice(0, slash)
}

/** Returns the namespace in a key. */
export function namespaceOfKey(key: string): string {
  const start = key.indexOf('/') + 1
  return start === 0 ? '' : key.slice(start, key.indexOf('/', start))
}

/** Reads a key. The group of a kind of the mesh is its first label followed by `domain`. A text that is no key is a kind without a name. */
export function readKey(key: string, domain: string): Required<Omit<ObjectId, 'cluster'>> & Pick<ObjectId, 'cluster'> {
  const id = kindOfKey(key)
  const [, namespace = '', ...name] = key.split('/')
  const dot = id.indexOf('.')
  const own = kinds.get(id)?.group
  const [kind, group] = dot < 0 ? [id, own === undefined ? '' : `${own}.${domain}`] : [id.slice(0, dot), id.slice(dot + 1)]
  const last = name.join('/')
  const at = clusterKinds.has(id) ? last.indexOf('@') : -1
  return at < 0 ? { group, kind, namespace, name: last } : { group, kind, namespace, name: last.slice(0, at), cluster: last.slice(at + 1) }
}
