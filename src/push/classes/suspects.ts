/**
 * Finds out which of several patches a proxy refuses (docs/resources.md, F7): first each is left out alone, so that the others stay in place;
 * if that is refused too, all are left out, and as the proxy accepts that, they are applied again by halves.
 */
import type { ConfigPatch } from '../../config/kinds/envoy-filter.ts'

/** The maximum number of patches of which each is left out alone. */
const mostAlone = 8
/** The maximum number of times that patches are applied again. What was not applied again by then stays withdrawn. */
export const maxTries = 32

/** How it is found out which patches are the cause. */
export interface SearchManner {
  /** Whether each patch may be left out alone first: not if something else has to reach the proxy at once. */
  readonly oneByOne: boolean
  /** Whether it is told when the proxy accepts the resource. If not, patches are not applied again. */
  readonly isAnswered: boolean
}

/** The patches that may be the cause of a refusal, and those of them that are withdrawn. */
export class SuspectSearch {
  readonly suspects: ReadonlySet<ConfigPatch>
  readonly #isAnswered: boolean
  #withdrawn: Set<ConfigPatch>
  /** The patches that are left out alone after the present one; undefined when all were, or none is. */
  #alone: ConfigPatch[] | undefined
  /** Groups of withdrawn patches to be applied again, and the group that has been, until the proxy answers. */
  #waiting: (readonly ConfigPatch[])[] = []
  #trial: readonly ConfigPatch[] = []
  #tries = 0

  constructor(suspects: Iterable<ConfigPatch>, { oneByOne, isAnswered }: SearchManner) {
    const all = [...suspects]
    this.suspects = new Set(all)
    this.#isAnswered = isAnswered
    this.#withdrawn = new Set(all)
    if (oneByOne && all.length > 1 && all.length <= mostAlone) {
      this.#alone = all
      this.#nextAlone()
    } else this.#withdrawAll()
  }

  /** A search that applies withdrawn patches again, because others that were suspected with them were removed or changed. */
  static again(withdrawn: Iterable<ConfigPatch>): SuspectSearch {
    const search = new SuspectSearch(withdrawn, { oneByOne: false, isAnswered: true })
    search.#waiting = [[...search.suspects]]
    search.#next()
    return search
  }

  get withdrawn(): ReadonlySet<ConfigPatch> {
    return this.#withdrawn
  }

  /** Whether nothing is tried any more. */
  get isOver(): boolean {
    return !this.#alone && this.#trial.length === 0 && this.#waiting.length === 0
  }

  /** The proxy accepted the resource as it is now. Returns whether other patches are withdrawn after it. */
  accepted(): boolean {
    if (this.#alone) {
      this.#alone = undefined
      return false
    }
    this.#trial = []
    return this.#next()
  }

  /** The proxy refused the resource as it is now. Returns whether other patches are withdrawn after it; if not, others are the cause. */
  refused(): boolean {
    if (this.#alone) {
      if (this.#alone.length > 0) this.#nextAlone()
      else this.#withdrawAll()
      return true
    }
    const trial = this.#trial
    if (trial.length === 0) return false
    for (const patch of trial) this.#withdrawn.add(patch)
    this.#trial = []
    this.#waiting.unshift(...halves(trial))
    this.#next()
    return true
  }

  #nextAlone(): void {
    const [patch, ...others] = this.#alone ?? []
    this.#withdrawn = new Set(patch ? [patch] : [])
    this.#alone = others
  }

  #withdrawAll(): void {
    this.#alone = undefined
    this.#withdrawn = new Set(this.suspects)
    if (this.#isAnswered) this.#waiting = halves([...this.suspects])
  }

  #next(): boolean {
    const group = this.#tries < maxTries ? this.#waiting.shift() : undefined
    if (!group) {
      this.#waiting = []
      return false
    }
    this.#tries++
    this.#trial = group
    for (const patch of group) this.#withdrawn.delete(patch)
    return true
  }
}

/** The two halves of a group; none of a group of one, which has been tried. */
function halves(group: readonly ConfigPatch[]): (readonly ConfigPatch[])[] {
  const middle = Math.ceil(group.length / 2)
  return group.length > 1 ? [group.slice(0, middle), group.slice(middle)] : []
}
