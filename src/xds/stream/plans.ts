/**
 * Works out responses: which resources of a type a subscription gets, in full or as the difference to what was sent before.
 * A plan depends on the class and the subscription, not on the proxy; proxies that are alike share it.
 */
import { LRUCache } from 'lru-cache'
import { elementHead, textField } from '../slab/wire.ts'
import { endpointType, routeType, virtualHostType } from '../type-urls.ts'
import type { Catalog } from './catalog.ts'
import { Coverages } from './coverage.ts'
import { type Entry, entryOf } from './entry.ts'
import type { Group, VisibleGroup } from './group.ts'
import { emptyPart, type Part, partOf, WholePart } from './parts.ts'
import { everything, isResourceName, type Subscription, takes } from './subscription.ts'
import type { Holding, TypeState } from './type-state.ts'

/** The body of a response: everything but version, nonce and type. */
export interface Plan {
  readonly chunks: readonly Buffer[]
  readonly length: number
  /** Resources in it. */
  readonly count: number
  /** Names that are gone. Only delta says them; what state of the world has of them is the difference itself. */
  readonly removed: readonly string[]
  /** Names that the proxy has not had before; undefined in a full plan. */
  readonly added: ReadonlySet<string> | undefined
  /** Names whose content is new, those that were added among them; undefined in a full plan. */
  readonly changed: ReadonlySet<string> | undefined
}

/** Bytes that chunks hold outside shared memory. */
const heldBytes = ({ chunks }: { chunks: readonly Buffer[] }): number =>
  planBytes + chunks.reduce((sum, chunk) => sum + chunkBytes + (chunk.buffer instanceof SharedArrayBuffer ? 0 : chunk.length), 0)
/** Bytes that a plan takes by itself, and those that a name in one of its lists takes. */
const planBytes = 256
const nameBytes = 64
/** Bytes that a chunk takes beside its content. */
const chunkBytes = 100
const differenceBytes = (plan: Plan): number =>
  heldBytes(plan) + nameBytes * (plan.removed.length + (plan.added?.size ?? 0) + (plan.changed?.size ?? 0))

/** How much is kept, and who is told what became of it (`PILOT_ENABLE_XDS_CACHE`, `PILOT_XDS_CACHE_SIZE`, `PILOT_XDS_CACHE_STATS`). */
export interface PlanCacheOptions {
  readonly enabled: boolean
  /** Entries at most; none or fewer = as many as fit into {@link cacheBytes}. */
  readonly size: number
  readonly read?: (hit: boolean) => void
  readonly evicted?: () => void
}

/** Keys of things that were made once: the plans of some thousand proxies, and the parts of these. */
const mostOnce = 16_384

/** Bytes outside shared memory that are kept at most. */
const cacheBytes = 64 * 1024 * 1024
/** Where more than this is kept, only what is made for the second time is added. */
const firstBytes = 32 * 1024 * 1024

/** A plan or a part of one, the groups whose bytes it has, and the subscription that it was made for. */
interface Kept {
  readonly made: Plan | Part
  readonly groups: readonly Group[]
  readonly subscription: number
}

/**
 * Makes plans, and keeps those of the present state. A plan holds slices of shared memory, and with a slice the whole slab: it
 * goes when one of its groups changes, so that no plan keeps a slab that nothing else needs. It also goes when no stream has its subscription any more.
 */
export class Plans {
  readonly #options: PlanCacheOptions
  readonly #kept: LRUCache<string, Kept>
  /** Keys of what was made once and not kept, the oldest first. */
  readonly #once = new Set<string>()
  /** Keys of what is kept, by group and by subscription. */
  readonly #keys = new Map<Group | number, Set<string>>()
  readonly #subscriptions = new FinalizationRegistry<number>((id) => this.#forget(id))
  readonly #watched = new WeakSet<Subscription>()
  readonly #coverages = new Coverages()
  /** What each subscription misses, by the key of what there is, the latest last. */
  readonly #missing = new WeakMap<Subscription, Map<string, readonly string[]>>()

  constructor(catalog: Catalog, options: PlanCacheOptions) {
    this.#options = options
    catalog.onPatched((group) => this.#forget(group))
    const { size, evicted } = options
    this.#kept = new LRUCache({
      ...(size > 0 ? { max: size } : {}),
      maxSize: cacheBytes,
      dispose: ({ groups, subscription }, key) => {
        for (const owner of [...groups, subscription]) {
          const keys = this.#keys.get(owner)
          keys?.delete(key)
          if (keys?.size === 0) this.#keys.delete(owner)
        }
      },
      disposeAfter: (_, __, reason) => {
        if (reason === 'evict') evicted?.()
      },
    })
  }

  /** Plans and parts of plans that are kept. */
  get size(): number {
    return this.#kept.size
  }

  /** Groups and subscriptions of which anything is kept. */
  get owners(): number {
    return this.#keys.size
  }

  /** Drops what was made from a group, whose bytes are others now, or for a subscription that is gone. */
  #forget(owner: Group | number): void {
    for (const key of [...(this.#keys.get(owner) ?? [])]) this.#kept.delete(key)
  }

  /**
   * What is kept under a key, or what is made now. A full plan is made of parts, and a part is kept once, however many classes share its group. Where much is
   * kept already, what is made for the first time is not: proxies see different things then, and most of it is for one of them.
   */
  #cached<T extends Plan | Part>(key: string, groups: readonly Group[], subscription: Subscription, sizeOf: (made: T) => number, make: () => T): T {
    const { enabled, read } = this.#options
    const kept = enabled ? (this.#kept.get(key)?.made as T | undefined) : undefined
    read?.(kept !== undefined)
    if (kept) return kept
    const made = make()
    if (!enabled || (this.#kept.calculatedSize > firstBytes && this.#isFirst(key))) return made
    this.#kept.set(key, { made, groups, subscription: subscription.id }, { size: sizeOf(made) })
    // What is larger than all that may be kept was not kept.
    if (!this.#kept.has(key)) return made
    if (!this.#watched.has(subscription)) {
      this.#watched.add(subscription)
      this.#subscriptions.register(subscription, subscription.id)
    }
    for (const owner of [...groups, subscription.id]) {
      const keys = this.#keys.get(owner)
      if (keys) keys.add(key)
      else this.#keys.set(owner, new Set([key]))
    }
    return made
  }

  #isFirst(key: string): boolean {
    if (this.#once.delete(key)) return false
    this.#once.add(key)
    for (const oldest of this.#once) {
      if (this.#once.size <= mostOnce) break
      this.#once.delete(oldest)
    }
    return true
  }

  /** Everything the subscription gets. */
  full(typeUrl: string, state: TypeState, subscription: Subscription, delta: boolean): Plan {
    const key = `full|${delta}|${typeUrl}|${state.holding.key}|${subscription.id}`
    // Its bytes are those of its parts; the names that do not exist are its own.
    const size = (plan: Plan) => planBytes + chunkBytes * plan.chunks.length + nameBytes * plan.removed.length
    return this.#cached(key, groupsOf(state), subscription, size, () => {
      const parts = state.groups.map((group) => this.#part(state, group, subscription, delta))
      const missing = this.missing(subscription, state).filter((name) => isResourceName(typeUrl, name))
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

  /** Names that are subscribed to and of which the class has no resource; streams that are alike share the answer, whatever their class. */
  missing(subscription: Subscription, state: TypeState): readonly string[] {
    if (subscription.names.size === 0) return noNames
    let found = this.#missing.get(subscription)
    if (!found) this.#missing.set(subscription, (found = new Map()))
    const { key } = state.holding
    const known = found.get(key)
    if (known) return known
    const names = this.#coverages.missing(subscription, state)
    found.set(key, names)
    for (const [oldest] of found) {
      if (found.size <= keptStates) break
      found.delete(oldest)
    }
    return names
  }

  /** What a class has of a group and a subscription takes. Whoever takes all of it, or all but a little, shares what was joined once. */
  #part(state: TypeState, visible: VisibleGroup, subscription: Subscription, delta: boolean): Part {
    const { left, taken } = this.#coverages.of(subscription, visible)
    if (!left && taken.length === 0) return emptyPart
    const unseen = [...state.unseen(visible)]
    if (left) {
      const part = this.#whole(visible.group, delta).without(new Set([...left, ...unseen]))
      if (part) return part
    }
    const make = () => {
      const others = new Set(left ? [...left, ...unseen] : unseen)
      const names = left ? [...visible.group.entries.keys()] : taken
      const entries = names.flatMap((name) => (others.has(name) ? [] : (visible.group.entries.get(name) ?? [])))
      return partOf(entries, delta)
    }
    // What another group has in place of this one is the business of few classes, and for a moment.
    if (state.isShadowed(visible)) return make()
    return this.#cached(`part|${delta}|${visible.seen.serial}|${subscription.id}`, [visible.group], subscription, heldBytes, make)
  }

  #whole(group: Group, delta: boolean): WholePart {
    const size = (part: WholePart) => heldBytes(part) + part.ownBytes
    return this.#cached(`whole|${delta}|${group.id}`, [group], everything, size, () => new WholePart([...group.entries.values()], delta))
  }

  /** These names only, as far as they are subscribed to. */
  some(typeUrl: string, state: TypeState, subscription: Subscription, names: ReadonlySet<string>, delta: boolean): Plan {
    const entries: Entry[] = []
    const missing: string[] = []
    if (typeUrl === virtualHostType)
      for (const entry of state.entries()) if (!names.has(entry.name) && takes({ wildcard: false, names }, typeUrl, entry.name)) entries.push(entry)
    for (const name of names) {
      if (!isResourceName(typeUrl, name) || !takes(subscription, typeUrl, name)) continue
      const entry = state.find(name)
      if (entry) entries.push(entry)
      else missing.push(name)
    }
    return delta ? planOf(entries, true, missing) : planOf([...entries, ...missing.flatMap((name) => emptyEntry(typeUrl, name))], false, [])
  }

  /** What changed since a state was sent, and what is gone. */
  difference(typeUrl: string, state: TypeState, sent: Holding, subscription: Subscription, delta: boolean): Plan {
    return this.#cached(
      `diff|${delta}|${typeUrl}|${sent.key}|${state.holding.key}|${subscription.id}`,
      groupsOf(state),
      subscription,
      differenceBytes,
      () => {
        const { changed, removed, added } = state.since(sent)
        const wanted = (name: string) => takes(subscription, typeUrl, name)
        const entries = [...changed].filter(wanted).flatMap((name) => state.find(name) ?? [])
        const gone = [...removed].filter(wanted)
        const plan = delta ? planOf(entries, true, gone) : planOf([...entries, ...gone.flatMap((name) => emptyEntry(typeUrl, name))], false, [])
        return { ...plan, removed: gone, added, changed }
      },
    )
  }

  /** Everything the subscription gets, and what is gone since a state was sent (delta only). */
  again(typeUrl: string, state: TypeState, sent: Holding | undefined, subscription: Subscription): Plan {
    const full = this.full(typeUrl, state, subscription, true)
    if (!sent || sent.version === state.version) return full
    const { removed } = this.difference(typeUrl, state, sent, subscription, true)
    return removed.length === 0 ? full : { ...full, removed: [...new Set([...full.removed, ...removed])] }
  }

  /** What differs from the versions that a reconnecting proxy says it has. */
  reconnected(typeUrl: string, state: TypeState, versions: ReadonlyMap<string, string>, subscription: Subscription): Plan {
    const entries: Entry[] = []
    const present = new Set<string>()
    for (const entry of state.entries()) {
      if (!takes(subscription, typeUrl, entry.name)) continue
      present.add(entry.name)
      if (versions.get(entry.name) !== entry.version) entries.push(entry)
    }
    const gone = [...versions.keys()].filter((name) => !present.has(name) && takes(subscription, typeUrl, name))
    const missing = [...subscription.names].filter((name) => isResourceName(typeUrl, name) && !present.has(name) && !versions.has(name))
    return planOf(entries, true, [...gone, ...missing])
  }
}

const noNames: readonly string[] = []
/** Sets of resources for which it is remembered what a subscription misses of them: proxies in so many sorts of classes may share it. */
const keptStates = 16

const groupsOf = (state: TypeState): Group[] => state.groups.map(({ group }) => group)

function planOf(entries: readonly Entry[], delta: boolean, removed: readonly string[]): Plan {
  return { ...partOf(entries, delta), removed, added: undefined, changed: undefined }
}

/** What is sent for a name that does not exist, so that the proxy need not wait: a route configuration or load assignment with nothing but its name (field 1 of both). */
function emptyEntry(typeUrl: string, name: string): Entry[] {
  if (typeUrl !== routeType && typeUrl !== endpointType) return []
  const value = textField(1, name)
  const bytes = Buffer.concat([elementHead(typeUrl, value.length), value])
  return [entryOf({ name, version: 'none' }, [bytes])]
}
