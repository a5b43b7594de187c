/**
 * Works out responses: which resources of a type a subscription gets, in full or as the difference to what was sent before.
 * A plan depends on the class and the subscription, not on the proxy; proxies that are alike share it.
 */
import { LRUCache } from 'lru-cache'
import { elementHead, textField } from '../slab/wire.ts'
import { endpointType, routeType, virtualHostType } from '../type-urls.ts'
import { type Entry, type Group, joinChunks, type TypeState } from './catalog.ts'
import { isResourceName, type Subscription, takes } from './subscription.ts'

/** What a proxy was sent of a type: the state of each group. */
export type SentState = ReadonlyMap<Group, number>

/** The body of a response: everything but version, nonce and type. */
export interface Plan {
  readonly chunks: readonly Buffer[]
  readonly length: number
  /** Resources in it. */
  readonly count: number
  /** Names that are gone (delta only). */
  readonly removed: readonly string[]
  /** Names that the proxy has not had before; undefined in a full plan. */
  readonly added: ReadonlySet<string> | undefined
  /** Names whose content is new, those that were added among them; undefined in a full plan. */
  readonly changed: ReadonlySet<string> | undefined
}

/** The state that a proxy has after it took everything there is. */
export function sentState(state: TypeState): SentState {
  return new Map(state.groups.map((group) => [group, group.sequence]))
}

/** What one group has of a subscription, ready to be written. */
interface Part {
  readonly chunks: readonly Buffer[]
  readonly length: number
  readonly count: number
}

/** Bytes that a full plan takes by itself: its chunks are those of its parts. */
const planBytes = () => 256
/** Bytes that chunks hold outside shared memory. */
const heldBytes = ({ chunks }: { chunks: readonly Buffer[] }): number =>
  planBytes() + chunks.reduce((sum, chunk) => sum + (chunk.buffer instanceof SharedArrayBuffer ? 0 : chunk.length), 0)

/** How much is kept, and who is told what became of it (`PILOT_ENABLE_XDS_CACHE`, `PILOT_XDS_CACHE_SIZE`, `PILOT_XDS_CACHE_STATS`). */
export interface PlanCacheOptions {
  readonly enabled: boolean
  /** Entries at most; none or fewer = as many as fit into {@link cacheBytes}. */
  readonly size: number
  readonly read?: (hit: boolean) => void
  readonly evicted?: () => void
}

/** Bytes outside shared memory that are kept at most. */
const cacheBytes = 256 * 1024 * 1024

/** Makes plans, and keeps the last ones. */
export class Plans {
  readonly #options: PlanCacheOptions
  readonly #kept: LRUCache<string, Plan | Part>

  constructor(options: PlanCacheOptions) {
    this.#options = options
    const { size, evicted } = options
    this.#kept = new LRUCache({
      ...(size > 0 ? { max: size } : {}),
      maxSize: cacheBytes,
      disposeAfter: (_, __, reason) => {
        if (reason === 'evict') evicted?.()
      },
    })
  }

  /** Plans and parts of plans that are kept. */
  get size(): number {
    return this.#kept.size
  }

  /** What is kept under a key, or what is made now. A full plan is made of parts, and a part is kept once, however many classes share its group. */
  #cached<T extends Plan | Part>(key: string, sizeOf: (made: T) => number, make: () => T): T {
    const { enabled, read } = this.#options
    const kept = enabled ? (this.#kept.get(key) as T | undefined) : undefined
    read?.(kept !== undefined)
    if (kept) return kept
    const made = make()
    if (enabled) this.#kept.set(key, made, { size: sizeOf(made) })
    return made
  }

  /** Everything the subscription gets. */
  full(typeUrl: string, state: TypeState, subscription: Subscription, delta: boolean): Plan {
    return this.#cached(`full|${delta}|${typeUrl}|${keyOf(state)}|${subscription.id}`, planBytes, () => {
      const parts = state.groups.map((group) => this.#part(typeUrl, group, subscription, delta))
      const missing = [...subscription.names].filter((name) => isResourceName(typeUrl, name) && !find(state, name))
      if (!delta)
        parts.push(
          partOf(
            missing.flatMap((name) => emptyEntry(typeUrl, name)),
            false,
          ),
        )
      const chunks = parts.flatMap((part) => part.chunks)
      const sum = (of: (part: Part) => number) => parts.reduce((total, part) => total + of(part), 0)
      return {
        chunks,
        length: sum((part) => part.length),
        count: sum((part) => part.count),
        removed: delta ? missing : [],
        added: undefined,
        changed: undefined,
      }
    })
  }

  #part(typeUrl: string, group: Group, subscription: Subscription, delta: boolean): Part {
    return this.#cached(`part|${delta}|${group.id}@${group.sequence}|${subscription.id}`, heldBytes, () => {
      return partOf(
        [...group.entries.values()].filter((entry) => takes(subscription, typeUrl, entry.name)),
        delta,
      )
    })
  }

  /** These names only, as far as they are subscribed to. */
  some(typeUrl: string, state: TypeState, subscription: Subscription, names: ReadonlySet<string>, delta: boolean): Plan {
    const entries: Entry[] = []
    const missing: string[] = []
    if (typeUrl === virtualHostType)
      for (const group of state.groups)
        for (const entry of group.entries.values())
          if (!names.has(entry.name) && takes({ wildcard: false, names }, typeUrl, entry.name)) entries.push(entry)
    for (const name of names) {
      if (!isResourceName(typeUrl, name) || !takes(subscription, typeUrl, name)) continue
      const entry = find(state, name)
      if (entry) entries.push(entry)
      else missing.push(name)
    }
    return delta ? planOf(entries, true, missing) : planOf([...entries, ...missing.flatMap((name) => emptyEntry(typeUrl, name))], false, [])
  }

  /** What changed since a state was sent, and what is gone. */
  difference(typeUrl: string, state: TypeState, sent: SentState, subscription: Subscription, delta: boolean): Plan {
    const from = [...sent].map(([group, sequence]) => `${group.id}@${sequence}`).join()
    return this.#cached(`diff|${delta}|${typeUrl}|${from}|${keyOf(state)}|${subscription.id}`, heldBytes, () => {
      const { changed, removed, added } = compare(state, sent)
      const wanted = (name: string) => takes(subscription, typeUrl, name)
      const entries = [...changed].filter(wanted).flatMap((name) => find(state, name) ?? [])
      const gone = [...removed].filter(wanted)
      const plan = delta ? planOf(entries, true, gone) : planOf([...entries, ...gone.flatMap((name) => emptyEntry(typeUrl, name))], false, [])
      return { ...plan, added, changed }
    })
  }

  /** What differs from the versions that a reconnecting proxy says it has. */
  reconnected(typeUrl: string, state: TypeState, versions: ReadonlyMap<string, string>, subscription: Subscription): Plan {
    const entries: Entry[] = []
    const present = new Set<string>()
    for (const group of state.groups) {
      for (const entry of group.entries.values()) {
        if (!takes(subscription, typeUrl, entry.name)) continue
        present.add(entry.name)
        if (versions.get(entry.name) !== entry.version) entries.push(entry)
      }
    }
    const gone = [...versions.keys()].filter((name) => !present.has(name))
    const missing = [...subscription.names].filter((name) => isResourceName(typeUrl, name) && !present.has(name) && !versions.has(name))
    return planOf(entries, true, [...gone, ...missing])
  }
}

const keyOf = (state: TypeState): string => state.groups.map((group) => `${group.id}@${group.sequence}`).join()

function partOf(entries: readonly Entry[], delta: boolean): Part {
  const chunks = joinChunks(entries, delta)
  return { chunks, length: chunks.reduce((sum, chunk) => sum + chunk.length, 0), count: entries.length }
}

function planOf(entries: readonly Entry[], delta: boolean, removed: readonly string[]): Plan {
  return { ...partOf(entries, delta), removed, added: undefined, changed: undefined }
}

function find(state: TypeState, name: string): Entry | undefined {
  for (const group of state.groups) {
    const entry = group.entries.get(name)
    if (entry) return entry
  }
  return undefined
}

/** Names that changed, went and came between a sent state and the present one. Groups that came or went are compared by content. */
function compare(state: TypeState, sent: SentState): { changed: Set<string>; removed: Set<string>; added: Set<string> } {
  const changed = new Set<string>()
  const removed = new Set<string>()
  const added = new Set<string>()
  const left = new Map(sent)
  const fresh: Group[] = []
  for (const group of state.groups) {
    const sequence = left.get(group)
    const since = sequence === undefined ? undefined : group.since(sequence)
    if (!since) {
      fresh.push(group)
      continue
    }
    left.delete(group)
    for (const name of since.changed) changed.add(name)
    for (const name of since.removed) removed.add(name)
    for (const name of since.added) added.add(name)
  }
  for (const group of fresh) {
    for (const entry of group.entries.values()) {
      const before = [...left].find(([old]) => old !== group && old.entries.has(entry.name))
      const same =
        before && before[0].entries.get(entry.name)?.version === entry.version && (before[0].entries.get(entry.name)?.since ?? 0) <= before[1]
      if (!same) changed.add(entry.name)
      if (!before) added.add(entry.name)
    }
  }
  for (const [group] of left) for (const name of group.namesEver()) if (!find(state, name)) removed.add(name)
  for (const name of removed) if (find(state, name)) removed.delete(name)
  return { changed, removed, added }
}

/** What is sent for a name that does not exist, so that the proxy need not wait: a route configuration or load assignment with nothing but its name (field 1 of both). */
function emptyEntry(typeUrl: string, name: string): Entry[] {
  if (typeUrl !== routeType && typeUrl !== endpointType) return []
  const value = textField(1, name)
  const bytes = Buffer.concat([elementHead(typeUrl, value.length), value])
  return [{ name, version: 'none', chunks: [bytes], length: bytes.length, since: 0 }]
}
