/**
 * Questions about which objects select a workload, recorded by workload: proxies with equal labels in a namespace share one. After a change
 * only those are asked again whose workload a differing object selects, or selected.
 */
import type { ConfigObject } from '../../../protocols/data.ts'
import { kinds } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import { LabelIndex } from '../../model/label-index.ts'
import { addTo, sameItems } from '../../model/lists.ts'
import { labelsMatch } from '../../model/match.ts'
import { isMeshWide } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import {
  type ObjectIndex,
  objectsByKind,
  type SelectedWorkload,
  type SelectingObjects,
  type SelectingParts,
  selectingObjects,
} from '../classes/selecting-objects.ts'
import type { Dependencies, Topic } from './dependencies.ts'

/** Reads which objects select a workload. */
export class SelectingReader implements Topic<MeshSnapshot, SelectingParts> {
  readonly #record: Dependencies<MeshSnapshot>
  /** The workloads that were asked about. */
  readonly #asked = new AskedWorkloads()
  readonly keepsAnswers = true

  constructor(record: Dependencies<MeshSnapshot>) {
    this.#record = record
  }

  /** The objects that select a workload. */
  select(workload: SelectedWorkload): SelectingObjects {
    if (!this.#record.isRecording) return selectingObjects(this.#record.state, workload)
    const key = JSON.stringify([workload.type, workload.namespace, workload.labels])
    this.#asked.add(key, workload)
    return this.#record.read(this, key, this.#ask, sameObjects)
  }

  readonly #ask = (parts: SelectingParts, key: string): SelectingObjects => selectingObjects(parts, this.#asked.get(key) as SelectedWorkload)

  of(snapshot: MeshSnapshot): SelectingParts {
    return snapshot
  }

  dropped(key: string): void {
    this.#asked.delete(key)
  }

  changed(before: SelectingParts, now: SelectingParts): Iterable<string> | undefined {
    if (before.mesh.rootNamespace !== now.mesh.rootNamespace || before.settings !== now.settings) return undefined
    const found = new Set<string>()
    const old = objectsByKind(before)
    for (const [kind, objects] of Object.entries(objectsByKind(now)))
      for (const object of differing(old[kind] ?? [], objects))
        for (const key of this.#asked.selectedBy(kind, object, now.mesh.rootNamespace)) found.add(key)
    return found
  }
}

const sameObjects = (one: SelectingObjects, other: SelectingObjects): boolean =>
  one.sidecar === other.sidecar &&
  sameItems(one.gateways, other.gateways) &&
  sameItems(one.filters, other.filters) &&
  JSON.stringify([one.policies, one.policyLabels]) === JSON.stringify([other.policies, other.policyLabels])

/** The objects that are in only one of two indexes. */
function differing(before: ObjectIndex, now: ObjectIndex): readonly ConfigObject[] {
  if (before === now) return []
  const lists = (index: ObjectIndex): readonly (readonly ConfigObject[])[] =>
    index instanceof Map ? [...index.values()] : [index as readonly ConfigObject[]]
  const [there, here] = [new Set(lists(before)), new Set(lists(now))]
  // Lists that are the same object on both sides are left out as a whole.
  const old = new Set([...there].filter((list) => !here.has(list)).flat())
  const fresh = new Set([...here].filter((list) => !there.has(list)).flat())
  return [...[...old].filter((object) => !fresh.has(object)), ...[...fresh].filter((object) => !old.has(object))]
}

/** Workloads by key, indexed by what objects select them by. */
class AskedWorkloads {
  readonly #workloads = new Map<string, SelectedWorkload>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #routers = new Set<string>()
  readonly #labels = new LabelIndex()

  get(key: string): SelectedWorkload | undefined {
    return this.#workloads.get(key)
  }

  add(key: string, { type, namespace, labels }: SelectedWorkload): void {
    if (this.#workloads.has(key)) return
    this.#workloads.set(key, { type, namespace, labels })
    addTo(this.#byNamespace, namespace, key)
    if (type === 'router') this.#routers.add(key)
    this.#labels.set(key, labels)
  }

  delete(key: string): void {
    const workload = this.#workloads.get(key)
    if (!workload) return
    this.#workloads.delete(key)
    this.#routers.delete(key)
    this.#labels.delete(key)
    const others = this.#byNamespace.get(workload.namespace)
    others?.delete(key)
    if (others?.size === 0) this.#byNamespace.delete(workload.namespace)
  }

  /** The keys of the workloads that an object of a kind may select. */
  selectedBy(kind: string, { namespace, spec }: ConfigObject, rootNamespace: string): Iterable<string> {
    const declared = kinds.get(kind)
    if (!declared?.selects) return this.#workloads.keys()
    const { scope, selects } = declared
    // An object whose selector cannot be read is treated as if it selected any workload.
    const labels = contain(
      () => selects.labels(spec as never) ?? {},
      () => ({}),
    )
    const isOfType = (key: string) => selects.proxies === 'all' || this.#routers.has(key) === (selects.proxies === 'routers')
    if (scope === 'namespace' || (scope === 'namespace or mesh' && !isMeshWide(namespace, rootNamespace)))
      return [...(this.#byNamespace.get(namespace) ?? [])].filter((key) => isOfType(key) && labelsMatch(labels, this.#labels.of(key)))
    if (Object.keys(labels).length > 0) return this.#labels.having(labels).filter(isOfType)
    return selects.proxies === 'routers' ? this.#routers : [...this.#workloads.keys()].filter(isOfType)
  }
}
