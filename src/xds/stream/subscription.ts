/**
 * Subscriptions of proxies. Equal subscriptions are interned, whatever the order of the names, so that results computed for one serve all,
 * and a name that many proxies subscribe to is held once. Subscriptions, and the lists that they were read from, live as long as a stream
 * uses them.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { virtualHostType } from '../type-urls.ts'
import { type NameSet, NameSets, SimilarNames, sameSet } from './name-set.ts'
import { namesIn } from './request.ts'

/** A set of resource names, with or without the wildcard. */
export interface Subscription {
  readonly id: number
  readonly wildcard: boolean
  /** Names that were given explicitly, with or without the wildcard. */
  readonly names: NameSet
}

/** The wildcard alone, as a first empty list means. */
export const everything: Subscription = { id: 0, wildcard: true, names: new Set() }
/** No resource, as an empty list means after names were given. */
export const nothing: Subscription = { id: 1, wildcard: false, names: new Set() }

/** A list of names in a request. */
export interface Asked {
  /** The name fields as received. */
  readonly raw: Buffer
  readonly isEmpty: boolean
  /** The subscription that the list means; the name `*` is the wildcard. */
  readonly subscription: Subscription
}

/** Lists of more bytes than this are long. */
const longList = 256
/**
 * The maximum total length in bytes of the long lists that are remembered. A client can send a list as long as a message, and the same
 * names in any order.
 */
const listBytes = 8 * 1024 * 1024
/** The maximum number of subscriptions with equal {@link likeness} that are searched for an equal one. */
const candidates = 16

/** A long list, held weakly, and its length in bytes. */
interface RememberedList {
  readonly asked: WeakRef<Asked>
  readonly bytes: number
}

const nothingAsked: Asked = { raw: Buffer.alloc(0), isEmpty: true, subscription: nothing }

/**
 * Returns a reference to a list: a weak one for a long list, since a client could make it long at will; remembered lists are held
 * elsewhere.
 */
export function keptList(asked: Asked): { deref(): Asked | undefined } {
  return asked.raw.length > longList ? new WeakRef(asked) : { deref: () => asked }
}

/** Creates and interns subscriptions. */
export class Subscriptions {
  /** The most recent long lists by digest: similar proxies send the same list, and repeat it with each ACK. */
  readonly #lists = new LRUCache<string, RememberedList>({
    maxSize: listBytes,
    sizeCalculation: ({ bytes }) => bytes,
    dispose: ({ asked }) => this.#drop(asked.deref()),
  })
  /** Strong references to the remembered lists, held by their subscriptions: a list lives as long as a stream has its subscription. */
  readonly #holders = new WeakMap<Subscription, Set<Asked>>()
  #last: WeakRef<Asked> | undefined
  /**
   * Subscriptions of long lists by digest. Holds more lists than are remembered with their bytes, for proxies that see different
   * configuration.
   */
  readonly #read = new LRUCache<string, WeakRef<Subscription>>({ max: 16_384 })
  /** Subscriptions in use by {@link likeness}. */
  readonly #alike = new LRUCache<string, WeakRef<Subscription>[]>({ max: 4096 })
  /** The results of the most recent changes of subscriptions: similar proxies make the same changes. */
  readonly #derived = new LRUCache<string, WeakRef<Subscription>>({ max: 64 })
  readonly #sets = new NameSets()
  #nextId = 2

  /**
   * Parses a list of names in a request. `raw` are the name fields as received; `before` is the last list of the same watch, which each ACK
   * of the state of the world repeats. A remembered list is not parsed again. Throws WireError.
   */
  asked(raw: Buffer, before?: Asked): Asked {
    if (raw.length === 0) return nothingAsked
    if (before?.raw.equals(raw)) return before
    return raw.length <= longList ? this.#asked(Buffer.from(raw), undefined) : this.#long(raw, true)
  }

  /**
   * Parses the names that a delta request adds. No later request repeats them, so the bytes of a list that is similar to a known one are
   * not kept. Throws WireError.
   */
  added(raw: Buffer): Omit<Asked, 'raw'> {
    return raw.length <= longList ? this.asked(raw) : this.#long(raw, false)
  }

  #long(raw: Buffer, isRepeated: boolean): Asked {
    const last = this.#last?.deref()
    if (last?.raw.equals(raw)) return last
    const key = hash('sha1', raw, 'base64')
    const known = this.#lists.get(key)?.asked.deref()
    const subscription = known?.subscription ?? this.#read.get(key)?.deref() ?? this.#similar(raw)
    if (subscription && !known && !isRepeated) {
      this.#read.set(key, new WeakRef(subscription))
      return { raw, isEmpty: false, subscription }
    }
    const asked = known ?? this.#asked(Buffer.from(raw), subscription)
    if (!known) this.#remember(key, asked)
    this.#last = new WeakRef(asked)
    return asked
  }

  /** Returns the subscription of a list that is similar to a recent one; undefined if there is none. */
  #similar(raw: Buffer): Subscription | undefined {
    const names = this.#sets.like(raw)
    return names && !names.has('*') ? this.#shared(names, false) : undefined
  }

  #remember(key: string, asked: Asked): void {
    const { raw, subscription } = asked
    // The subscriptions `everything` and `nothing` always exist and would hold the list forever.
    if (subscription.names.size === 0) return
    this.#read.set(key, new WeakRef(subscription))
    const lists = this.#holders.get(subscription)
    if (lists) lists.add(asked)
    else this.#holders.set(subscription, new Set([asked]))
    this.#lists.set(key, { asked: new WeakRef(asked), bytes: raw.length })
  }

  #drop(asked: Asked | undefined): void {
    if (asked) this.#holders.get(asked.subscription)?.delete(asked)
  }

  #asked(raw: Buffer, known: Subscription | undefined): Asked {
    if (known) return { raw, isEmpty: false, subscription: known }
    const names = namesIn(raw)
    const wildcard = names.delete('*')
    return { raw, isEmpty: false, subscription: this.#shared(this.#sets.kept(names, raw), wildcard) }
  }

  /** Returns a subscription with names added and removed. A name that is in both is added. */
  derive(from: Subscription, add: NameSet, remove: readonly string[], wildcard: boolean): Subscription {
    const key = add.size + remove.length > 64 ? '' : JSON.stringify([from.id, wildcard, [...add], remove])
    const known = key === '' ? undefined : this.#derived.get(key)?.deref()
    if (known) return known
    const derived = this.#shared(this.#sets.changed(from.names, add, remove), wildcard)
    if (key !== '') this.#derived.set(key, new WeakRef(derived))
    return derived
  }

  /** Returns a subscription without some of its names. */
  without(from: Subscription, names: ReadonlySet<string>): Subscription {
    return this.#shared(this.#sets.changed(from.names, [], names), from.wildcard)
  }

  #shared(names: NameSet, wildcard: boolean): Subscription {
    if (names.size === 0) return wildcard ? everything : nothing
    const key = likeness(names)
    const alive = (this.#alike.get(key) ?? []).flatMap((reference) => reference.deref() ?? [])
    const equal = alive.find((one) => one.wildcard === wildcard && sameSet(one.names, names))
    if (equal) return equal
    const made: Subscription = { id: this.#nextId++, wildcard, names }
    this.#alike.set(
      key,
      [...alive, made].slice(-candidates).map((one) => new WeakRef(one)),
    )
    return made
  }
}

/**
 * Returns a key that is equal for equal sets of the same base, and for few others: sets with the same base differ in the names that only
 * they have.
 */
function likeness(names: NameSet): string {
  if (!(names instanceof SimilarNames)) return String(names.size)
  let first = ''
  for (const name of names.plus) if (first === '' || name < first) first = name
  return `${names.size}|${first}`
}

/** Whether two subscriptions cover the same resources. */
export function sameNames(one: Subscription, other: Subscription): boolean {
  return one === other || (one.wildcard === other.wildcard && sameSet(one.names, other.names))
}

/**
 * Whether a subscription covers a resource. A virtual host, `80/a.example:80`, is also covered by the name of its route configuration,
 * `80`: this is the name that proxies subscribe to (VHDS).
 */
export function takes({ wildcard, names }: Pick<Subscription, 'wildcard' | 'names'>, typeUrl: string, name: string): boolean {
  if (wildcard || names.has(name)) return true
  return typeUrl === virtualHostType && names.has(routeOf(name))
}

const routeOf = (host: string): string => host.slice(0, Math.max(0, host.lastIndexOf('/')))

/** Whether a name denotes a resource, and not all virtual hosts of a route configuration. */
export function isResourceName(typeUrl: string, name: string): boolean {
  return typeUrl !== virtualHostType || name.includes('/')
}
