/** The namespaces that see what is not visible to all (docs/resources.md, V1). */
import { consequences, contain, type ResourceFault } from '../model/faults.ts'
import { isPublic } from '../model/match.ts'

/**
 * The namespaces that see an object which is not visible to all. Empty for an object visible to all, and for one whose visibility cannot be
 * determined, which is reported as a fault under its `key`.
 */
export function audience(
  key: () => string,
  exportTo: readonly string[],
  fallback: readonly string[],
  owner: string,
  faults: ResourceFault[],
): string[] {
  return contain(
    () => {
      if (isPublic(exportTo, fallback)) return []
      const targets = exportTo.length > 0 ? exportTo : fallback
      return targets.flatMap((target) => (target === '.' ? [owner] : target === '~' ? [] : [target]))
    },
    (reason) => {
      faults.push({ type: 'index', resource: key(), objects: key().split(','), reason, consequence: consequences.leftOut })
      return []
    },
  )
}
