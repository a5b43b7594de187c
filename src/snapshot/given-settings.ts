/** Which of several values of one setting counts: that of the first source in the configured order, else the default. */
import { compare } from '../model/order.ts'

/** A value of a setting, and where it comes from. */
export interface GivenSetting<T> {
  readonly value: T
  /** The source that gave it, for example `files`; empty for the default. */
  readonly source: string
  /** The place within the source, for people: a path; empty for the default. */
  readonly place: string
}

/**
 * The values of one setting (the mesh configuration, the networks) by source. A withdrawn value brings back that of the next source, and the
 * last one the default. Sources that are not in the configured order count after those that are, by name.
 */
export class GivenSettings<T> {
  readonly #given = new Map<string, GivenSetting<T>>()
  #order: readonly string[] = []
  #default: GivenSetting<T>
  #inForce: GivenSetting<T>

  constructor(value: T) {
    this.#default = { value, source: '', place: '' }
    this.#inForce = this.#default
  }

  /** The value that counts. */
  get inForce(): GivenSetting<T> {
    return this.#inForce
  }

  /** The values that do not count, in the order in which they would. */
  get overruled(): GivenSetting<T>[] {
    return this.#sorted().slice(1)
  }

  /** Sets the order of the sources. Returns whether another value counts now. */
  order(sources: readonly string[]): boolean {
    this.#order = sources
    return this.#choose()
  }

  /** Sets the value that counts without any source. Returns whether the value that counts is another one now. */
  setDefault(value: T): boolean {
    this.#default = { value, source: '', place: '' }
    return this.#choose()
  }

  /** Sets the value of a source, or withdraws it (undefined). Returns whether the value that counts is another one now. */
  set(source: string, place: string, value: T | undefined): boolean {
    if (value === undefined) this.#given.delete(source)
    else this.#given.set(source, { value, source, place })
    return this.#choose()
  }

  #choose(): boolean {
    const before = this.#inForce.value
    const now = this.#sorted()[0] ?? this.#default
    const differs = JSON.stringify(before) !== JSON.stringify(now.value)
    // An equal value keeps its identity, because values made from it are cached by it.
    this.#inForce = differs ? now : { ...now, value: before }
    return differs
  }

  #sorted(): GivenSetting<T>[] {
    const rank = ({ source }: GivenSetting<T>) => (this.#order.includes(source) ? this.#order.indexOf(source) : this.#order.length)
    return [...this.#given.values()].sort((one, other) => rank(one) - rank(other) || compare(one.source, other.source))
  }
}
