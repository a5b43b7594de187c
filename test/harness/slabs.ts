/** Finds the shared memory that updates of groups refer to. */
import type { GroupUpdate, SlabData } from '../../protocols/messages/push.ts'

/** Returns the slabs that updates refer to, each once. */
export function slabsOf(updates: readonly GroupUpdate[], slab: (id: number) => SlabData | undefined): SlabData[] {
  const ids = new Set<number>()
  for (const { changed } of updates) for (const { slices } of changed) for (let at = 0; at < slices.length; at += 3) ids.add(slices[at] as number)
  return [...ids].flatMap((id) => slab(id) ?? [])
}
