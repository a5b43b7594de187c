/** Finds registries and services that the networks of the mesh name and that do not exist. */
import { suggestion } from '../model/edit-distance.ts'
import { canonicalRegistry } from '../names/mesh-names.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion } from './near-hosts.ts'
import { isAbsent } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with the networks of the mesh. */
export function analyzeSettings(world: World, tell: Tell): void {
  const { mesh, clusters } = world
  for (const { host, path } of mesh.gatewayHosts)
    if (world.services(host.toLowerCase()).length === 0 && isAbsent(host.toLowerCase(), world))
      tell('IST0101', path, `there is no service ${host}, so the network has no gateway by it`, () => hostSuggestion(host, mesh.rootNamespace, world))
  if (clusters.length === 0) return
  for (const { name, path } of mesh.registries)
    if (!clusters.includes(name) && !clusters.includes(canonicalRegistry(name)))
      tell('IST0126', path, `there is no cluster ${name}, so this network has none of its endpoints${suggestion(name, clusters)}`)
}
