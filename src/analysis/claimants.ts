/** Who makes a claim (`claims.ts`), the oldest first, and who of them may meet whom; worked out once after each change, not once a question. */
import type { ConfigObject } from '../../protocols/data.ts'
import { byAge } from '../model/order.ts'

/** The claimants that an object may meet: their number, and the first ones. */
export interface Meeting {
  readonly count: number
  readonly first: readonly ConfigObject[]
}

/** The claimants of one claim by who sees them. All lists are the oldest first. */
interface Seen {
  readonly everywhere: readonly ConfigObject[]
  /** Those that are seen in some namespaces only, by namespace. */
  readonly inNamespace: ReadonlyMap<string, readonly ConfigObject[]>
  /** Those that are seen anywhere. */
  readonly anywhere: readonly ConfigObject[]
  /** Those that are seen in one of some namespaces, by these: objects that are exported alike meet the same ones. */
  readonly inSome: Map<string, readonly ConfigObject[]>
}

/** The claimants of one claim. */
class Claim {
  readonly keys = new Set<string>()
  sorted: readonly ConfigObject[] | undefined
  /** By the export list that counts for objects without one. */
  readonly seen = new Map<string, Seen>()

  changed(): void {
    this.sorted = undefined
    this.seen.clear()
  }
}

/** Claims and claimants. */
export class Claimants {
  readonly #claims = new Map<string, Claim>()
  readonly #objectOf: (key: string) => ConfigObject | undefined
  /** How many claimants were sorted or looked at since the start. */
  steps = 0

  constructor(objectOf: (key: string) => ConfigObject | undefined) {
    this.#objectOf = objectOf
  }

  /** The object with a key makes a claim, or has changed and makes it still. */
  add(claim: string, key: string): void {
    const known = this.#claims.get(claim) ?? new Claim()
    this.#claims.set(claim, known)
    known.keys.add(key)
    known.changed()
  }

  delete(claim: string, key: string): void {
    const known = this.#claims.get(claim)
    known?.keys.delete(key)
    known?.changed()
    if (known?.keys.size === 0) this.#claims.delete(claim)
  }

  /** All that make a claim. */
  all(claim: string): readonly ConfigObject[] {
    const known = this.#claims.get(claim)
    if (!known) return []
    if (!known.sorted) {
      this.steps += known.keys.size
      known.sorted = [...known.keys].flatMap((key) => this.#objectOf(key) ?? []).sort(byAge)
    }
    return known.sorted
  }

  /**
   * The others that make a claim and that some namespace may see beside an object, by `exportTo`. `fallback`: the list that counts for objects
   * without one. `most`: how many of them are named.
   */
  meeting(claim: string, object: ConfigObject, fallback: readonly string[], most: number): Meeting {
    const known = this.#claims.get(claim)
    if (!known) return { count: 0, first: [] }
    const id = JSON.stringify(fallback)
    const seen = known.seen.get(id) ?? this.#seenOf(this.all(claim), fallback)
    known.seen.set(id, seen)
    const viewers = viewersOf(object, fallback)
    if (viewers.size === 0) return { count: 0, first: [] }
    if (viewers.has('*')) return this.#without(object, seen.anywhere, most)
    const names = [...viewers].sort()
    const some = names.join(' ')
    const met = seen.inSome.get(some) ?? this.#inSome(seen, names)
    seen.inSome.set(some, met)
    return this.#without(object, met, most)
  }

  /** Those that are seen in one of some namespaces at least. */
  #inSome({ everywhere, inNamespace }: Seen, viewers: readonly string[]): readonly ConfigObject[] {
    const met = new Set([everywhere, ...viewers.map((viewer) => inNamespace.get(viewer) ?? [])].flat())
    this.steps += met.size
    return [...met].sort(byAge)
  }

  /** All of a list but the object, which is one of it. */
  #without(object: ConfigObject, list: readonly ConfigObject[], most: number): Meeting {
    const first = list.slice(0, most + 1).filter((other) => other !== object)
    this.steps += first.length
    return { count: list.length - 1, first: first.slice(0, most) }
  }

  #seenOf(objects: readonly ConfigObject[], fallback: readonly string[]): Seen {
    this.steps += objects.length
    const everywhere: ConfigObject[] = []
    const inNamespace = new Map<string, ConfigObject[]>()
    const anywhere: ConfigObject[] = []
    for (const object of objects) {
      const viewers = viewersOf(object, fallback)
      if (viewers.size > 0) anywhere.push(object)
      if (viewers.has('*')) everywhere.push(object)
      else
        for (const viewer of viewers) {
          const list = inNamespace.get(viewer)
          if (list) list.push(object)
          else inNamespace.set(viewer, [object])
        }
    }
    return { everywhere, inNamespace, anywhere, inSome: new Map() }
  }
}

/** The namespaces that see an object; `*`: all. */
function viewersOf({ namespace, spec }: ConfigObject, fallback: readonly string[]): ReadonlySet<string> {
  const { exportTo } = spec as { exportTo?: readonly string[] }
  const targets = exportTo?.length ? exportTo : fallback
  return new Set(targets.includes('*') ? ['*'] : targets.filter((target) => target !== '~').map((target) => (target === '.' ? namespace : target)))
}
