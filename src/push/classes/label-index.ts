/**
 * Connections by the labels of their proxies. Only labels that selectors use are indexed, because clients choose how many labels they have.
 */
import { addTo } from '../../model/lists.ts'
import { labelsMatch } from '../../model/match.ts'

type Labels = Readonly<Record<string, string>>

/** The maximum number of label names that are indexed; the least recently used one is evicted. */
const maxIndexed = 100
const none: Labels = {}

/** Finds connections by labels. */
export class LabelIndex {
  readonly #labels = new Map<string, Labels>()
  /** By label name and value the connections, for the label names that were looked up. */
  readonly #indexed = new Map<string, Map<string, Set<string>>>()

  /** The labels of a connection; empty for an unknown connection. */
  of(connection: string): Labels {
    return this.#labels.get(connection) ?? none
  }

  /** Sets the labels of a connection. */
  set(connection: string, labels: Labels): void {
    const before = this.of(connection)
    if (before === labels) return
    this.#labels.set(connection, labels)
    this.#move(connection, before, labels)
  }

  delete(connection: string): void {
    this.#move(connection, this.of(connection), none)
    this.#labels.delete(connection)
  }

  /** The connections that have all of the `wanted` labels, of which there must be at least one. */
  having(wanted: Labels): string[] {
    const sets = Object.entries(wanted).map(([name, value]) => this.#values(name).get(value))
    const smallest = sets.reduce((least, set) => ((set?.size ?? 0) < (least?.size ?? 0) ? set : least))
    return [...(smallest ?? [])].filter((connection) => labelsMatch(wanted, this.of(connection)))
  }

  #values(name: string): Map<string, Set<string>> {
    let values = this.#indexed.get(name)
    if (!values) {
      values = new Map()
      for (const [connection, labels] of this.#labels) if (Object.hasOwn(labels, name)) addTo(values, labels[name] as string, connection)
    }
    this.#indexed.delete(name)
    this.#indexed.set(name, values)
    for (const oldest of this.#indexed.keys()) {
      if (this.#indexed.size <= maxIndexed) break
      this.#indexed.delete(oldest)
    }
    return values
  }

  #move(connection: string, before: Labels, now: Labels): void {
    for (const [name, values] of this.#indexed) {
      const old = Object.hasOwn(before, name) ? before[name] : undefined
      const value = Object.hasOwn(now, name) ? now[name] : undefined
      if (old === value) continue
      if (old !== undefined) {
        const set = values.get(old)
        set?.delete(connection)
        if (set?.size === 0) values.delete(old)
      }
      if (value !== undefined) addTo(values, value, connection)
    }
  }
}
