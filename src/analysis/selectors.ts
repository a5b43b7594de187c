/** Finds selectors that match no workload, and objects in namespaces that do not exist. They are the same for all kinds. */
import type { ConfigObject } from '../../protocols/data.ts'
import { kindId, kinds } from '../config/kinds.ts'
import { isMapping } from '../config/shape.ts'
import type { Tell } from './finding.ts'
import { labelText, someWorkload, tellNoNamespace } from './references.ts'
import type { World } from './world.ts'

/** Tells whether an object selects nothing. */
export function analyzeSelector(object: ConfigObject, world: World, tell: Tell): void {
  const kind = kinds.get(kindId(object))
  const labels = kind?.selects?.labels(object.spec)
  if (!kind || !labels || Object.keys(labels).length === 0) return
  const namespace = selectedNamespace(object, world)
  if (someWorkload(labels, namespace, world) !== false) return
  const where = namespace === undefined ? '' : ` of the namespace ${namespace}`
  tell('IST0127', selectorPath(object.spec), `no workload${where} has the labels ${labelText(labels, world)}, so it has no effect at present`, () => {
    const renamed = renamedLabels(labels)
    return renamed && someWorkload(renamed, namespace, world) ? `; one has ${labelText(renamed, world)}` : ''
  })
}

/** Labels with `mesh`, by which Gateways select the gateways of the charts, in place of `istio`, which others have; undefined: they have no such label. */
const renamedLabels = ({ istio, ...others }: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined =>
  istio === undefined || others.mesh !== undefined ? undefined : { ...others, mesh: istio }

/** The namespace whose workloads an object with a selector may select; undefined: all of them. */
export function selectedNamespace(object: ConfigObject, world: World): string | undefined {
  const scope = kinds.get(kindId(object))?.scope
  const isMeshWide = scope === 'mesh' || (scope === 'namespace or mesh' && object.namespace === world.mesh.rootNamespace)
  return isMeshWide ? undefined : object.namespace
}

/** The fields that say which workloads an object selects, the inner ones first. */
const selecting = ['selector.matchLabels', 'selector', 'workloadSelector.labels', 'workloadSelector.matchLabels', 'workloadSelector']

/** The field by which an object selects workloads; where it has none, the whole of its spec, or its name where the spec is empty. */
export function selectorPath(spec: unknown): string {
  const has = (path: string) => path.split('.').reduce<unknown>((at, field) => (isMapping(at) ? at[field] : undefined), spec) !== undefined
  const found = selecting.find(has) ?? ['targetRef', 'targetRefs'].find(has)
  if (found) return `spec.${found}`
  return isMapping(spec) && Object.keys(spec).length > 0 ? 'spec' : 'metadata.name'
}

/** Tells whether an object is in a namespace that does not exist. */
export function analyzeNamespace({ namespace, kind }: ConfigObject, world: World, tell: Tell): void {
  if (namespace === '') return tell('IST0101', 'metadata.name', `this ${kind} is in no namespace, so it has no effect: set metadata.namespace`)
  tellNoNamespace(namespace, ', so it has no effect', { at: 'metadata.namespace', world, tell })
}
