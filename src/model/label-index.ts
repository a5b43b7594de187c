/**
 * Keys of labelled things (keys, workloads) by their labels. Only labels that selectors use are indexed, because those who set them
 * choose how many there are.
 */
import { addTo } from './lists.ts'
import { labelsMatch } from './match.ts'

type Labels = Readonly<Record<string, string>>

/** The maximum number of label names that are indexed; the least recently used one is evicted. */
const maxIndexed = 100
const none: Labels = {}

/** Finds keys by labels. */
export class LabelIndex {
  readonly #labels = new Map<string, Labels>()
  /** By label name and value the keys, for the label names that were looked up. */
  readonly #indexed = new Map<string, Map<string, Set<string>>>()

  /** The labels of a key; empty for an unknown one. */
  of(key: string): Labels {
    return this.#labels.get(key) ?? none
  }

  /** Sets the labels of a key. */
  set(key: string, labels: Labels): void {
    const before = this.of(key)
    if (before === labels) return
    this.#labels.set(key, labels)
    this.#move(key, before, labels)
  }

  delete(key: string): void {
    this.#move(key, this.of(key), none)
    this.#labels.delete(key)
  }

  /** The keys that have all of the `wanted` labels, of which there must be at least one. */
  having(wanted: Labels): string[] {
    const sets = Object.entries(wanted).map(([name, value]) => this.#values(name).get(value))
    const smallest = sets.reduce((least, set) => ((set?.size ?? 0) < (least?.size ?? 0) ? set : least))
    return [...(smallest ?? [])].filter((key) => labelsMatch(wanted, this.of(key)))
  }

  /** The number of the names of labels for which {@link having} looks at all keys, since they were not asked for of late. */
  unindexed(wanted: Labels): number {
    return Object.keys(wanted).filter((name) => !this.#indexed.has(name)).length
  }

  #values(name: string): Map<string, Set<string>> {
    let values = this.#indexed.get(name)
    if (!values) {
      values = new Map()
      for (const [key, labels] of this.#labels) if (Object.hasOwn(labels, name)) addTo(values, labels[name] as string, key)
    }
    this.#indexed.delete(name)
    this.#indexed.set(name, values)
    for (const oldest of this.#indexed.keys()) {
      if (this.#indexed.size <= maxIndexed) break
      this.#indexed.delete(oldest)
    }
    return values
  }

  #move(key: string, before: Labels, now: Labels): void {
    for (const [name, values] of this.#indexed) {
      const old = Object.hasOwn(before, name) ? before[name] : undefined
      const value = Object.hasOwn(now, name) ? now[name] : undefined
      if (old === value) continue
      if (old !== undefined) {
        const set = values.get(old)
        set?.delete(key)
        if (set?.size === 0) values.delete(old)
      }
      if (value !== undefined) addTo(values, value, key)
    }
  }
}
