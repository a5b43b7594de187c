/** The resources of an API server that are followed: their paths, and what is asked for (docs/operation.md, C3). */
import type { WatchRequest } from './list-watch.ts'

/** A resource of the API. */
export interface Resource {
  readonly kind: string
  /** The path of all its objects. */
  readonly path: string
  /** Its name in RBAC rules, with its API group: `endpointslices.discovery.k8s.io`. */
  readonly name: string
}

/** A resource of the core API. */
export const coreResource = (kind: string, plural: string): Resource => ({ kind, path: `/api/v1/${plural}`, name: plural })

/** A resource of an API group. */
export const groupResource = (kind: string, group: string, version: string, plural: string): Resource => ({
  kind,
  path: `/apis/${group}/${version}/${plural}`,
  name: `${plural}.${group}`,
})

/** The number of objects on a page of a list. */
const pageLength = 500
/** The shortest time after which the server is to end a watch, in seconds; up to as much again is added at random. */
const watchSeconds = 300

/** Returns the path of a request. `chance`: a random number from 0 to 1. */
export function requestPath({ path }: Resource, request: WatchRequest, chance: number): string {
  if (request.mode === 'page') return pagePath(path, request.next)
  const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(Math.round(watchSeconds * (1 + chance))) })
  if (request.mode === 'watch') query.set('resourceVersion', request.version)
  else {
    query.set('sendInitialEvents', 'true')
    query.set('resourceVersionMatch', 'NotOlderThan')
  }
  return `${path}?${query}`
}

/** Returns the path of a page of a list. `next`: the token of the page; empty: the first one. */
export const pagePath = (path: string, next: string): string =>
  `${path}?${new URLSearchParams({ limit: String(pageLength), ...(next === '' ? {} : { continue: next }) })}`

/** The verb of a request in RBAC rules. */
export const verbOf = ({ mode }: WatchRequest): string => (mode === 'page' ? 'list' : 'watch')
