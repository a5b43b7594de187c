/** The mesh for a dry run, in rows: settings, objects, services of registries and connected proxies. */
import type { DryRunRow } from '../../../protocols/messages/dry-run.ts'
import { registryName } from '../../registry/merged-services.ts'
import { passedSettings } from '../passed-mesh.ts'
import type { Planner } from '../planner.ts'

/** The maximum number of proxies of one dry run. */
export const mostProxies = 10_000

/** What rows cost to copy, in small objects. */
const weights = { settings: 200, object: 20, service: 5, proxy: 30 }

/** Yields each row with what it costs to copy. */
export function* dryRunRows(planner: Planner): Generator<readonly [row: DryRunRow, weight: number]> {
  const { state } = planner
  yield [{ settings: { ...passedSettings(planner), networks: state.networks.inForce.value } }, weights.settings]
  for (const object of state.objects.each()) yield [{ object }, weights.object]
  for (const object of state.undiscovered()) yield [{ object }, weights.object]
  for (const key of state.keysInClusters()) {
    const object = state.object(key)
    if (object) yield [{ object }, weights.object]
  }
  for (const [source, key, { service, slices }] of state.services.records()) {
    // Services of ServiceEntries follow from these.
    if (source !== registryName(service)) continue
    const { provider, cluster } = service
    const endpoints = slices.reduce((sum, slice) => sum + slice.endpoints.length, 0)
    yield [{ service: { registry: { provider, cluster }, key, service, slices } }, weights.service + endpoints]
  }
  let count = 0
  for (const { node } of planner.proxies()) if (count++ < mostProxies) yield [{ proxy: { nodeId: node.id, node } }, weights.proxy]
  if (count > mostProxies) yield [{ left: count - mostProxies }, 1]
}
