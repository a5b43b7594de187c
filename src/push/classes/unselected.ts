/** Finds objects that select none of some workloads, since a label or their namespace is misspelt. */
import type { ConfigObject } from '../../../protocols/data.ts'
import { configKey, kinds } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import { labelsMatch } from '../../model/match.ts'
import { isMeshWide } from '../../snapshot/policies.ts'
import { type ObjectIndex, objectsByKind, type SelectedWorkload, type SelectingParts } from './selecting-objects.ts'

/** A workload as selectors see it. Without a type it may be of any. */
export type SeenWorkload = Pick<SelectedWorkload, 'namespace' | 'labels'> & Partial<Pick<SelectedWorkload, 'type'>>

/** What a workload must be and have to be selected by an object. */
interface Wanted {
  readonly type: SelectedWorkload['type'] | undefined
  readonly labels: Readonly<Record<string, string>>
}

/** The number of objects and labels that are looked at before a pause. */
const piece = 100

/** The place of objects that select workloads of all namespaces. */
const everywhere = ''

/** The objects that have selected none of the workloads so far. */
export class Unselected {
  #done = 0
  /** By namespace and one label of the selector, empty where there is none, what the objects want by their keys. */
  readonly #objects = new Map<string, Map<string, Map<string, Wanted>>>()

  /** Counts a piece of work. Returns whether it is time for a pause. */
  #isPause(): boolean {
    return ++this.#done % piece === 0
  }

  /** Takes the objects, before all workloads; of those that select gateways alone none without `hasRouters`. Yields after each piece of work. */
  *read(parts: SelectingParts, hasRouters: boolean): Generator<undefined, void> {
    for (const index of Object.values(objectsByKind(parts)))
      for (const object of objectsOf(index)) {
        if (this.#isPause()) yield
        this.#add(object, parts, hasRouters)
      }
  }

  #add(object: ConfigObject, { mesh, settings }: SelectingParts, hasRouters: boolean): void {
    const { scope, selects } = kinds.get(object.kind) ?? {}
    if (!selects || (selects.proxies === 'routers' && !hasRouters)) return
    // An object whose selector cannot be read is treated as if it selected any workload.
    const labels = contain(
      () => selects.labels(object.spec as never) ?? {},
      () => ({}),
    )
    const isWide = scope === 'mesh' ? !settings.features.PILOT_SCOPE_GATEWAY_TO_NAMESPACE : isMeshWide(object.namespace, mesh.rootNamespace)
    const place = isWide ? everywhere : object.namespace
    const [first] = Object.entries(labels)
    const label = first ? first.join('=') : ''
    const byLabel = this.#objects.get(place) ?? new Map<string, Map<string, Wanted>>()
    this.#objects.set(place, byLabel)
    const type = selects.proxies === 'all' ? undefined : selects.proxies === 'routers' ? 'router' : 'sidecar'
    byLabel.set(label, (byLabel.get(label) ?? new Map<string, Wanted>()).set(configKey(object), { type, labels }))
  }

  /** Whether every object has selected a workload. */
  get isEmpty(): boolean {
    return this.#objects.size === 0
  }

  /** The keys of the objects. */
  get keys(): string[] {
    return [...this.#objects.values()].flatMap((byLabel) => [...byLabel.values()].flatMap((objects) => [...objects.keys()])).sort()
  }

  /** Takes a workload: what selects it is no longer among the objects. Yields after each piece of work. */
  *take({ namespace, labels, type }: SeenWorkload): Generator<undefined, void> {
    for (const place of new Set([everywhere, namespace])) {
      const byLabel = this.#objects.get(place)
      if (!byLabel) continue
      for (const label of ['', ...Object.entries(labels).map((each) => each.join('='))]) {
        if (this.#isPause()) yield
        const objects = byLabel.get(label)
        if (!objects) continue
        for (const [key, wanted] of objects) {
          if (this.#isPause()) yield
          if ((type === undefined || wanted.type === undefined || wanted.type === type) && labelsMatch(wanted.labels, labels)) objects.delete(key)
        }
        if (objects.size === 0) byLabel.delete(label)
      }
      if (byLabel.size === 0) this.#objects.delete(place)
    }
  }
}

const objectsOf = (index: ObjectIndex): readonly ConfigObject[] =>
  index instanceof Map ? [...index.values()].flat() : (index as readonly ConfigObject[])
