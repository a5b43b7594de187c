/** Configuration objects as they were accepted, by kind. */
import type { ConfigObject } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import { byAge, compare } from '../model/order.ts'
import { Generations } from './generations.ts'

/** An object that is another than before, or was not there, or is not any more. */
export interface ObjectChange {
  readonly before: ConfigObject | undefined
  readonly now: ConfigObject | undefined
}

interface Held {
  readonly object: ConfigObject
  readonly generation: number
  /** All of the object that can make a difference to a proxy. */
  readonly fingerprint: string
}

/** All objects. Equal content is no change, whatever else is said of an object. */
export class ObjectStore {
  readonly #held = new Map<string, Held>()
  /** Keys by kind. */
  readonly #kinds = new Map<string, Set<string>>()
  /** Objects of a kind in their order, where they were asked for since one changed. */
  readonly #sorted = new Map<string, readonly ConfigObject[]>()
  readonly #generations: Generations

  /** Generations of versions that were replaced are remembered for so many milliseconds. */
  constructor(keepMs: number) {
    this.#generations = new Generations(keepMs)
  }

  get(key: string): ConfigObject | undefined {
    return this.#held.get(key)?.object
  }

  /** All objects, sorted by key. */
  all(): ConfigObject[] {
    return [...this.#held.values()].map(({ object }) => object).sort((one, other) => compare(configKey(one), configKey(other)))
  }

  /** All objects of a kind, the oldest first. The same list until one of them changes. */
  ofKind<T extends ConfigObject>(kind: string): readonly T[] {
    const known = this.#sorted.get(kind) as readonly T[] | undefined
    if (known) return known
    const sorted = [...(this.#kinds.get(kind) ?? [])].flatMap((key) => (this.#held.get(key)?.object as T | undefined) ?? []).sort(byAge)
    this.#sorted.set(kind, sorted)
    return sorted
  }

  /** Adds, replaces or removes an object. Returns the change, or undefined where its content is as before. */
  set(key: string, given: ConfigObject | undefined): ObjectChange | undefined {
    const before = this.#held.get(key)
    const fingerprint = given && JSON.stringify([given.spec, given.labels, given.annotations, given.createdAt])
    const differs = fingerprint !== before?.fingerprint
    let now: Held | undefined
    if (given && fingerprint !== undefined) {
      const generation = this.#generations.next(key, given.generation, differs, this.#held)
      // What is made from an object is kept by the identity of its parts.
      const { spec, labels, annotations } = before && !differs ? before.object : given
      now = { object: { ...given, spec, labels, annotations, generation }, generation, fingerprint }
    }
    this.#generations.replaced(key, before, now)
    this.#hold(key, before, now)
    return differs ? { before: before?.object, now: now?.object } : undefined
  }

  /** A digest of all objects and their generations, twelve characters. It names a version of the configuration. */
  get ledger(): string {
    return this.#generations.ledger
  }

  /** A version of the configuration is complete, at a time in monotonic milliseconds. */
  endVersion(now: number): void {
    this.#generations.endVersion(now)
  }

  /** Generation of an object in a complete version, by its ledger. Undefined when it had no such object, or is not known any more. */
  generation(key: string, ledger: string): number | undefined {
    return this.#generations.in(ledger, key, this.#held.get(key)?.generation)
  }

  #hold(key: string, before: Held | undefined, now: Held | undefined): void {
    for (const held of [before, now]) if (held) this.#sorted.delete(held.object.kind)
    if (before && before.object.kind !== now?.object.kind) this.#kinds.get(before.object.kind)?.delete(key)
    if (!now) {
      this.#held.delete(key)
      return
    }
    this.#held.set(key, now)
    const { kind } = now.object
    const keys = this.#kinds.get(kind)
    if (keys) keys.add(key)
    else this.#kinds.set(kind, new Set([key]))
  }
}
