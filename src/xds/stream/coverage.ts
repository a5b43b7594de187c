/**
 * Which resources of a group a subscription covers. This depends on names only and not on content, so the result is reused over many pushes
 * and classes.
 */
import { virtualHostType } from '../type-urls.ts'
import type { Group, VisibleGroup } from './group.ts'
import { type NameSet, SimilarNames } from './name-set.ts'
import { type Subscription, takes } from './subscription.ts'
import type { TypeState } from './type-state.ts'

/** The resources of a group that a subscription covers, those of hidden hosts included: all classes share the group. */
export interface Coverage {
  /** Names of the group that are not covered, if at least half of the group is; else undefined. */
  readonly left: readonly string[] | undefined
  /** Names of the group that are covered, if fewer than half are; else empty. */
  readonly taken: readonly string[]
  /** Subscribed names that are not in the group; undefined if there are too many or they were not computed. */
  readonly outside: readonly string[] | undefined
}

const all: Coverage = { left: [], taken: [], outside: undefined }

/** Caches coverages for as long as both the subscription and the group exist. */
export class Coverages {
  readonly #known = new WeakMap<NameSet, WeakMap<Group, { readonly names: object; readonly coverage: Coverage }>>()

  of({ wildcard, names }: Pick<Subscription, 'wildcard' | 'names'>, { typeUrl, group }: VisibleGroup): Coverage {
    return wildcard ? all : this.#of(names, typeUrl, group)
  }

  /** Returns the subscribed names of which a class has no resource. */
  missing({ wildcard, names }: Subscription, state: TypeState): string[] {
    let candidates: Iterable<string> = names
    let least = wildcard ? 0 : names.size
    for (const visible of state.groups) {
      const { outside } = least > 0 ? this.#of(names, state.typeUrl, visible.group) : all
      if (!outside || outside.length >= least) continue
      least = outside.length
      candidates = [...outside, ...Array.from(visible.hiddenNames()).filter((name) => names.has(name))]
    }
    return [...candidates].filter((name) => !state.find(name))
  }

  #of(names: NameSet, typeUrl: string, group: Group): Coverage {
    let byGroup = this.#known.get(names)
    if (!byGroup) this.#known.set(names, (byGroup = new WeakMap()))
    const known = byGroup.get(group)
    if (known?.names === group.names) return known.coverage
    const coverage =
      typeUrl === virtualHostType
        ? ofRoutes(names, group)
        : names instanceof SimilarNames
          ? this.#ofDerived(names, typeUrl, group)
          : ofNames(names, group)
    byGroup.set(group, { names: group.names, coverage })
    return coverage
  }

  /** Derives the coverage of a similar set from the coverage of its base. */
  #ofDerived({ base, plus, minus }: SimilarNames, typeUrl: string, group: Group): Coverage {
    const { left, taken, outside } = this.#of(base, typeUrl, group)
    const [more, strange] = divided(plus, group)
    const [fewer] = divided(minus, group)
    return {
      left: left && [...left.filter((name) => !plus.has(name)), ...fewer],
      taken: left ? [] : [...taken.filter((name) => !minus.has(name)), ...more],
      outside: outside && [...outside.filter((name) => !minus.has(name)), ...strange],
    }
  }
}

/** Divides names into those that are in a group and those that are not. */
function divided(names: Iterable<string>, { entries }: Group): [inside: string[], outside: string[]] {
  const inside: string[] = []
  const outside: string[] = []
  for (const name of names) (entries.has(name) ? inside : outside).push(name)
  return [inside, outside]
}

function ofNames(names: NameSet, group: Group): Coverage {
  const { entries } = group
  // There are many more names than resources in the group: it is cheaper to iterate over the group.
  const [taken, outside] = names.size > 2 * entries.size ? [[...entries.keys()].filter((name) => names.has(name))] : divided(names, group)
  if (2 * taken.length < entries.size) return { left: undefined, taken, outside }
  return { left: [...entries.keys()].filter((name) => !names.has(name)), taken: [], outside }
}

/** A virtual host is also covered by the name of its route configuration. */
function ofRoutes(names: NameSet, { entries }: Group): Coverage {
  const taken: string[] = []
  const left: string[] = []
  for (const name of entries.keys()) (takes({ wildcard: false, names }, virtualHostType, name) ? taken : left).push(name)
  return 2 * taken.length < entries.size ? { left: undefined, taken, outside: undefined } : { left, taken: [], outside: undefined }
}
