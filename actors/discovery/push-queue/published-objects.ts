/** Tells the status writer which push has which generation of the configuration objects of a cluster (`ObjectsPublished`). */
import type { ConfigObject } from '../../../protocols/data.ts'
import type { ObjectsPublished, PublishedObject } from '../../../protocols/messages/object-status.ts'
import { kindOfKey, kinds } from '../../../src/config/kinds.ts'
import type { ObjectStore } from '../../../src/snapshot/object-store.ts'
import type { Peer } from '../../runtime/link.ts'

/** A generation as its source counts it. The one in the snapshot also grows when labels or annotations change. */
interface Given {
  readonly uid: string
  readonly generation: number
}

/** The generations that sources gave, and what changed since the last push. */
export class PublishedObjects {
  readonly #objects: Pick<ObjectStore, 'get'>
  readonly #lastPush: () => number
  readonly #isWanted: boolean
  /** By key and source. */
  readonly #given = new Map<string, Map<string, Given>>()
  readonly #changed = new Set<string>()
  #peer: Peer<ObjectsPublished> | undefined

  /** `objects`: those in force. `lastPush` returns the number of the last push of changes. `isWanted`: whether there is a status writer. */
  constructor(objects: Pick<ObjectStore, 'get'>, lastPush: () => number, isWanted: boolean) {
    this.#objects = objects
    this.#lastPush = lastPush
    this.#isWanted = isWanted
  }

  /** Is told of all objects, later of those that change. */
  linked(peer: Peer<ObjectsPublished>): void {
    this.#peer = peer
    this.#tell([...this.#given.keys()].filter((key) => !this.#changed.has(key)).map((key) => this.#publishedOf(key, false)))
  }

  unlinked(): void {
    this.#peer = undefined
  }

  /** A source has sent an object, or that it is gone. `hasChanged`: whether another content is in force now. */
  received(key: string, object: ConfigObject | undefined, source: string, hasChanged: boolean): void {
    if (!this.#isWanted || !kinds.has(kindOfKey(key))) return
    const given = this.#given.get(key)
    const before = given?.get(source)
    if (object && object.uid !== '') {
      const now = { uid: object.uid, generation: object.generation }
      if (given) given.set(source, now)
      else this.#given.set(key, new Map([[source, now]]))
    } else if (given?.delete(source) && given.size === 0) this.#given.delete(key)
    if (hasChanged && (given ?? this.#given.has(key))) this.#changed.add(key)
    else if (!this.#changed.has(key) && this.#given.get(key)?.get(source)?.generation !== before?.generation)
      this.#tell([this.#publishedOf(key, true)])
  }

  /** Another definition of an object is in force, or it is changed by something else. */
  changed(key: string): void {
    if (this.#isWanted && kinds.has(kindOfKey(key))) this.#changed.add(key)
  }

  /** All changes so far are in the last push, or changed nothing for any proxy. */
  published(): void {
    if (this.#changed.size === 0) return
    this.#tell([...this.#changed].map((key) => this.#publishedOf(key, false)))
    this.#changed.clear()
  }

  #publishedOf(key: string, isSame: boolean): PublishedObject {
    const { uid = '' } = this.#objects.get(key) ?? {}
    const given = uid === '' ? undefined : [...(this.#given.get(key)?.values() ?? [])].find((each) => each.uid === uid)
    return { key, uid, generation: given?.generation ?? 0, isSame }
  }

  #tell(objects: readonly PublishedObject[]): void {
    if (objects.length > 0) this.#peer?.tell({ type: 'ObjectsPublished', push: this.#lastPush(), objects })
  }
}
