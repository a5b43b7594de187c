/** Manifests for tests. */
import type { GroupUse } from '../../protocols/messages/push.ts'

/** Groups of which nothing is hidden. */
export function wholeGroups(...groups: readonly string[]): GroupUse[] {
  return groups.map((group) => ({ group, hide: [] }))
}
