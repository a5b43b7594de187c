/**
 * Explains a resource by making it: from everything that was gathered, and again without each object. What a resource is made from is thereby
 * decided by the generators themselves; the reasons of what was left out come from the functions that choose (`reasons.ts`).
 */
import type { ConfigObject } from '../../../protocols/data.ts'
import type { Explained, ExplainedObject, ExplainInput, RegistryService } from '../../../protocols/messages/explain.ts'
import { configKey } from '../../config/kinds.ts'
import { plannerOf } from '../passed-mesh.ts'
import type { Planner } from '../planner.ts'
import { digestOf } from './candidates.ts'
import { Reasons } from './reasons.ts'

/** What one trial leaves out: an object, or a service of a registry. */
type Part = { readonly object: ConfigObject } | { readonly service: RegistryService }

/** Explains a resource. `isOver`: whether the time for it is used up; then the other objects are not tried. */
export function explain(input: ExplainInput, isOver: () => boolean): Explained {
  const whole = planned(input, undefined)
  const digest = digestIn(whole, input)
  const reasons = new Reasons(whole, input)
  const parts: Part[] = [...input.objects.map((object) => ({ object })), ...input.services.map((service) => ({ service }))]
  // Those of the proxy's namespace come first, where there is no time for all.
  const isForeign = (part: Part) => Number(referenceTo(part).namespace !== input.node.namespace)
  parts.sort((one, other) => isForeign(one) - isForeign(other))
  const objects: ExplainedObject[] = []
  let untried = 0
  for (const part of parts) {
    if (isOver()) {
      untried++
      continue
    }
    const without = changeOf(digest, digestIn(planned(input, part), input))
    objects.push({ ...referenceTo(part), without, reason: without === 'same' ? reasonOf(reasons, part) : '' })
  }
  for (const { object, reason } of input.leftOut) objects.push({ ...referenceTo({ object }), without: 'same', reason })
  return {
    exists: input.exists,
    isComplete: digest === input.digest && (digest !== undefined) === input.exists && untried === 0,
    ...{ objects: objects.sort(byEffect), untried, otherHosts: input.otherHosts },
  }
}

const reasonOf = (reasons: Reasons, part: Part): string => ('object' in part ? reasons.of(part.object) : reasons.ofService(part.service.service))

function changeOf(before: string | undefined, after: string | undefined): ExplainedObject['without'] {
  if (before === after) return 'same'
  if (before === undefined) return 'added'
  return after === undefined ? 'removed' : 'changed'
}

const effects: readonly ExplainedObject['without'][] = ['removed', 'changed', 'added', 'same']
const byEffect = (one: ExplainedObject, other: ExplainedObject): number => effects.indexOf(one.without) - effects.indexOf(other.without)

function referenceTo(part: Part): Omit<ExplainedObject, 'without' | 'reason'> {
  if ('object' in part) {
    const { namespace, source, cluster, uid, resourceVersion: version, place } = part.object
    return { key: configKey(part.object), namespace, source, cluster, uid, version, place }
  }
  const { registry, service } = part.service
  const { namespace, hostname: name } = service
  const key = configKey({ kind: 'Service', namespace, name })
  return { key, namespace, source: registry.provider, cluster: registry.cluster, uid: '', version: '', place: '' }
}

/** A planner of the gathered part of the mesh without one of its parts, with the proxy connected. */
function planned(input: ExplainInput, without: Part | undefined): Planner {
  const left = without && ('object' in without ? without.object : without.service)
  const services = input.services.filter((service) => service !== left)
  const planner = plannerOf(input, services, 'of an explanation')
  for (const object of input.objects) if (object !== left) planner.state.setConfig(configKey(object), object)
  planner.advance()
  planner.connect('proxy', input.node)
  return planner
}

function digestIn(planner: Planner, { typeUrl, name }: ExplainInput): string | undefined {
  const [proxy] = planner.proxies()
  return proxy?.proxyClass && digestOf(planner, proxy.proxyClass.id, typeUrl, name)
}
