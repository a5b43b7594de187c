/** The current state of a resource group in a writer, and views of it without hidden hosts. */

import type { GroupUpdate, ResourceData } from '../../../protocols/messages/push.ts'
import { compare } from '../../model/order.ts'
import { hostOf } from '../names.ts'
import { addSums, type KeyedSums, readSum, type Sum, subtractSums, zeroSum } from '../slab/sums.ts'
import { Contents } from './contents.ts'
import type { Entry } from './entry.ts'

/** Hosts whose resources are hidden from a class. Equal sets are one object within a catalog. */
export type HiddenHosts = ReadonlySet<string>

/** The set that hides no host. */
export const noneHidden: HiddenHosts = new Set()

/** An immutable record of what classes with the same hidden hosts see of a group at one moment: names and versions, without bytes. */
export interface Seen {
  /** Id of the group. */
  readonly group: string
  /** A number that is unique within the catalog. */
  readonly serial: number
  /** All names and versions of the group, those of hidden hosts included. */
  readonly contents: Contents
  readonly hidden: HiddenHosts
  /**
   * Names that stay in the group only for a transition period: if another group shows such a name as well, the resource of the other group
   * is used.
   */
  readonly leaving: ReadonlySet<string>
  /** The sums of the resources that are seen, and of the hidden ones. */
  readonly sum: Sum
  readonly unseen: Sum
}

/** Dependencies that the groups of a catalog share. */
export interface GroupParts {
  readonly sums: KeyedSums
  /** Returns a number that was never returned before. */
  serial(): number
}

/** The maximum number of touched names that are remembered of the last change. Of a larger change none are remembered. */
const maxTouched = 1024

/**
 * The maximum number of names added or removed at once that are inserted into the index of hosts one by one. After a larger change the
 * index is built again on demand.
 */
const fewNames = 64

const noneLeaving: ReadonlySet<string> = new Set()

/** The current state of a group of resources. */
export class Group {
  readonly id: string
  readonly #parts: GroupParts
  sequence = 0
  #sum = zeroSum
  readonly #entries = new Map<string, Entry>()
  #contents = Contents.empty
  /**
   * The content before the last change, and the names that this change touched. Most classes and streams are at this content when a change
   * comes.
   */
  #last: { readonly contents: Contents; readonly names: readonly string[] } = { contents: Contents.empty, names: [] }
  #names: object = {}
  #leaving = noneLeaving
  /** An index of names by host, created when a class first hides a host of the group. */
  #hosts: HostIndex | undefined
  /** The last view for each set of hidden hosts. */
  readonly #visible = new WeakMap<HiddenHosts, VisibleGroup>()

  constructor(id: string, parts: GroupParts) {
    this.id = id
    this.#parts = parts
  }

  /** All resources by name, hidden or not, in order of first appearance. Only those of the current version are kept. */
  get entries(): ReadonlyMap<string, Entry> {
    return this.#entries
  }

  /** A token that is replaced whenever a name is added or removed, for use as a cache key. */
  get names(): object {
    return this.#names
  }

  /**
   * Applies an update of the current state, or one that replaces everything. Returns whether the resources that classes see may have
   * changed; false if only the location of the bytes did.
   */
  apply(update: GroupUpdate, entryOf: (data: ResourceData) => Entry): boolean {
    const { changed } = update
    const gone = update.base === 0 && this.#entries.size > 0 ? this.#missingFrom(changed) : []
    const added: string[] = []
    for (const data of changed) {
      if (!this.#entries.has(data.name)) added.push(data.name)
      this.#entries.set(data.name, entryOf(data))
    }
    const removed = [...new Set([...update.removed, ...gone])].filter((name) => this.#entries.delete(name))
    this.#updateNames(added, removed)
    this.sequence = update.sequence
    this.#sum = readSum(update.version)
    const before = this.#contents
    this.#contents = before.with(changed, removed)
    const leaving = this.#leaving
    if (update.leaving || update.base === 0) this.#leaving = update.leaving?.length ? new Set(update.leaving) : noneLeaving
    if (this.#contents === before) return this.#leaving !== leaving
    this.#last =
      changed.length + removed.length > maxTouched
        ? { contents: this.#contents, names: [] }
        : { contents: before, names: [...changed.map(({ name }) => name), ...removed] }
    return true
  }

  #missingFrom(changed: readonly ResourceData[]): string[] {
    const kept = new Set(changed.map((data) => data.name))
    return [...this.#entries.keys()].filter((name) => !kept.has(name))
  }

  /** Yields the names that may have changed since an earlier content: at least all that differ. */
  *touchedSince(contents: Contents): Generator<string> {
    if (contents === this.#contents) return
    if (contents === this.#last.contents) return yield* this.#last.names
    for (const [name] of contents.differences(this.#contents)) yield name
  }

  #updateNames(added: readonly string[], removed: readonly string[]): void {
    const count = added.length + removed.length
    if (count === 0) return
    this.#names = {}
    if (count > fewNames) this.#hosts = undefined
    for (const name of added) this.#hosts?.add(name)
    for (const name of removed) this.#hosts?.remove(name)
  }

  /** Returns the names of the resources of a host. A group has resources of one type only. */
  namesOf(typeUrl: string, host: string): readonly string[] {
    this.#hosts ??= new HostIndex(typeUrl, this.#entries.keys())
    return this.#hosts.of(host)
  }

  /** Returns the group as seen by classes that hide these hosts. Returns the same object until the content changes. */
  visible(typeUrl: string, hidden: HiddenHosts): VisibleGroup {
    const last = this.#visible.get(hidden)
    if (last?.seen.contents === this.#contents && last.seen.leaving === this.#leaving) return last
    const unseen = last ? this.#unseenSince(last.seen, typeUrl) : this.#unseen(hidden, typeUrl)
    const sum = subtractSums(this.#sum, unseen)
    const seen = { group: this.id, serial: this.#parts.serial(), contents: this.#contents, hidden, leaving: this.#leaving, sum, unseen }
    const visible = new VisibleGroup(typeUrl, this, seen)
    this.#visible.set(hidden, visible)
    return visible
  }

  #unseen(hidden: HiddenHosts, typeUrl: string): Sum {
    let sum = zeroSum
    for (const host of hidden) for (const name of this.namesOf(typeUrl, host)) sum = addSums(sum, this.numberOf(name))
    return sum
  }

  /** Updates the sum of the hidden resources, in time proportional to what changed since the last view. */
  #unseenSince({ contents, hidden, unseen }: Seen, typeUrl: string): Sum {
    if (hidden.size === 0) return zeroSum
    let sum = unseen
    for (const name of this.touchedSince(contents)) {
      if (!hidden.has(hostOf(typeUrl, name))) continue
      sum = addSums(subtractSums(sum, this.#numberOf(name, contents.get(name))), this.numberOf(name))
    }
    return sum
  }

  /** Returns the number by which a resource of the group counts in sums. */
  numberOf(name: string): Sum {
    return this.#numberOf(name, this.#contents.get(name))
  }

  #numberOf(name: string, version: string | undefined): Sum {
    return version === undefined ? zeroSum : this.#parts.sums.of(`${name}|${version}`)
  }
}

/** A group without the resources of hidden hosts. */
export class VisibleGroup {
  readonly typeUrl: string
  readonly group: Group
  readonly seen: Seen

  constructor(typeUrl: string, group: Group, seen: Seen) {
    this.typeUrl = typeUrl
    this.group = group
    this.seen = seen
  }

  /** Returns the resource of a name unless `host`, to which the name belongs, is hidden. */
  find(name: string, host: string): Entry | undefined {
    return this.seen.hidden.has(host) ? undefined : this.group.entries.get(name)
  }

  /** Yields the names in the group that are hidden. */
  *hiddenNames(): Generator<string> {
    for (const host of this.seen.hidden) yield* this.group.namesOf(this.typeUrl, host)
  }
}

/** Names sorted by host, so that those of one host are found by binary search. Takes eight bytes a name. */
class HostIndex {
  readonly #typeUrl: string
  readonly #names: string[]

  constructor(typeUrl: string, names: Iterable<string>) {
    this.#typeUrl = typeUrl
    const hosted = [...names].map((name) => ({ name, host: hostOf(typeUrl, name) })).filter(({ host }) => host !== '')
    this.#names = hosted.sort((one, other) => compare(one.host, other.host) || compare(one.name, other.name)).map(({ name }) => name)
  }

  of(host: string): readonly string[] {
    const from = this.#place(host, '')
    let to = from
    while (to < this.#names.length && hostOf(this.#typeUrl, this.#names[to] as string) === host) to++
    return this.#names.slice(from, to)
  }

  add(name: string): void {
    const host = hostOf(this.#typeUrl, name)
    if (host !== '') this.#names.splice(this.#place(host, name), 0, name)
  }

  remove(name: string): void {
    const host = hostOf(this.#typeUrl, name)
    if (host !== '') this.#names.splice(this.#place(host, name), 1)
  }

  /** Returns the index at which a name stands or would be inserted. */
  #place(host: string, name: string): number {
    let low = 0
    let high = this.#names.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const there = this.#names[middle] as string
      const order = compare(hostOf(this.#typeUrl, there), host) || compare(there, name)
      if (order < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
