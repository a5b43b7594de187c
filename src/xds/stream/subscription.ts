/**
 * What a proxy has subscribed to. Equal subscriptions of different proxies are one object, in whatever order the names came:
 * what is worked out for one holds for all, and a name that many ask for is held once. Subscriptions, and the lists that they came from, live
 * as long as a stream has them.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { virtualHostType } from '../type-urls.ts'
import { type NameSet, NameSets, SimilarNames, sameSet } from './name-set.ts'
import { namesIn } from './request.ts'

/** A set of resource names, or everything. */
export interface Subscription {
  readonly id: number
  readonly wildcard: boolean
  /** Names that were given, beside the wildcard or alone. */
  readonly names: NameSet
}

/** Everything, as an empty first list means. */
export const everything: Subscription = { id: 0, wildcard: true, names: new Set() }
/** Nothing, as an empty list means after names were given. */
export const nothing: Subscription = { id: 1, wildcard: false, names: new Set() }

/** A list of names in a request. */
export interface Asked {
  /** The name fields as they came. */
  readonly raw: Buffer
  readonly isEmpty: boolean
  /** What it names; `*` is the wildcard. */
  readonly subscription: Subscription
}

/** Lists above this many bytes are long. */
const longList = 256
/** Bytes of long lists that are remembered: a client can make one as long as a message, and send the same names in any order. */
const listBytes = 8 * 1024 * 1024
/** Subscriptions with one likeness among which an equal one is looked for. */
const candidates = 16

/** A long list, as long as its subscription is there, and the bytes it came in. */
interface RememberedList {
  readonly asked: WeakRef<Asked>
  readonly bytes: number
}

const nothingAsked: Asked = { raw: Buffer.alloc(0), isEmpty: true, subscription: nothing }

/** Keeps a list that was asked for: a long one only as long as it is remembered anyway, since a client can make it long at will. */
export function keptList(asked: Asked): { deref(): Asked | undefined } {
  return asked.raw.length > longList ? new WeakRef(asked) : { deref: () => asked }
}

/** Makes subscriptions, equal ones only once. */
export class Subscriptions {
  /** The last long lists by digest: proxies that are alike ask for the same, and repeat it with each answer. */
  readonly #lists = new LRUCache<string, RememberedList>({
    maxSize: listBytes,
    sizeCalculation: ({ bytes }) => bytes,
    dispose: ({ asked }) => this.#drop(asked.deref()),
  })
  /** Who holds them: the subscriptions that they came to, each as long as a stream has it. */
  readonly #holders = new WeakMap<Subscription, Set<Asked>>()
  #last: WeakRef<Asked> | undefined
  /** What long lists came to by digest, as long as a stream has it: where proxies see different things, more lists are in use than are remembered. */
  readonly #read = new LRUCache<string, WeakRef<Subscription>>({ max: 16_384 })
  /** Subscriptions in use by what equal ones have in common ({@link likeness}). */
  readonly #alike = new LRUCache<string, WeakRef<Subscription>[]>({ max: 4096 })
  /** What became of subscriptions by the last changes: proxies that are alike change alike. */
  readonly #derived = new LRUCache<string, WeakRef<Subscription>>({ max: 64 })
  readonly #sets = new NameSets()
  #nextId = 2

  /**
   * What a list of names in a request means; `raw` are the name fields as they came, `before` is what was asked for last in this place:
   * each ACK of the state of the world repeats it. A list that is remembered is not read again. Throws WireError.
   */
  asked(raw: Buffer, before?: Asked): Asked {
    if (raw.length === 0) return nothingAsked
    if (before?.raw.equals(raw)) return before
    return raw.length <= longList ? this.#asked(Buffer.from(raw), undefined) : this.#long(raw, true)
  }

  /** The same for names that a delta request adds. No later request repeats them: the bytes of a list that is like another are not kept. Throws WireError. */
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

  /** What a list comes to that is like one of the last. */
  #similar(raw: Buffer): Subscription | undefined {
    const names = this.#sets.like(raw)
    return names && !names.has('*') ? this.#shared(names, false) : undefined
  }

  #remember(key: string, asked: Asked): void {
    const { raw, subscription } = asked
    // What means everything or nothing is held by nobody.
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

  /** A subscription with names added and removed. Names that are both are added. */
  derive(from: Subscription, add: NameSet, remove: readonly string[], wildcard: boolean): Subscription {
    const key = add.size + remove.length > 64 ? '' : JSON.stringify([from.id, wildcard, [...add], remove])
    const known = key === '' ? undefined : this.#derived.get(key)?.deref()
    if (known) return known
    const derived = this.#shared(this.#sets.changed(from.names, add, remove), wildcard)
    if (key !== '') this.#derived.set(key, new WeakRef(derived))
    return derived
  }

  /** A subscription without some of its names. */
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

/** Equal for equal sets of the same base, and for few others: own names of proxies tell their sets apart where thousands are common. */
function likeness(names: NameSet): string {
  if (!(names instanceof SimilarNames)) return String(names.size)
  let first = ''
  for (const name of names.plus) if (first === '' || name < first) first = name
  return `${names.size}|${first}`
}

/** Whether two subscriptions take the same. */
export function sameNames(one: Subscription, other: Subscription): boolean {
  return one === other || (one.wildcard === other.wildcard && sameSet(one.names, other.names))
}

/** Whether a subscription takes a resource. A virtual host, `80/a.example:80`, also comes with its route, `80`: that is what proxies ask for (VHDS). */
export function takes({ wildcard, names }: Pick<Subscription, 'wildcard' | 'names'>, typeUrl: string, name: string): boolean {
  if (wildcard || names.has(name)) return true
  return typeUrl === virtualHostType && names.has(routeOf(name))
}

const routeOf = (host: string): string => host.slice(0, Math.max(0, host.lastIndexOf('/')))

/** Whether a name stands for a resource, and not for the hosts of a route. */
export function isResourceName(typeUrl: string, name: string): boolean {
  return typeUrl !== virtualHostType || name.includes('/')
}
