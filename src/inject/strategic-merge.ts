/** Patches a Pod with a partial Pod, as the API server does with a strategic merge patch (docs/templates.md, T5 to T7). */
import { type MergedField, type MergedFields, podFields } from './pod-merge-keys.ts'

/** A patch that cannot be applied. The message names the field. */
export class MergeError extends Error {}

/** The largest documents that are merged: objects and lists within each other, and values together. */
const limits = { depth: 100, values: 200_000 }

type Tree = null | boolean | number | string | Tree[] | TreeMap
type TreeMap = Map<string, Tree>

/** Returns the Pod with the patch applied; both stay as they are. Throws a {@link MergeError} that names the field. */
export function mergePod(pod: object, patch: object): Record<string, unknown> {
  const [original, changes] = [new Reader('the pod').map(pod), new Reader('the patch').map(patch)]
  return plain(mergeMaps(original, changes, { fields: podFields, path: '' })) as Record<string, unknown>
}

/** Reads JSON into maps: a key of an object can be any, `__proto__` too. */
class Reader {
  readonly #what: string
  #values = 0

  constructor(what: string) {
    this.#what = what
  }

  map(object: object, depth = 0): TreeMap {
    return new Map(
      Object.entries(object)
        .filter(([, value]) => value !== undefined)
        .map(([key, value]) => [key, this.#value(value, depth + 1)]),
    )
  }

  #value(value: unknown, depth: number): Tree {
    if (++this.#values > limits.values) throw new MergeError(`${this.#what} has more than ${limits.values} values`)
    if (depth > limits.depth) throw new MergeError(`${this.#what} is nested deeper than ${limits.depth} levels`)
    if (typeof value !== 'object' || value === null) return (value ?? null) as Tree
    return Array.isArray(value) ? value.map((item) => this.#value(item, depth + 1)) : this.map(value, depth)
  }
}

function plain(tree: Tree): unknown {
  if (Array.isArray(tree)) return tree.map(plain)
  return tree instanceof Map ? Object.fromEntries([...tree].map(([key, value]) => [key, plain(value)])) : tree
}

interface Place {
  readonly fields: MergedFields | undefined
  readonly path: string
}

const within = ({ fields, path }: Place, name: string): Place & { readonly field: MergedField } => {
  const field = fields?.get(name) ?? {}
  return { field, fields: field.fields, path: path === '' ? name : `${path}.${name}` }
}

const fail = ({ path }: Place, reason: string): never => {
  throw new MergeError(`${path === '' ? 'the patch' : path}: ${reason}`)
}

const [directive, retained] = ['$patch', '$retainKeys']
const [deletions, orders] = ['$deleteFromPrimitiveList/', '$setElementOrder/']

function mergeMaps(original: TreeMap, patch: TreeMap, place: Place): TreeMap {
  const asked = patch.get(directive)
  if (asked !== undefined) {
    if (asked !== 'replace' && asked !== 'delete') return fail(place, `$patch is ${shown(asked)}: it is replace or delete`)
    patch.delete(directive)
    return asked === 'replace' ? patch : new Map()
  }
  retain(original, patch, place)
  for (const key of [...patch.keys()]) if (key.startsWith(orders)) mergeOrdered(original, patch, { place, key })
  // Deletions come first, whatever their place in the patch is.
  for (const [key, value] of patch) if (key.startsWith(deletions)) deleteScalars(original, value, within(place, key.slice(deletions.length)), key)
  for (const [key, value] of patch) if (!key.startsWith(deletions)) mergeField(original, { key, value }, within(place, key))
  return original
}

/** Removes what `$retainKeys` does not list. */
function retain(original: TreeMap, patch: TreeMap, place: Place): void {
  const keys = patch.get(retained)
  if (keys === undefined) return
  patch.delete(retained)
  if (!Array.isArray(keys)) return fail(place, '$retainKeys is not a list')
  const kept = new Set(keys)
  for (const [key, value] of patch)
    if (value !== null && !key.startsWith(deletions) && !key.startsWith(orders) && !kept.has(key))
      fail(place, `${key} is not in $retainKeys, and has a value in the patch`)
  for (const key of original.keys()) if (!kept.has(key)) original.delete(key)
}

function mergeField(original: TreeMap, { key, value }: { key: string; value: Tree }, place: Place & { field: MergedField }): void {
  if (value === null) {
    original.delete(key)
    return
  }
  const known = original.get(key)
  if (known instanceof Map && value instanceof Map) original.set(key, mergeMaps(known, value, place))
  else if (Array.isArray(known) && Array.isArray(value)) original.set(key, mergeLists(known, value, place))
  else {
    const isAdded = known === undefined || known === null || kindOf(known) !== kindOf(value)
    const added = withoutDirectives(isAdded ? withoutNulls(value) : value)
    if (added === undefined) original.delete(key)
    else original.set(key, added)
  }
}

const kindOf = (tree: Tree): string => (Array.isArray(tree) ? 'list' : tree instanceof Map ? 'object' : tree === null ? 'null' : typeof tree)

function withoutNulls(tree: Tree): Tree {
  if (Array.isArray(tree)) for (const item of tree) withoutNulls(item)
  if (tree instanceof Map)
    for (const [key, value] of tree) {
      if (value === null) tree.delete(key)
      else withoutNulls(value)
    }
  return tree
}

/** Returns the value without objects that hold `$patch`; undefined when it is one. */
function withoutDirectives(tree: Tree): Tree | undefined {
  if (Array.isArray(tree)) return tree.map(withoutDirectives).filter((item) => item !== undefined)
  if (!(tree instanceof Map)) return tree
  if (tree.has(directive)) return undefined
  for (const [key, value] of tree) {
    const kept = withoutDirectives(value)
    if (kept === undefined) tree.delete(key)
    else tree.set(key, kept)
  }
  return tree
}

function deleteScalars(original: TreeMap, listed: Tree, place: Place, key: string): void {
  const name = key.slice(deletions.length)
  if (listed === null) {
    original.delete(name)
    return
  }
  const known = original.get(name)
  if (!Array.isArray(known) || !Array.isArray(listed)) return
  if (known.length === 0 && listed.length === 0) return
  if (kindOfItems([known, listed], place) === 'object') return fail(place, `${deletions} is for lists of scalars`)
  const gone = new Set(listed)
  original.set(
    name,
    ordered(
      known.filter((item) => !gone.has(item)),
      { patch: listed, original: known, keyOf: (item) => item, place },
    ),
  )
}

/** The kind of all elements. */
function kindOfItems(lists: readonly Tree[][], place: Place): string {
  let kind: string | undefined
  for (const list of lists)
    for (const item of list) {
      const found = kindOf(item)
      if (found === 'list' || found === 'null') return fail(place, `an element is ${found === 'list' ? 'a list' : 'null'}, which cannot be merged`)
      if (kind !== undefined && found !== kind) return fail(place, `elements are of several kinds: ${kind}, ${found}`)
      kind = found
    }
  return kind ?? fail(place, 'has no elements')
}

function mergeLists(original: Tree[], patch: Tree[], place: Place & { field: MergedField }): Tree[] {
  const { key, isMerged } = place.field
  if (key === undefined && !isMerged) return patch
  if (original.length === 0 && patch.length === 0) return original
  if (kindOfItems([original, patch], place) !== 'object')
    return ordered(unique([...original, ...patch]), { patch, original, keyOf: (item) => item, place })
  if (key === undefined) return fail(place, 'elements are objects, which cannot be told apart')
  const { left, added } = special(original, patch as TreeMap[], { place, key })
  const merged = [...left]
  const places = new Map<Tree | undefined, number>()
  for (const [at, item] of merged.entries()) {
    const value = (item as TreeMap).get(key)
    if (value !== undefined && !places.has(value)) places.set(value, at)
  }
  for (const item of added) {
    const value = keyValue(item, key, place)
    const at = places.get(value)
    if (at === undefined) {
      places.set(value, merged.length)
      merged.push(item)
    } else merged[at] = mergeMaps(merged[at] as TreeMap, item, { ...place, path: `${place.path}[${key}=${shown(value)}]` })
  }
  return ordered(merged, { patch: added, original: left, keyOf: (item) => keyValue(item, key, place), place })
}

/** Applies the elements of a patch that hold `$patch`: deletes what they name, or all. Returns what is left, and the other elements. */
function special(original: Tree[], patch: readonly TreeMap[], { place, key }: { place: Place; key: string }): { left: Tree[]; added: TreeMap[] } {
  const added: TreeMap[] = []
  const gone = new Set<Tree>()
  let isReplaced = false
  for (const item of patch) {
    const asked = item.get(directive)
    if (asked === undefined) added.push(item)
    else if (asked === 'replace') isReplaced = true
    else if (asked === 'delete') gone.add(keyValue(item, key, place))
    else fail(place, `$patch of an element is ${shown(asked)}: it is replace or delete`)
  }
  if (isReplaced) return { left: added, added: [] }
  return { left: original.filter((item) => !gone.has((item as TreeMap).get(key) as Tree)), added }
}

function keyValue(item: Tree, key: string, place: Place): Tree {
  const value = item instanceof Map ? item.get(key) : undefined
  if (value === undefined) return fail(place, `an element has no ${key}, which tells elements apart`)
  return value
}

/** Removes repeated scalars in the way of the API server, which puts the last one in the place of a repeated one. */
function unique(list: Tree[]): Tree[] {
  const seen = new Set<Tree>()
  // Without repeated ones the order stays.
  for (const item of list) seen.add(item)
  if (seen.size === list.length) return list
  return uniqueByExchange(list)
}

/** The most scalars in which repeated ones are looked for. */
const mostScalars = 2000

function uniqueByExchange(list: Tree[]): Tree[] {
  if (list.length > mostScalars) throw new MergeError(`a list of more than ${mostScalars} scalars has repeated ones`)
  let last = list.length - 1
  for (let at = 0; at < last; at++)
    for (let other = at + 1; other <= last; other++)
      if (list[at] === list[other]) {
        list[other--] = list[last--] as Tree
        list.length = last + 1
      }
  return list
}

interface Order {
  /** The elements of the patch, and of the original, in their order. */
  readonly patch: readonly Tree[]
  readonly original: readonly Tree[]
  readonly keyOf: (item: Tree) => Tree
  readonly place: Place
}

/** The positions of the first element with each key. */
function positions(list: readonly Tree[], keyOf: Order['keyOf']): ReadonlyMap<Tree, number> {
  const found = new Map<Tree, number>()
  for (const [at, item] of list.entries()) if (!found.has(keyOf(item))) found.set(keyOf(item), at)
  return found
}

/** Puts merged elements in order: those of the patch in its order, the others in the order of the original, both merged by the latter. */
function ordered(merged: readonly Tree[], { patch, original, keyOf, place }: Order): Tree[] {
  const [inPatch, inOriginal] = [positions(patch, keyOf), positions(original, keyOf)]
  const patched = sorted(
    merged.filter((item) => inPatch.has(keyOf(item))),
    { ranks: inPatch, keyOf, place },
  )
  const others = sorted(
    merged.filter((item) => !inPatch.has(keyOf(item))),
    { ranks: inOriginal, keyOf, place },
  )
  const all: Tree[] = []
  let [left, right] = [0, 0]
  while (left < others.length || right < patched.length) {
    const [other, mine] = [others[left], patched[right]]
    if (mine === undefined) all.push(others[left++] as Tree)
    else if (other === undefined) all.push(patched[right++] as Tree)
    else {
      const [otherAt, mineAt] = [inOriginal.get(keyOf(other)), inOriginal.get(keyOf(mine))]
      if (otherAt !== undefined && mineAt !== undefined && otherAt < mineAt) all.push(others[left++] as Tree)
      else all.push(patched[right++] as Tree)
    }
  }
  return all
}

function sorted(list: Tree[], { ranks, keyOf, place }: { ranks: ReadonlyMap<Tree, number>; keyOf: Order['keyOf']; place: Place }): Tree[] {
  if (list.every((item) => ranks.has(keyOf(item)))) return list.sort((one, other) => (ranks.get(keyOf(one)) ?? 0) - (ranks.get(keyOf(other)) ?? 0))
  return list.length <= 1 ? list : fail(place, `${orders} leaves elements without an order`)
}

/** Merges a list whose order `$setElementOrder` gives. */
function mergeOrdered(original: TreeMap, patch: TreeMap, { place: outer, key }: { place: Place; key: string }): void {
  const order = patch.get(key)
  patch.delete(key)
  const name = key.slice(orders.length)
  const place = within(outer, name)
  if (!Array.isArray(order)) return fail(place, '$setElementOrder is not a list')
  const [known, changes] = [original.get(name), patch.get(name)]
  for (const list of [known, changes]) if (list !== undefined && !Array.isArray(list)) return fail(place, 'is no list, whose order could be set')
  const mergeKey = place.field.key
  const keyOf = (item: Tree): Tree => (mergeKey === undefined ? item : keyValue(item, mergeKey, place))
  checkOrder((changes ?? []) as Tree[], order, { keyOf, place })
  if (known === undefined && changes === undefined) return
  const merged =
    changes === undefined
      ? (known as Tree[])
      : known === undefined
        ? (withoutDirectives(changes) as Tree[])
        : mergeLists([...(known as Tree[])], changes as Tree[], place)
  const kind = kindOfItems([(known ?? []) as Tree[], (changes ?? []) as Tree[]], place)
  if (kind === 'object' && mergeKey === undefined) return fail(place, 'elements are objects, which cannot be told apart')
  const before = (known ?? []) as Tree[]
  const server = mergeKey === undefined ? before : orderAfter(before, (changes ?? []) as Tree[], mergeKey)
  original.set(name, ordered(merged, { patch: order, original: server, keyOf, place }))
  patch.delete(name)
}

/** The most steps of working out an order after deletions. */
const mostSteps = 50_000_000

/**
 * The order of the original as the API server has it after a patch with deletions: what is behind a deleted element moves up, and new
 * elements take the places that are left at the end.
 */
function orderAfter(original: readonly Tree[], patch: readonly Tree[], key: string): Tree[] {
  const order = [...original]
  const keyOf = (item: Tree | undefined) => (item instanceof Map ? item.get(key) : undefined)
  const asks = (item: Tree, what: string) => item instanceof Map && item.get(directive) === what
  const deleted = patch.filter((item) => asks(item, 'delete'))
  if (deleted.length * order.length > mostSteps) return order
  let { length } = order
  for (const item of deleted)
    for (let at = 0; at < length; )
      if (keyOf(order[at]) === keyOf(item)) order.copyWithin(at, at + 1, length--)
      else at++
  if (length === original.length || patch.some((item) => asks(item, 'replace'))) return order
  const known = new Set(order.slice(0, length).map(keyOf))
  for (const item of patch)
    if (!(item instanceof Map && item.has(directive)) && !known.has(keyOf(item)) && length < order.length) {
      known.add(keyOf(item))
      order[length++] = item
    }
  return order
}

/** Checks that the elements of the patch are in the given order. */
function checkOrder(patch: readonly Tree[], order: readonly Tree[], { keyOf, place }: { keyOf: Order['keyOf']; place: Place }): void {
  const given = patch.filter((item) => !(item instanceof Map && item.has(directive)))
  if (order.length === 0 || patch.length === 0) return
  let at = 0
  for (const item of order) if (at < given.length && keyOf(given[at] as Tree) === keyOf(item)) at++
  if (at < given.length) fail(place, 'the elements of the patch are not in the order of $setElementOrder')
}

const shown = (tree: Tree): string => (tree instanceof Map || Array.isArray(tree) ? kindOf(tree) : String(JSON.stringify(tree)).slice(0, 60))
