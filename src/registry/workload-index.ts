/**
 * The workloads (WorkloadEntries and pods) of one namespace, and what selects them: ServiceEntries, and Services of the orchestrator. Indexed
 * by labels, so that a change of one workload concerns only those that select it before or after, and only its endpoint in them.
 */
import type { Endpoint } from '../../protocols/data.ts'
import { contain } from '../model/faults.ts'
import { LabelIndex } from '../model/label-index.ts'
import { addTo } from '../model/lists.ts'
import { labelsMatch } from '../model/match.ts'
import { byAge, compare } from '../model/order.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { type Workload, workloadEndpoint, workloadLabels } from './service-entries.ts'

type Labels = Readonly<Record<string, string>>

/** What selects workloads. Pods are no endpoints of a Service by its selector, since its slices list them. */
export interface Selector {
  readonly labels: Labels
  readonly takesPods: boolean
}

/** A workload that is selected, with its endpoint. */
interface Selected {
  readonly key: string
  readonly workload: Workload
  readonly endpoint: Endpoint
}

/** A label as the key of an index. Labels with equal keys only cause a needless comparison. */
const labelKey = (name: string, value: string): string => `${name}=${value}`

/** The workloads and selecting entries of one namespace. */
export class WorkloadIndex {
  readonly #names: MeshNames
  readonly #workloads = new Map<string, Workload>()
  readonly #labels = new LabelIndex()
  /** Workloads whose labels cannot be read. They concern every entry, and selecting for it fails. */
  readonly #unreadable = new Set<string>()
  /** What selects, by key. */
  readonly #entries = new Map<string, Selector>()
  /** Keys of entries by one label of their selector. A selector without labels is under the empty text. */
  readonly #byLabel = new Map<string, Set<string>>()
  /** What entries select, the oldest workload first, for entries that were selected for since they changed. */
  readonly #selected = new Map<string, readonly Selected[]>()
  /** By entry the workloads that have to be selected again. */
  #touched = new Map<string, Set<string>>()

  constructor(names: MeshNames) {
    this.#names = names
  }

  get isEmpty(): boolean {
    return this.#workloads.size + this.#entries.size === 0
  }

  /** Adds, replaces or removes an entry with a selector. */
  setEntry(key: string, entry: Selector | undefined): void {
    const before = this.#entries.get(key)
    if (before) this.#byLabel.get(placeOf(before))?.delete(key)
    if (before && this.#byLabel.get(placeOf(before))?.size === 0) this.#byLabel.delete(placeOf(before))
    this.#selected.delete(key)
    this.#touched.delete(key)
    if (!entry) {
      this.#entries.delete(key)
      return
    }
    this.#entries.set(key, entry)
    addTo(this.#byLabel, placeOf(entry), key)
  }

  /** Adds, replaces or removes a workload. */
  setWorkload(key: string, workload: Workload | undefined): void {
    const before = this.#workloads.get(key)
    const labels = workload && labelsOf(workload)
    const concerned = [...(before ? this.#concerned(before, labelsOf(before)) : []), ...(workload ? this.#concerned(workload, labels) : [])]
    for (const entry of concerned) addTo(this.#touched, entry, key)
    if (workload) this.#workloads.set(key, workload)
    else this.#workloads.delete(key)
    if (labels) this.#labels.set(key, labels)
    else this.#labels.delete(key)
    if (workload && !labels) this.#unreadable.add(key)
    else this.#unreadable.delete(key)
  }

  /** Returns the keys of what selects workloads that changed since the last call, with the keys of these. */
  takeTouched(): [key: string, workloads: ReadonlySet<string>][] {
    const touched = [...this.#touched].filter(([key]) => this.#entries.has(key))
    this.#touched = new Map()
    return touched
  }

  /** The endpoints of the workloads that are selected, the oldest first. All of them are made. */
  endpointsOf(entry: Selector): Endpoint[] {
    return this.#all(entry).map(({ endpoint }) => endpoint)
  }

  /**
   * The same for a selector of the index. Only endpoints of the workloads with the given keys are made again; all of them when it was not
   * asked about since it changed.
   */
  endpointsAfter(key: string, workloads: ReadonlySet<string>): Endpoint[] {
    const entry = this.#entries.get(key)
    if (!entry) return []
    const known = this.#selected.get(key)
    // It is set again when all workloads were read.
    this.#selected.delete(key)
    const selected = known ? this.#replaced(known, entry, workloads) : this.#all(entry)
    this.#selected.set(key, selected)
    return selected.map(({ endpoint }) => endpoint)
  }

  #all({ labels: wanted, takesPods }: Selector): Selected[] {
    const keys = Object.keys(wanted).length > 0 ? [...this.#labels.having(wanted), ...this.#unreadable] : this.#workloads.keys()
    return [...keys].flatMap((key) => this.#select(key, wanted, takesPods)).sort(bySelectedAge)
  }

  #replaced(known: readonly Selected[], { labels: wanted, takesPods }: Selector, keys: ReadonlySet<string>): Selected[] {
    const kept = known.filter(({ key }) => !keys.has(key))
    const added = [...keys].flatMap((key) => this.#select(key, wanted, takesPods))
    // The sort takes the part that is in order as it is.
    return added.length === 0 ? kept : [...kept, ...added].sort(bySelectedAge)
  }

  /** The workload with this key, if it has the labels. */
  #select(key: string, wanted: Labels, takesPods: boolean): Selected | [] {
    const workload = this.#workloads.get(key)
    return workload && (takesPods || !workload.ofPod) && labelsMatch(wanted, workloadLabels(workload))
      ? { key, workload, endpoint: workloadEndpoint(workload, this.#names) }
      : []
  }

  /** Keys of what a workload with these labels concerns: of all that selects it. */
  *#concerned({ ofPod }: Workload, labels: Labels | undefined): Generator<string> {
    if (!labels) {
      yield* this.#entries.keys()
      return
    }
    for (const place of ['', ...Object.entries(labels).map(([name, value]) => labelKey(name, value))])
      for (const key of this.#byLabel.get(place) ?? []) {
        const entry = this.#entries.get(key)
        if (entry && (entry.takesPods || !ofPod) && labelsMatch(entry.labels, labels)) yield key
      }
  }
}

const bySelectedAge = (one: Selected, other: Selected): number => byAge(one.workload, other.workload)

/** The labels of a workload. Undefined when they cannot be read. */
const labelsOf = (workload: Workload): Labels | undefined =>
  contain<Labels | undefined>(
    () => workloadLabels(workload),
    () => undefined,
  )

/** The key under which a selector is found: its first label. */
function placeOf({ labels }: Selector): string {
  const [first] = Object.entries(labels).sort(([one], [other]) => compare(one, other))
  return first ? labelKey(...first) : ''
}
