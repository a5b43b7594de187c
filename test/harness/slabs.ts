/** Finds the shared memory that patches of groups refer to. */
import type { GroupPatch, SlabData } from '../../protocols/messages/push.ts'

/** Returns the slabs that patches refer to, each once. */
export function slabsOf(patches: readonly GroupPatch[], slab: (id: number) => SlabData | undefined): SlabData[] {
  const ids = new Set<number>()
  for (const { changed } of patches) for (const { slices } of changed) for (let at = 0; at < slices.length; at += 3) ids.add(slices[at] as number)
  return [...ids].flatMap((id) => slab(id) ?? [])
}
