/** What happened to configuration objects, by file or object (docs/operation.md, "What a change did"). */
import type { ChangeCounts, ChangedPlace, ConfigChanges } from '../../../protocols/messages/distribution.ts'
import { readPlace } from '../../config/places.ts'
import { someOf } from '../../model/counts.ts'

/** Maximum number of places that are told of a push; the others are counted. */
const mostTold = 32
/** Maximum number of places that a text names. */
const mostNamed = 3

/** What happened to an object. */
type Change = keyof ChangeCounts

/** Collects the changes of a push. An object counts once, with what became of it in the end. */
export class CollectedChanges {
  readonly #objects = new Map<string, { readonly place: string; readonly change: Change }>()
  /** The keys of those that select no connected proxy. */
  readonly #selectingNone = new Set<string>()

  get isEmpty(): boolean {
    return this.#objects.size === 0
  }

  /** An object with a key changed, at a place of its source. */
  add(key: string, place: string, change: Change): void {
    const before = this.#objects.get(key)?.change
    this.#selectingNone.delete(key)
    if (before === 'added' && change === 'removed') this.#objects.delete(key)
    else this.#objects.set(key, { place, change: before === undefined ? change : together(before, change) })
  }

  /** Objects were found to select proxies, and none that is connected. Those that have not changed since the last {@link take} are not told. */
  selectNone(keys: readonly string[]): void {
    for (const key of keys) if (this.#objects.has(key)) this.#selectingNone.add(key)
  }

  /** Returns the changes since the last call; undefined if there are none. */
  take(): ConfigChanges | undefined {
    if (this.isEmpty) return undefined
    const all = noChanges()
    const places = new Map<string, Writable<ChangedPlace>>()
    for (const [key, { place, change }] of this.#objects) {
      const file = readPlace(place).file
      const name = file === '' ? nameOfKey(key) : file
      let there = places.get(name)
      if (!there) places.set(name, (there = { name, isFile: file !== '', ...noChanges() }))
      there[change]++
      all[change]++
    }
    const selectingNone = [...this.#selectingNone].slice(0, mostTold).map(nameOfKey)
    this.#objects.clear()
    this.#selectingNone.clear()
    return { places: [...places.values()].slice(0, mostTold), otherPlaces: Math.max(0, places.size - mostTold), all, selectingNone }
  }
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] }

const noChanges = (): Writable<ChangeCounts> => ({ added: 0, changed: 0, removed: 0 })

/** What two changes of an object are together. */
function together(first: Change, last: Change): Change {
  if (first === 'added') return 'added'
  return first === 'removed' && last === 'added' ? 'changed' : last
}

/** Names the object of a key: `VirtualService shop/reviews`. */
export function nameOfKey(key: string): string {
  const [kind = '', namespace = '', ...name] = key.split('/')
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name.join('/')}`
}

/** Says what happened in one push, or in several: `reviews.yaml: 1 changed`, `reviews.yaml, 9 changes in 4 pushes`. */
export function changesText(pushes: readonly ConfigChanges[]): string {
  const [first, ...others] = pushes
  if (!first) return ''
  const places = new Map(pushes.flatMap(({ places }) => places.map((place) => [place.name, place] as const)))
  const all = places.size + Math.max(...pushes.map(({ otherPlaces }) => otherPlaces))
  const names = someOf([...places.keys()], mostNamed, all)
  if (others.length === 0) return all > mostNamed ? `${names}: ${countsText(first.all)}` : [...places.values()].map(placeText).join(', ')
  const sum = pushes.reduce((total, { all: { added, changed, removed } }) => total + added + changed + removed, 0)
  return `${names}: ${sum} changes in ${pushes.length} pushes`
}

function placeText({ name, isFile, ...counts }: ChangedPlace): string {
  const only = (Object.keys(noChanges()) as Change[]).find((change) => counts[change] > 0)
  return `${name}: ${isFile ? countsText(counts) : only}`
}

/** `2 added, 1 removed`. */
const countsText = (counts: ChangeCounts): string =>
  (Object.keys(noChanges()) as Change[]).flatMap((change) => (counts[change] > 0 ? `${counts[change]} ${change}` : [])).join(', ')
