/** How an object is named to people and programs, with its place. */
import type { ConfigObject, ObjectReference } from '../../protocols/data.ts'
import { readKey } from '../config/kinds.ts'

/** Names the place of an object with its source: `reviews.yaml, document 1 of files`. */
export const placeOf = ({ place, source }: ConfigObject): string => `${place} of ${source}`

/**
 * Returns the reference to the object with a key. `object` is its present state, if there is one: for other objects, such as services of a
 * registry, only the key is known. `domain` is that of the mesh.
 */
export function referenceTo(key: string, object: ConfigObject | undefined, domain: string): ObjectReference {
  const { source = '', cluster = '', uid = '', resourceVersion: version = '', place = '' } = object ?? {}
  return { ...readKey(key, domain), source, cluster, uid, version, place }
}
