/** Finds configuration objects and fields that have no effect (docs/kinds.md), or not for all proxies, so that this can be reported. */
import type { ConfigObject } from '../../protocols/data.ts'
import { count } from '../model/counts.ts'
import { contain, type ResourceFault } from '../model/faults.ts'
import { configKey, kindId, kindOfKey, kinds } from './kinds.ts'
import { type Fault, idleFields } from './shape.ts'
import { isStandIn } from './stand-in.ts'

/** Returns the fields of an object that have no effect, with reasons. An empty path is the whole object. `domain` is that of the mesh. */
export function withoutEffect(object: ConfigObject, domain: string): Fault[] {
  const kind = kinds.get(kindId(object))
  if (!kind || isStandIn(object)) return []
  if (kind.without !== undefined) return [{ path: '', reason: `has no effect yet: ${kind.without}` }]
  return contain(
    () => [...idleFields(kind.spec.form, object.spec, 'spec'), ...(kind.remarks?.(object, domain) ?? [])],
    () => [],
  )
}

/** An object with fields that have no effect. */
export interface EffectRow {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly place: string
  readonly fields: readonly Fault[]
}

/**
 * Returns the rows of all objects with fields that have no effect, and of those of which some proxies lose something by a rule: the losses
 * among `faults`, and what proxies refuse of objects that are withdrawn from them, with an empty path.
 */
export function effectRows(
  objects: readonly ConfigObject[],
  domain: string,
  faults: readonly ResourceFault[],
  withdrawn: Iterable<{ readonly key: string; readonly reason: string }> = [],
): EffectRow[] {
  const losses = new Map<string, Set<string>>()
  const add = (key: string, loss: string) => losses.set(key, (losses.get(key) ?? new Set()).add(loss))
  for (const { key, reason } of withdrawn) add(key, `proxies refuse it, and have their configuration without what they refuse: ${reason}`)
  for (const { isLoss, objects: concerned, resource, reason, consequence } of faults)
    if (isLoss) for (const key of concerned) add(key, `${resource}: ${reason}; ${consequence}`)
  return objects.flatMap((object) => {
    const { kind, namespace, name, place } = object
    const lost = [...(losses.get(configKey(object)) ?? [])].sort().map((reason): Fault => ({ path: '', reason }))
    const fields = [...withoutEffect(object, domain), ...lost]
    return fields.length > 0 ? [{ kind, namespace, name, place, fields }] : []
  })
}

/** Keeps track of the fields already logged, so that each is logged once for as long as it is set. */
export class EffectLog {
  readonly #said = new Map<string, ReadonlySet<string>>()

  /** Returns the log lines for an object that was set or removed, one for each newly found field. */
  lines(key: string, object: ConfigObject | undefined, domain: string): string[] {
    const before = this.#said.get(key)
    const fields = object ? withoutEffect(object, domain) : []
    if (fields.length === 0) {
      this.#said.delete(key)
      return []
    }
    const now = fields.map(({ path, reason }) => (path === '' ? reason : `field ${path}: ${reason}`))
    this.#said.set(key, new Set(now))
    return now.filter((line) => !before?.has(line)).map((line) => `${key} (${object?.place}): ${line}`)
  }

  /** Returns the number of objects with fields that have no effect, by kind. Undefined when there are none. */
  summary(): string | undefined {
    if (this.#said.size === 0) return undefined
    const counts = new Map<string, number>()
    for (const key of this.#said.keys()) counts.set(kindOfKey(key), (counts.get(kindOfKey(key)) ?? 0) + 1)
    const kinds = [...counts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([kind, count]) => `${kind} ${count}`)
    return `${count(this.#said.size, 'object has', 'objects have')} no effect as a whole or in some fields (${kinds.join(', ')}); /debug/noeffectz lists them, docs/kinds.md says what works`
  }
}
