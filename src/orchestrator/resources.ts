/** The resources of an API server that are followed: their paths, and what is asked for (docs/operation.md, C3). */
import type { ListRequest, WatchRequest } from './list-watch.ts'
import type { MessageFields } from './protobuf-messages.ts'

/** A resource of the API. */
export interface Resource {
  readonly kind: string
  /** The path of its objects: of all, or of one by its name, which is then in a query. */
  readonly path: string
  /** Its name in RBAC rules, with its API group: `endpointslices.discovery.k8s.io`. */
  readonly name: string
  /** The namespace whose objects these are; undefined: those of all namespaces, or objects without one. */
  readonly namespace?: string
  /** What is read of its objects where they come in protobuf, which is asked for then; undefined: they come in JSON. */
  readonly fields?: MessageFields
}

/** A resource of the core API. */
export const coreResource = (kind: string, plural: string): Resource => ({ kind, path: `/api/v1/${plural}`, name: plural })

/** A resource of an API group. */
export const groupResource = (kind: string, group: string, version: string, plural: string): Resource => ({
  kind,
  path: `/apis/${group}/${version}/${plural}`,
  name: `${plural}.${group}`,
})

/** Resources whose objects are in no namespace, by their names in RBAC rules. */
const clusterScoped: ReadonlySet<string> = new Set([
  'namespaces',
  'nodes',
  'customresourcedefinitions.apiextensions.k8s.io',
  'ingressclasses.networking.k8s.io',
  'gatewayclasses.gateway.networking.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
])

/** The objects of one name in each namespace. A rule of RBAC with that name in `resourceNames` permits it. */
export const named = (resource: Resource, name: string): Resource => ({
  ...resource,
  path: `${resource.path}?${new URLSearchParams({ fieldSelector: `metadata.name=${name}` })}`,
})

/**
 * The resources to follow for the objects of a kind in some namespaces (`--appNamespace`); without any the one for all namespaces. A Role in
 * each of them permits it. Objects without a namespace, and those of one namespace, stay one resource.
 */
export function inNamespaces(resource: Resource, namespaces: readonly string[]): readonly Resource[] {
  const isOne = resource.namespace !== undefined || resource.path.includes('/namespaces/') || clusterScoped.has(resource.name)
  if (namespaces.length === 0 || isOne) return [resource]
  const slash = resource.path.lastIndexOf('/')
  const [group, plural] = [resource.path.slice(0, slash), resource.path.slice(slash + 1)]
  return namespaces.map((namespace) => ({ ...resource, path: `${group}/namespaces/${encodeURIComponent(namespace)}/${plural}`, namespace }))
}

/** The name of a resource for people: `pods`, or `pods of namespace shop`. */
export const shownResource = ({ name, namespace }: Resource): string => (namespace === undefined ? name : `${name} of namespace ${namespace}`)

/** One object of the core API, by its name; it need not exist. */
export const namedResource = (kind: string, plural: string, namespace: string, name: string): Resource => ({
  kind,
  path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}?${new URLSearchParams({ fieldSelector: `metadata.name=${name}` })}`,
  name: `${plural} ${namespace}/${name}`,
})

/** The Secrets of a namespace that have a label with the value `true`. */
export const labelled = (namespace: string, label: string): Resource => ({
  ...coreResource('Secret', 'secrets'),
  path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets?${new URLSearchParams({ labelSelector: `${label}=true` })}`,
})

/** The number of objects on a page of a list. */
const pageLength = 500
/** The shortest time after which the server is to end a watch, in seconds; up to as much again is added at random. */
const watchSeconds = 300

/** Returns the path of a request. `chance`: a random number from 0 to 1. */
export function requestPath({ path }: Resource, request: WatchRequest, chance: number): string {
  if (request.mode === 'page' || request.mode === 'whole') return listPath(path, request)
  const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(Math.round(watchSeconds * (1 + chance))) })
  if (request.mode === 'watch') query.set('resourceVersion', request.version)
  else {
    query.set('sendInitialEvents', 'true')
    query.set('resourceVersionMatch', 'NotOlderThan')
  }
  return withQuery(path, query)
}

/** Returns the path of a page of a list (`next`: the token of the page; empty: the first one), or of all of it. */
export function listPath(path: string, request: ListRequest): string {
  if (request.mode === 'whole') return path
  return withQuery(path, new URLSearchParams({ limit: String(pageLength), ...(request.next === '' ? {} : { continue: request.next }) }))
}

const withQuery = (path: string, query: URLSearchParams): string => `${path}${path.includes('?') ? '&' : '?'}${query}`

/** The verb of a request in RBAC rules. */
export const verbOf = ({ mode }: WatchRequest): string => (mode === 'page' || mode === 'whole' ? 'list' : 'watch')
