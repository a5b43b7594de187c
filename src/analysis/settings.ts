/** Finds registries of the networks of the mesh that do not exist. */
import { suggestion } from '../model/edit-distance.ts'
import { canonicalRegistry } from '../names/mesh-names.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

/** Tells what is wrong with the networks of the mesh. */
export function analyzeSettings({ mesh: { registries }, clusters }: World, tell: Tell): void {
  if (clusters.length === 0) return
  for (const { name, path } of registries)
    if (!clusters.includes(name) && !clusters.includes(canonicalRegistry(name)))
      tell('IST0126', path, `there is no cluster ${name}, so this network has none of its endpoints${suggestion(name, clusters)}`)
}
