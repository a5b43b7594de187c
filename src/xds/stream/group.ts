/** A group of resources as a writer has it at present, and what classes see of it. */

import type { GroupPatch, ResourceData } from '../../../protocols/messages/push.ts'
import { compare } from '../../model/order.ts'
import { hostOf } from '../names.ts'
import { addSums, type KeyedSums, readSum, type Sum, subtractSums, zeroSum } from '../slab/sums.ts'
import { Contents } from './contents.ts'
import type { Entry } from './entry.ts'

/** Hosts that are hidden. Equal lists are one object within a catalog. */
export type HiddenHosts = ReadonlySet<string>

/** No host is hidden. */
export const noneHidden: HiddenHosts = new Set()

/** What classes that hide the same hosts see of a group at one moment: names and versions, without bytes. It never changes. */
export interface Seen {
  /** Id of the group. */
  readonly group: string
  /** No other record of the catalog has this number. */
  readonly serial: number
  /** Everything in the group. What belongs to a hidden host is not seen. */
  readonly contents: Contents
  readonly hidden: HiddenHosts
  /** Names that stay in the group only for a moment: another group that shows one counts. */
  readonly leaving: ReadonlySet<string>
  /** Sum of what is seen, and of what is not. */
  readonly sum: Sum
  readonly unseen: Sum
}

/** What groups share within a catalog. */
export interface GroupParts {
  readonly sums: KeyedSums
  /** A number that was never given before. */
  serial(): number
}

/** Of a change that touched more names than this it is not remembered which. */
const mostTouched = 1024

/** So many names that come and go at once are sorted in one by one; for more all are sorted anew when they are asked for. */
const fewNames = 64

const noneLeaving: ReadonlySet<string> = new Set()

/** A group of resources as it is now. */
export class Group {
  readonly id: string
  readonly #parts: GroupParts
  sequence = 0
  #sum = zeroSum
  readonly #entries = new Map<string, Entry>()
  #contents = Contents.empty
  /** The content before the last change, and what that change touched: most classes and streams were there. */
  #last: { readonly contents: Contents; readonly names: readonly string[] } = { contents: Contents.empty, names: [] }
  #names: object = {}
  #leaving = noneLeaving
  /** Names by host; made when the first class hides anything of the group. */
  #hosts: HostIndex | undefined
  /** What was visible last, by what is hidden. */
  readonly #visible = new WeakMap<HiddenHosts, VisibleGroup>()

  constructor(id: string, parts: GroupParts) {
    this.id = id
    this.#parts = parts
  }

  /** All resources by name, hidden or not, in the order in which they came first. Only those of the present version are kept. */
  get entries(): ReadonlyMap<string, Entry> {
    return this.#entries
  }

  /** Another object whenever a name came or went. */
  get names(): object {
    return this.#names
  }

  /** Takes over a patch of the present state, or a whole one. Returns whether classes may have something else of it now: moved bytes alone are no change. */
  apply(patch: GroupPatch, entryOf: (data: ResourceData) => Entry): boolean {
    const { changed } = patch
    const gone = patch.base === 0 && this.#entries.size > 0 ? this.#missingFrom(changed) : []
    const added: string[] = []
    for (const data of changed) {
      if (!this.#entries.has(data.name)) added.push(data.name)
      this.#entries.set(data.name, entryOf(data))
    }
    const removed = [...new Set([...patch.removed, ...gone])].filter((name) => this.#entries.delete(name))
    this.#renamed(added, removed)
    this.sequence = patch.sequence
    this.#sum = readSum(patch.version)
    const before = this.#contents
    this.#contents = before.with(changed, removed)
    const leaving = this.#leaving
    if (patch.leaving || patch.base === 0) this.#leaving = patch.leaving?.length ? new Set(patch.leaving) : noneLeaving
    if (this.#contents === before) return this.#leaving !== leaving
    this.#last =
      changed.length + removed.length > mostTouched
        ? { contents: this.#contents, names: [] }
        : { contents: before, names: [...changed.map(({ name }) => name), ...removed] }
    return true
  }

  #missingFrom(changed: readonly ResourceData[]): string[] {
    const kept = new Set(changed.map((data) => data.name))
    return [...this.#entries.keys()].filter((name) => !kept.has(name))
  }

  /** Names that may be others now than they were in an earlier content: no fewer than differ. */
  *touchedSince(contents: Contents): Generator<string> {
    if (contents === this.#contents) return
    if (contents === this.#last.contents) return yield* this.#last.names
    for (const [name] of contents.differences(this.#contents)) yield name
  }

  #renamed(added: readonly string[], removed: readonly string[]): void {
    const count = added.length + removed.length
    if (count === 0) return
    this.#names = {}
    if (count > fewNames) this.#hosts = undefined
    for (const name of added) this.#hosts?.add(name)
    for (const name of removed) this.#hosts?.remove(name)
  }

  /** Names of a host's resources; a group has resources of one type only. */
  namesOf(typeUrl: string, host: string): readonly string[] {
    this.#hosts ??= new HostIndex(typeUrl, this.#entries.keys())
    return this.#hosts.of(host)
  }

  /** The group as classes have it that hide these hosts. The same object until its content changes. */
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

  /** The sum of what is hidden, in the time of what changed since it was worked out last. */
  #unseenSince({ contents, hidden, unseen }: Seen, typeUrl: string): Sum {
    if (hidden.size === 0) return zeroSum
    let sum = unseen
    for (const name of this.touchedSince(contents)) {
      if (!hidden.has(hostOf(typeUrl, name))) continue
      sum = addSums(subtractSums(sum, this.#numberOf(name, contents.get(name))), this.numberOf(name))
    }
    return sum
  }

  /** What a resource counts for in sums. */
  numberOf(name: string): Sum {
    return this.#numberOf(name, this.#contents.get(name))
  }

  #numberOf(name: string, version: string | undefined): Sum {
    return version === undefined ? zeroSum : this.#parts.sums.of(`${name}|${version}`)
  }
}

/** A group without the resources of some hosts. */
export class VisibleGroup {
  readonly typeUrl: string
  readonly group: Group
  readonly seen: Seen

  constructor(typeUrl: string, group: Group, seen: Seen) {
    this.typeUrl = typeUrl
    this.group = group
    this.seen = seen
  }

  /** The resource of a name that belongs to a host. */
  find(name: string, host: string): Entry | undefined {
    return this.seen.hidden.has(host) ? undefined : this.group.entries.get(name)
  }

  /** Names in the group that are not seen. */
  *hiddenNames(): Generator<string> {
    for (const host of this.seen.hidden) yield* this.group.namesOf(this.typeUrl, host)
  }
}

/** Names in the order of their hosts, so that those of one host are found without a pass over all. Eight bytes a name. */
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

  /** Where a name stands, or would. */
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
