/** The accepted configuration objects, by kind. */
import type { ConfigObject } from '../../protocols/data.ts'
import { configKey, kindOfKey } from '../config/kinds.ts'
import { byAge, compare } from '../model/order.ts'
import { type Digest, digestOf, Generations } from './generations.ts'
import type { notKept } from './history.ts'
import { sameContent, withPartsOf } from './same-content.ts'

/** An object that was added, replaced or removed. One of both is there. */
export interface ObjectChange {
  readonly before: ConfigObject | undefined
  readonly now: ConfigObject | undefined
}

interface StoredObject {
  readonly object: ConfigObject
  /** Of its key, generation and content. */
  readonly digest: Digest
}

/** The objects of a kind at one time, the oldest first, and the changes since then. */
interface Sorted {
  list: readonly ConfigObject[]
  /** Objects of the list that were replaced or removed. */
  readonly left: Set<ConfigObject>
  /** Objects that were added, by key. */
  readonly joined: Map<string, ConfigObject>
}

/**
 * Returns a text that differs for objects with different content: the version that the source gave, otherwise all parts that can affect a
 * proxy.
 */
function contentOf({ uid, resourceVersion, spec, labels, annotations, createdAt, healthy }: ConfigObject): string {
  return uid !== '' && resourceVersion !== '' ? `${uid}@${resourceVersion}` : JSON.stringify([spec, labels, annotations, createdAt, healthy])
}

/** All objects. Setting an object with equal content is not a change, even if its generation differs. */
export class ObjectStore {
  readonly #held = new Map<string, StoredObject>()
  /** Keys by kind id. */
  readonly #kinds = new Map<string, Set<string>>()
  /** The kinds that were listed. */
  readonly #sorted = new Map<string, Sorted>()
  readonly #generations: Generations

  /** `keepMs`: how long the generations of past versions are kept, in milliseconds. */
  constructor(keepMs: number) {
    this.#generations = new Generations(keepMs)
  }

  get(key: string): ConfigObject | undefined {
    return this.#held.get(key)?.object
  }

  /** All objects, in no order, one by one: objects that change meanwhile are among them or not. */
  *each(): Generator<ConfigObject> {
    for (const { object } of this.#held.values()) yield object
  }

  /** All objects, sorted by key. */
  all(): ConfigObject[] {
    return [...this.#held.values()].map(({ object }) => object).sort((one, other) => compare(configKey(one), configKey(other)))
  }

  /** Returns all objects of a kind (by its id), the oldest first. It is the same list until one of them changes. */
  ofKind<T extends ConfigObject>(kind: string): readonly T[] {
    const sorted = this.#sorted.get(kind) ?? { list: [], left: new Set(), joined: new Map(this.#entriesOf(kind)) }
    this.#sorted.set(kind, sorted)
    const { left, joined } = sorted
    if (left.size + joined.size > 0) {
      // The sort takes the part that is in order as it is.
      sorted.list = [...sorted.list.filter((object) => !left.has(object)), ...joined.values()].sort(byAge)
      left.clear()
      joined.clear()
    }
    return sorted.list as readonly T[]
  }

  /** The number of objects of a kind. */
  countOf(kind: string): number {
    return this.#kinds.get(kind)?.size ?? 0
  }

  *#entriesOf(kind: string): Generator<[key: string, object: ConfigObject]> {
    for (const key of this.#kinds.get(kind) ?? []) {
      const object = this.get(key)
      if (object) yield [key, object]
    }
  }

  /** Adds, replaces or removes an object. Returns the change, or undefined if the content is equal. */
  set(key: string, given: ConfigObject | undefined): ObjectChange | undefined {
    const before = this.#held.get(key)
    if (!given && !before) return undefined
    const isSame = given !== undefined && before !== undefined && sameContent(before.object, given)
    const now = given && this.#stored(key, before, given, isSame)
    this.#generations.replaced(key, before, now)
    this.#hold(key, before, now)
    return isSame ? undefined : { before: before?.object, now: now?.object }
  }

  #stored(key: string, before: StoredObject | undefined, given: ConfigObject, isSame: boolean): StoredObject {
    // Of the content first, since an object of which none can be made must not change anything.
    const content = isSame ? '' : contentOf(given)
    const generation = this.#generations.next(key, given.generation, !isSame, this.#held)
    // The unchanged parts keep their identity, because values made from an object are cached by it.
    const kept = before && isSame ? withPartsOf(before.object, given) : given
    const object = kept.generation === generation ? kept : { ...kept, generation }
    if (before && isSame && before.object.generation === generation) return { object, digest: before.digest }
    return { object, digest: digestOf(key, generation, isSame ? contentOf(object) : content) }
  }

  /** A digest of all objects and their generations, twelve characters long. It identifies a version of the configuration. */
  get digest(): string {
    return this.#generations.digest
  }

  /** Completes a version of the configuration at `now`, in monotonic milliseconds. */
  endVersion(now: number): void {
    this.#generations.endVersion(now)
  }

  /**
   * The generation of an object in the version with this digest. Undefined when the version does not contain the object.
   */
  generation(key: string, digest: string): number | typeof notKept | undefined {
    return this.#generations.in(digest, key, this.#held.get(key)?.object.generation)
  }

  #hold(key: string, before: StoredObject | undefined, now: StoredObject | undefined): void {
    const kind = kindOfKey(key)
    if (before) {
      const sorted = this.#sorted.get(kind)
      if (!sorted?.joined.delete(key)) sorted?.left.add(before.object)
    }
    if (now) this.#sorted.get(kind)?.joined.set(key, now.object)
    if (!now) {
      this.#held.delete(key)
      this.#kinds.get(kind)?.delete(key)
      return
    }
    this.#held.set(key, now)
    const keys = this.#kinds.get(kind)
    if (keys) keys.add(key)
    else this.#kinds.set(kind, new Set([key]))
  }
}
