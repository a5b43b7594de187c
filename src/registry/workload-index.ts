/**
 * The workloads (WorkloadEntries and pods) and the selecting ServiceEntries of one namespace, indexed by labels, so that a change of one workload concerns only
 * the entries that select it before or after, and only its endpoint in them.
 */
import type { Endpoint } from '../../protocols/data.ts'
import { contain } from '../model/faults.ts'
import { LabelIndex } from '../model/label-index.ts'
import { addTo } from '../model/lists.ts'
import { labelsMatch } from '../model/match.ts'
import { byAge, compare } from '../model/order.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { type ServiceEntry, type Workload, workloadEndpoint, workloadLabels } from './service-entries.ts'

type Labels = Readonly<Record<string, string>>

/** A workload that an entry selects, with its endpoint. */
interface Selected {
  readonly key: string
  readonly workload: Workload
  readonly endpoint: Endpoint
}

const selectorOf = ({ spec }: ServiceEntry): Labels => spec.workloadSelector?.labels ?? {}
/** A label as the key of an index. Labels with equal keys only cause a needless comparison. */
const labelKey = (name: string, value: string): string => `${name}=${value}`

/** The workloads and selecting entries of one namespace. */
export class WorkloadIndex {
  readonly #names: MeshNames
  readonly #workloads = new Map<string, Workload>()
  readonly #labels = new LabelIndex()
  /** Workloads whose labels cannot be read. They concern every entry, and selecting for it fails. */
  readonly #unreadable = new Set<string>()
  /** Entries with a selector, by key. */
  readonly #entries = new Map<string, ServiceEntry>()
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
  setEntry(key: string, entry: ServiceEntry | undefined): void {
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
    const concerned = [...(before ? this.#concerned(labelsOf(before)) : []), ...(workload ? this.#concerned(labels) : [])]
    for (const entry of concerned) addTo(this.#touched, entry, key)
    if (workload) this.#workloads.set(key, workload)
    else this.#workloads.delete(key)
    if (labels) this.#labels.set(key, labels)
    else this.#labels.delete(key)
    if (workload && !labels) this.#unreadable.add(key)
    else this.#unreadable.delete(key)
  }

  /** Returns the entries whose workloads changed since the last call, by key. */
  takeTouched(): [key: string, entry: ServiceEntry, workloads: ReadonlySet<string>][] {
    const touched = [...this.#touched].flatMap(([key, workloads]): [string, ServiceEntry, Set<string>][] => {
      const entry = this.#entries.get(key)
      return entry ? [[key, entry, workloads]] : []
    })
    this.#touched = new Map()
    return touched
  }

  /** The endpoints of the workloads that an entry selects, the oldest first. All of them are made. */
  endpointsOf(entry: ServiceEntry): Endpoint[] {
    return this.#all(entry).map(({ endpoint }) => endpoint)
  }

  /**
   * The same for an entry of the index. Only endpoints of the workloads with the given keys are made again; all of them when the entry was
   * not asked about since it changed.
   */
  endpointsAfter(key: string, entry: ServiceEntry, workloads: ReadonlySet<string>): Endpoint[] {
    const known = this.#selected.get(key)
    // It is set again when all workloads were read.
    this.#selected.delete(key)
    const selected = known ? this.#replaced(known, entry, workloads) : this.#all(entry)
    this.#selected.set(key, selected)
    return selected.map(({ endpoint }) => endpoint)
  }

  #all(entry: ServiceEntry): Selected[] {
    const wanted = selectorOf(entry)
    const keys = Object.keys(wanted).length > 0 ? [...this.#labels.having(wanted), ...this.#unreadable] : this.#workloads.keys()
    return [...keys].flatMap((key) => this.#select(key, wanted)).sort(bySelectedAge)
  }

  #replaced(known: readonly Selected[], entry: ServiceEntry, keys: ReadonlySet<string>): Selected[] {
    const wanted = selectorOf(entry)
    const kept = known.filter(({ key }) => !keys.has(key))
    const added = [...keys].flatMap((key) => this.#select(key, wanted))
    // The sort takes the part that is in order as it is.
    return added.length === 0 ? kept : [...kept, ...added].sort(bySelectedAge)
  }

  /** The workload with this key, if it has the labels. */
  #select(key: string, wanted: Labels): Selected | [] {
    const workload = this.#workloads.get(key)
    return workload && labelsMatch(wanted, workloadLabels(workload)) ? { key, workload, endpoint: workloadEndpoint(workload, this.#names) } : []
  }

  /** Keys of the entries that a workload with these labels concerns: those that select it. */
  *#concerned(labels: Labels | undefined): Generator<string> {
    if (!labels) {
      yield* this.#entries.keys()
      return
    }
    for (const place of ['', ...Object.entries(labels).map(([name, value]) => labelKey(name, value))])
      for (const key of this.#byLabel.get(place) ?? []) {
        const entry = this.#entries.get(key)
        if (entry && labelsMatch(selectorOf(entry), labels)) yield key
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

/** The key under which an entry is found: the first label of its selector. */
function placeOf(entry: ServiceEntry): string {
  const [first] = Object.entries(selectorOf(entry)).sort(([one], [other]) => compare(one, other))
  return first ? labelKey(...first) : ''
}
