/** What subscriptions take of groups. It changes when names come and go, and not with content: it is worked out once for many pushes and many classes. */
import { virtualHostType } from '../type-urls.ts'
import type { Group, VisibleGroup } from './group.ts'
import { type NameSet, SimilarNames } from './name-set.ts'
import { type Subscription, takes } from './subscription.ts'
import type { TypeState } from './type-state.ts'

/** What a subscription takes of a group. Hidden resources are among it: the group is that of all classes. */
export interface Coverage {
  /** Names of the group that are not taken, where at least half of it is. */
  readonly left: readonly string[] | undefined
  /** Names that are taken, where that is less than half of the group. */
  readonly taken: readonly string[]
  /** Names that are subscribed to and not in the group, unless they are many. */
  readonly outside: readonly string[] | undefined
}

const all: Coverage = { left: [], taken: [], outside: undefined }

/** Remembers what subscriptions take of groups, as long as both are there. */
export class Coverages {
  readonly #known = new WeakMap<NameSet, WeakMap<Group, { readonly names: object; readonly coverage: Coverage }>>()

  of({ wildcard, names }: Pick<Subscription, 'wildcard' | 'names'>, { typeUrl, group }: VisibleGroup): Coverage {
    return wildcard ? all : this.#of(names, typeUrl, group)
  }

  /** Names that are subscribed to and of which a class has no resource. */
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

  /** From what the names are like, and what they differ in. */
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

/** Names that a group has, and those that it has not. */
function divided(names: Iterable<string>, { entries }: Group): [inside: string[], outside: string[]] {
  const inside: string[] = []
  const outside: string[] = []
  for (const name of names) (entries.has(name) ? inside : outside).push(name)
  return [inside, outside]
}

function ofNames(names: NameSet, group: Group): Coverage {
  const { entries } = group
  // Names are many more than the group has: it is the group that is looked through.
  const [taken, outside] = names.size > 2 * entries.size ? [[...entries.keys()].filter((name) => names.has(name))] : divided(names, group)
  if (2 * taken.length < entries.size) return { left: undefined, taken, outside }
  return { left: [...entries.keys()].filter((name) => !names.has(name)), taken: [], outside }
}

/** Virtual hosts also come with their route. */
function ofRoutes(names: NameSet, { entries }: Group): Coverage {
  const taken: string[] = []
  const left: string[] = []
  for (const name of entries.keys()) (takes({ wildcard: false, names }, virtualHostType, name) ? taken : left).push(name)
  return 2 * taken.length < entries.size ? { left: undefined, taken, outside: undefined } : { left, taken: [], outside: undefined }
}
