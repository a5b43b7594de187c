/**
 * Works out responses: the resources of a type that a subscription gets, in full or as the difference to what was sent before. A plan
 * depends on the class and the subscription and not on the proxy; similar proxies share it.
 */
import { LRUCache } from 'lru-cache'
import { elementHead, textField } from '../slab/wire.ts'
import { endpointType, routeType, virtualHostType } from '../type-urls.ts'
import type { Catalog } from './catalog.ts'
import { Coverages } from './coverage.ts'
import { type Entry, entryOf } from './entry.ts'
import type { Group, VisibleGroup } from './group.ts'
import { emptyPart, type Part, partOf, WholePart } from './parts.ts'
import { ReportedForm, type ReportedVersions } from './reported-versions.ts'
import { everything, isResourceName, type Subscription, takes } from './subscription.ts'
import type { Holding, TypeState } from './type-state.ts'

/** The body of a response, without version, nonce and type URL. */
export interface Plan {
  readonly chunks: readonly Buffer[]
  readonly length: number
  /** The number of resources in the response. */
  readonly count: number
  /** Names of removed resources. Only delta responses carry them; in the state of the world they are part of the difference. */
  readonly removed: readonly string[]
  /** Names that the proxy has not had before; undefined in a full plan. */
  readonly added: ReadonlySet<string> | undefined
  /** Names with new content, including the added ones; undefined in a plan of everything or of names. */
  readonly changed: ReadonlySet<string> | undefined
}

/** Returns the memory in bytes that chunks hold outside shared memory. */
const heldBytes = ({ chunks }: { chunks: readonly Buffer[] }): number =>
  planBytes + chunks.reduce((sum, chunk) => sum + chunkBytes + (chunk.buffer instanceof SharedArrayBuffer ? 0 : chunk.length), 0)
/** The memory in bytes of a plan itself, and of a name in one of its lists. */
const planBytes = 256
const nameBytes = 64
/** The memory in bytes of a chunk besides its content. */
const chunkBytes = 100
const differenceBytes = (plan: Plan): number =>
  heldBytes(plan) + nameBytes * (plan.removed.length + (plan.added?.size ?? 0) + (plan.changed?.size ?? 0))

/** Size of the cache and callbacks for its metrics (`PILOT_ENABLE_XDS_CACHE`, `PILOT_XDS_CACHE_SIZE`, `PILOT_XDS_CACHE_STATS`). */
export interface PlanCacheOptions {
  readonly enabled: boolean
  /** The maximum number of entries; zero or less: as many as fit into {@link cacheBytes}. */
  readonly size: number
  readonly read?: (hit: boolean) => void
  readonly evicted?: () => void
}

/** The maximum number of keys that are remembered of results made once and not cached: plans and parts of some thousand proxies. */
const maxOnce = 16_384

/** The maximum memory in bytes outside shared memory that the cache holds. */
const cacheBytes = 64 * 1024 * 1024
/** Above this size of the cache, a result is only added when it is made for the second time. */
const firstBytes = 32 * 1024 * 1024

/** The maximum memory in bytes of what is compared with the versions that proxies report. */
const formBytes = 32 * 1024 * 1024

/** A cached plan or part, the groups whose bytes it holds, and the id of its subscription. */
interface Kept {
  readonly made: Plan | Part
  readonly groups: readonly Group[]
  readonly subscription: number
}

/**
 * Makes plans and caches those of the current state. A plan holds slices of shared memory, and a slice keeps its whole slab alive. An entry
 * is dropped when one of its groups changes, so that no entry keeps a slab alive that nothing else uses, and when no stream has its
 * subscription any more.
 */
export class Plans {
  readonly #options: PlanCacheOptions
  readonly #kept: LRUCache<string, Kept>
  /** Keys of results that were made once and not cached, the oldest first. */
  readonly #once = new Set<string>()
  /** Keys of cache entries by group and by id of the subscription. */
  readonly #keys = new Map<Group | number, Set<string>>()
  readonly #subscriptions = new FinalizationRegistry<number>((id) => this.#forget(id))
  readonly #watched = new WeakSet<Subscription>()
  readonly #coverages = new Coverages()
  /** What proxies report that have all of a holding. */
  readonly #forms = new LRUCache<string, ReportedForm>({ maxSize: formBytes, sizeCalculation: ({ bytes }) => bytes })
  /** The missing names of each subscription by the key of the holding, the latest last. */
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

  /** The number of cached plans and parts. */
  get size(): number {
    return this.#kept.size
  }

  /** The number of groups and subscriptions with cache entries. */
  get owners(): number {
    return this.#keys.size
  }

  /** Drops the entries of a group whose bytes changed, or of a subscription that no stream uses any more. */
  #forget(owner: Group | number): void {
    for (const key of [...(this.#keys.get(owner) ?? [])]) this.#kept.delete(key)
  }

  /**
   * Returns the cached result of a key, or makes it. A full plan consists of parts, and each part is cached once, however many classes
   * share its group. Above {@link firstBytes} a result is not cached when it is first made: proxies then see different configuration, and
   * most results are for one proxy only.
   */
  #cached<T extends Plan | Part>(key: string, groups: readonly Group[], subscription: Subscription, sizeOf: (made: T) => number, make: () => T): T {
    const { enabled, read } = this.#options
    const kept = enabled ? (this.#kept.get(key)?.made as T | undefined) : undefined
    read?.(kept !== undefined)
    if (kept) return kept
    const made = make()
    if (!enabled || (this.#kept.calculatedSize > firstBytes && this.#isFirst(key))) return made
    this.#kept.set(key, { made, groups, subscription: subscription.id }, { size: sizeOf(made) })
    // The cache does not store an entry that is larger than the whole cache.
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
      if (this.#once.size <= maxOnce) break
      this.#once.delete(oldest)
    }
    return true
  }

  /** Returns a plan with everything that the subscription covers. */
  full(typeUrl: string, state: TypeState, subscription: Subscription, delta: boolean): Plan {
    const key = `full|${delta}|${typeUrl}|${state.holding.key}|${subscription.id}`
    // The bytes of the chunks are counted with the parts; the names without a resource are counted here.
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

  /**
   * Returns the subscribed names of which the class has no resource. Streams with equal subscriptions share the result if their holdings
   * are equal, whatever their class.
   */
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

  /**
   * Returns the resources of a group that a class has and a subscription covers. A subscription that covers all of the group, or nearly
   * all, shares the bytes of the joined group.
   */
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
    // Few classes have shadowed names, and only for a short time: this part is not cached.
    if (state.isShadowed(visible)) return make()
    return this.#cached(`part|${delta}|${visible.seen.serial}|${subscription.id}`, [visible.group], subscription, heldBytes, make)
  }

  #whole(group: Group, delta: boolean): WholePart {
    const size = (part: WholePart) => heldBytes(part) + part.ownBytes
    return this.#cached(`whole|${delta}|${group.id}`, [group], everything, size, () => new WholePart([...group.entries.values()], delta))
  }

  /** Returns a plan with the subscribed ones among these names. */
  ofNames(typeUrl: string, state: TypeState, subscription: Subscription, names: ReadonlySet<string>, delta: boolean): Plan {
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

  /** Returns a plan with the resources that changed since a holding was sent, and the removed names. */
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

  /** Returns a plan with everything that the subscription covers and the names removed since a holding was sent (delta only). */
  fullSince(typeUrl: string, state: TypeState, sent: Holding | undefined, subscription: Subscription): Plan {
    const full = this.full(typeUrl, state, subscription, true)
    if (!sent || sent.version === state.version) return full
    const { removed } = this.difference(typeUrl, state, sent, subscription, true)
    return removed.length === 0 ? full : { ...full, removed: [...new Set([...full.removed, ...removed])] }
  }

  /** Returns a plan with the difference to the versions that a reconnecting proxy reported in `initial_resource_versions` (D7). */
  reconnected(typeUrl: string, state: TypeState, versions: ReportedVersions, subscription: Subscription): Plan {
    const { unreported, others } = versions.differencesTo(this.#formOf(typeUrl, state))
    const entries = unreported.flatMap((name) => (takes(subscription, typeUrl, name) ? (state.find(name) ?? []) : []))
    const gone = [...others.keys()].filter((name) => takes(subscription, typeUrl, name) && !state.find(name))
    const missing = this.missing(subscription, state).filter((name) => isResourceName(typeUrl, name) && !others.has(name))
    return { ...planOf(entries, true, [...gone, ...missing]), changed: new Set(entries.map(({ name }) => name)) }
  }

  #formOf(typeUrl: string, state: TypeState): ReportedForm {
    const key = `${typeUrl}|${state.holding.key}`
    const known = this.#forms.get(key)
    if (known) return known
    const form = new ReportedForm(state.entries())
    this.#forms.set(key, form)
    return form
  }
}

const noNames: readonly string[] = []
/** The maximum number of holdings for which the missing names of a subscription are cached. */
const keptStates = 16

const groupsOf = (state: TypeState): Group[] => state.groups.map(({ group }) => group)

function planOf(entries: readonly Entry[], delta: boolean, removed: readonly string[]): Plan {
  return { ...partOf(entries, delta), removed, added: undefined, changed: undefined }
}

/**
 * Returns the resource that is sent for a name that does not exist, so that the proxy need not wait (S10): a route configuration or load
 * assignment with only its name (field 1 of both).
 */
function emptyEntry(typeUrl: string, name: string): Entry[] {
  if (typeUrl !== routeType && typeUrl !== endpointType) return []
  const value = textField(1, name)
  const bytes = Buffer.concat([elementHead(typeUrl, value.length), value])
  return [entryOf({ name, version: 'none' }, [bytes])]
}
