/** Finds namespaces whose pods get no sidecar, or of whose labels for injection only one counts. */

import type { Resource } from '../../protocols/messages/analysis.ts'
import { orchestratorNamespaces } from '../inject/decision.ts'
import { labelRemarks } from '../inject/labels.ts'
import type { Tell } from './finding.ts'
import { isInjected, isInjectedNamespace, isProxy } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with the labels of a namespace. */
export function analyzeInjection({ name, labels }: Resource, world: World, tell: Tell): void {
  for (const { key, reason } of labelRemarks('Namespace', labels, world.names)) tell('IST0133', `metadata.labels[${key}]`, reason)
  if (orchestratorNamespaces.has(name) || name === world.mesh.rootNamespace) return
  const { names } = world
  const asked = labels['mesh-injection'] ?? labels['istio-injection']
  const revision = names.canonicalKeys(labels)[`${names.domain}/rev`]
  if (asked !== undefined && revision !== undefined)
    tell(
      'IST0123',
      'metadata.labels',
      `both mesh-injection=${asked} and ${names.domain}/rev=${revision} are there, and the first one decides: remove one`,
    )
  if (asked !== undefined && asked !== 'enabled' && asked !== 'disabled')
    tell('IST0133', 'metadata.labels', `the label for injection is ${JSON.stringify(asked)}, so its pods get no sidecar: it is enabled or disabled`)
  if (isInjectedNamespace(labels, world) !== undefined || !world.hasConfiguration(name)) return
  const without = world
    .workloadsIn(name)
    .find(({ labels: own, pod }) => isInjected(name, own, pod, world) === false && !pod?.hostNetwork && !pod?.hasEnded && !(pod && isProxy(pod)))
  if (without)
    tell(
      'IST0102',
      'metadata.name',
      `its pods get no sidecar, such as those of the ${without.kind} ${without.name}, though configuration of the mesh is in it: label it mesh-injection=enabled, or disabled if that is meant`,
    )
}
