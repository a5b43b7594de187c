/** A mesh that is made again from what was passed on of it, to say what would be otherwise: explanations and dry runs. */
import type { RegistryService } from '../../protocols/messages/explain.ts'
import type { PassedSettings } from '../../protocols/messages/passed-settings.ts'
import type { Features } from '../config/features.ts'
import type { MeshConfig, MeshNetworks } from '../config/mesh-config.ts'
import type { PolicyCheckName } from '../config/opt-outs.ts'
import { meshNames } from '../names/mesh-names.ts'
import { registryName } from '../registry/merged-services.ts'
import { Planner } from './planner.ts'

/** Returns the settings of a mesh. */
export function passedSettings({ snapshot }: Pick<Planner, 'snapshot'>): PassedSettings {
  const { settings, mesh, networks, keySets } = snapshot
  const { features, domain, lockedKeys, plugins, optOuts } = settings
  return { features, domain, lockedKeys, plugins, optOuts: [...optOuts], mesh, networks, keySets: [...keySets] }
}

/** Returns a planner with these settings and services. `use`: what its versions are compared within. */
export function plannerOf(passed: PassedSettings, services: Iterable<RegistryService>, use: string): Planner {
  const { domain, lockedKeys, plugins, mesh, networks, keySets } = passed
  const features = passed.features as Features
  const optOuts = new Set(passed.optOuts as PolicyCheckName[])
  const planner = new Planner({ ...{ features, names: meshNames(features.MESH_DOMAIN), domain, lockedKeys, plugins, optOuts }, versionKey: use })
  const { state } = planner
  state.setMesh(mesh as MeshConfig)
  state.setNetworks(networks as MeshNetworks)
  for (const [source, keys] of keySets) state.setKeySet(source, keys)
  for (const { registry, key, service, slices } of services) state.services.set(registryName(registry), key, { service, slices })
  return planner
}
