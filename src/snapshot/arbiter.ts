/**
 * Decides which of several definitions of an object counts, when several sources define it (docs/operation.md, F9). The definitions that do
 * not count are reported, and count as soon as those before them are withdrawn.
 */
import type { ConfigObject } from '../../protocols/data.ts'
import { clusterKinds, kindOfKey, namespaceOfKey } from '../config/kinds.ts'
import { isPolicyKind } from '../config/recognise.ts'
import { contest, isStandIn } from '../config/stand-in.ts'
import type { ResourceFault } from '../model/faults.ts'
import { compare } from '../model/order.ts'
import { placeOf } from './references.ts'
import { sameContent, withPartsOf } from './same-content.ts'

/** The definition of an object by one source. */
interface Definition {
  readonly source: string
  /** The last usable state, also while the present one cannot be used; or a stand-in for a policy that never was usable; undefined if there is neither. */
  readonly object: ConfigObject | undefined
}

/** What counts for an object. */
export interface Verdict {
  /** Undefined if no source has a definition that can be used. */
  readonly object: ConfigObject | undefined
  /** One for each definition that does not count. */
  readonly faults: readonly ResourceFault[]
}

/** A definition that can be used and does not count. */
export interface LeftOut {
  readonly object: ConfigObject
  readonly reason: string
}

/** The definitions of all objects by all sources. A source is named by its actor. */
export class Arbiter {
  /** By key. An object that one source defines has no list. */
  readonly #definitions = new Map<string, Definition | readonly Definition[]>()
  readonly #contestsPolicies: boolean
  #ranks: ReadonlyMap<string, number> = new Map()

  /** `contestsPolicies`: whether a policy that sources define differently is replaced by the strictest policy that they may mean. */
  constructor(contestsPolicies: boolean) {
    this.#contestsPolicies = contestsPolicies
  }

  /**
   * Sets the order of sources, the first of which has precedence. Sources that are not in it come after all others, by name. Returns the keys
   * of the objects that several sources define, of which another definition may count now.
   */
  setSources(order: readonly string[]): string[] {
    if (order.length === this.#ranks.size && order.every((source, index) => this.#ranks.get(source) === index)) return []
    this.#ranks = new Map(order.map((source, index) => [source, index]))
    return [...this.#definitions].filter(([, held]) => isList(held)).map(([key]) => key)
  }

  /** A source defines an object, or defines it no longer. */
  define(source: string, key: string, object: ConfigObject | undefined): void {
    const known = this.#of(source, key)
    if (!object) return known && this.#set(key, source, undefined)
    const before = known?.object
    const now = before && sameContent(before, object) ? withPartsOf(before, object) : object
    this.#set(key, source, { source, object: now })
  }

  /**
   * A source has a definition of an object that cannot be used. Its last usable state stays. If there is none, the stand-in is used if one is
   * given.
   */
  defineUnusable(source: string, key: string, standIn: ConfigObject | undefined): void {
    const known = this.#of(source, key)?.object
    this.#set(key, source, { source, object: known && !isStandIn(known) ? known : (standIn ?? known) })
  }

  /** Removes the definitions of a source that is no more. Returns the keys of the objects that it defined. */
  withdraw(source: string): string[] {
    const keys = [...this.#definitions.keys()].filter((key) => this.#of(source, key))
    for (const key of keys) this.#set(key, source, undefined)
    return keys
  }

  /** The keys of the defined objects of some namespaces, except those that describe clusters. */
  keysIn(namespaces: ReadonlySet<string> | 'all'): string[] {
    return [...this.#definitions.keys()].filter(
      (key) => !clusterKinds.has(kindOfKey(key)) && (namespaces === 'all' || namespaces.has(namespaceOfKey(key))),
    )
  }

  /** Decides what counts for an object. */
  verdict(key: string): Verdict {
    const held = this.#definitions.get(key)
    if (!held || !isList(held)) return { object: held?.object, faults: [] }
    const all = [...held].sort((one, other) => this.#compare(one, other))
    const usable = all.flatMap((definition) => (definition.object ? [{ ...definition, object: definition.object }] : []))
    const [first, ...others] = usable
    if (!first) return { object: undefined, faults: [] }
    const objects = [first.object, ...others.map(({ object }) => object)] as const
    const isPolicy = this.#contestsPolicies && isPolicyKind(kindOfKey(key))
    const object = isPolicy ? contest(objects, `defined differently in ${objects.map(placeOf).join(' and in ')}`) : first.object
    const isContested = object !== first.object
    const faults = all
      .filter(({ source }) => source !== first.source)
      .map((definition): ResourceFault => {
        const again = definition.object ? `again in ${placeOf(definition.object)}` : `by ${definition.source} in a way that cannot be used`
        const reason = `defined in ${placeOf(first.object)}, and ${again}`
        return { type: 'definition', resource: key, objects: [key], reason, consequence: isContested ? consequences.contested : consequences.first }
      })
    return { object, faults }
  }

  /** The definitions of an object that could be used and do not count, with the reason. */
  leftOut(key: string): LeftOut[] {
    const held = this.#definitions.get(key)
    if (!held || !isList(held)) return []
    const usable = [...held].sort((one, other) => this.#compare(one, other)).flatMap(({ object }) => object ?? [])
    const [first, ...others] = usable
    if (!first) return []
    if (this.verdict(key).object !== first)
      return usable.map((object) => ({ object, reason: `another definition differs; ${consequences.contested} (F9 in docs/operation.md)` }))
    return others.map((object) => ({ object, reason: `the definition in ${placeOf(first)} comes first (F9 in docs/operation.md)` }))
  }

  /** The definition of an object by a source. */
  #of(source: string, key: string): Definition | undefined {
    const held = this.#definitions.get(key)
    return held && isList(held) ? held.find((each) => each.source === source) : held?.source === source ? held : undefined
  }

  /** Replaces or removes the definition of a source. */
  #set(key: string, source: string, now: Definition | undefined): void {
    const held = this.#definitions.get(key)
    const others = held === undefined ? [] : (isList(held) ? held : [held]).filter((each) => each.source !== source)
    const all = now ? [...others, now] : others
    const [only] = all
    if (!only) this.#definitions.delete(key)
    else this.#definitions.set(key, all.length === 1 ? only : all)
  }

  /**
   * The order of precedence: definitions that can be read first, then by the order of the sources, cluster, age, and name of the source. An
   * object whose age is not known counts as the youngest. The order is total, since a source has one definition of an object.
   */
  #compare(one: Definition, other: Definition): number {
    return (
      this.#rank(one) - this.#rank(other) ||
      compare(one.object?.cluster ?? '', other.object?.cluster ?? '') ||
      compareAges(one.object?.createdAt ?? 0, other.object?.createdAt ?? 0) ||
      compare(one.source, other.source)
    )
  }

  #rank({ source }: Definition): number {
    return this.#ranks.get(source) ?? this.#ranks.size
  }
}

const isList = (held: Definition | readonly Definition[]): held is readonly Definition[] => Array.isArray(held)

/** Compares times of creation, of which 0 is not known. */
const compareAges = (one: number, other: number): number => (one === other ? 0 : one === 0 ? 1 : other === 0 ? -1 : one - other)

/** What follows for the object when it is defined several times: the first definition counts, or none of those of a policy. */
const consequences = {
  first: 'the first definition counts',
  contested: 'until the definitions agree, the workloads that one of them selects are guarded by the strictest policy that they could mean',
}
