/** Manifests for tests. */
import type { GroupUse } from '../../protocols/messages/push.ts'

/** Returns uses of groups without hidden hosts. */
export function wholeGroups(...groups: readonly string[]): GroupUse[] {
  return groups.map((group) => ({ group, hide: [] }))
}
