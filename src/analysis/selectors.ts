/** Finds selectors that match no workload, and objects in namespaces that do not exist. They are the same for all kinds. */
import type { ConfigObject } from '../../protocols/data.ts'
import { kindId, kinds } from '../config/kinds.ts'
import type { Tell } from './finding.ts'
import { labelText, someWorkload, tellNoNamespace } from './references.ts'
import type { World } from './world.ts'

/** Tells whether an object selects nothing. */
export function analyzeSelector(object: ConfigObject, world: World, tell: Tell): void {
  const kind = kinds.get(kindId(object))
  const labels = kind?.selects?.labels(object.spec)
  if (!kind || !labels || Object.keys(labels).length === 0) return
  const { namespace } = object
  const isMeshWide = kind.scope === 'mesh' || (kind.scope === 'namespace or mesh' && namespace === world.mesh.rootNamespace)
  if (someWorkload(labels, isMeshWide ? undefined : namespace, world) !== false) return
  const where = isMeshWide ? '' : ` of the namespace ${namespace}`
  tell('IST0127', 'spec', `no workload${where} has the labels ${labelText(labels)}, so it has no effect at present`)
}

/** Tells whether an object is in a namespace that does not exist. */
export function analyzeNamespace({ namespace, kind }: ConfigObject, world: World, tell: Tell): void {
  if (namespace === '') return tell('IST0101', 'metadata.namespace', `this ${kind} is in no namespace, so it has no effect: set one`)
  tellNoNamespace(namespace, ', so it has no effect', { at: 'metadata.namespace', world, tell })
}
