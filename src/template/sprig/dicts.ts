/** Functions for maps. */
import type { Budget } from '../budget.ts'
import { type Functions, type TemplateFunction, templateFunction } from '../function.ts'
import { fail, GoList, GoStringMap, isList, isMap, listOf, sortedKeys, typeName, type Value } from '../values.ts'
import { isEmpty, textOfValue } from './casts.ts'

type Dict = Map<string, Value>

function dict(budget: Budget, values: readonly Value[]): Dict {
  budget.make(Math.ceil(values.length / 2))
  const made: Dict = new Map()
  for (let at = 0; at < values.length; at += 2)
    made.set(textOfValue(values[at] ?? null, budget), at + 1 < values.length ? (values[at + 1] as Value) : '')
  return made
}

/** Merges the entries of a map into another one, as the library `mergo` does. With `overwrites` those that are there are replaced. */
function mergeInto(budget: Budget, target: Dict, source: Dict, overwrites: boolean, depth = 0): void {
  budget.deep(depth)
  if (target === source) return
  budget.make(source.size)
  for (const [key, value] of [...source]) {
    const known = target.get(key) ?? null
    if (value === null) {
      if (overwrites) target.set(key, value)
      continue
    }
    if (isMap(value) && isMap(known)) mergeInto(budget, known as Dict, value as Dict, overwrites, depth + 1)
    else if (isList(value) && isList(known) && !isEmpty(known)) {
      if (overwrites) target.set(key, value)
      continue
    }
    if (!isEmpty(known) && isMap(value) && isMap(known)) continue
    if (overwrites || isEmpty(known)) target.set(key, value)
  }
}

const merging = (overwrites: boolean): TemplateFunction =>
  templateFunction(['map', '...map'], (budget, target, ...sources) => {
    for (const source of sources) mergeInto(budget, target, source, overwrites)
    return target
  })

/** Makes a copy whose maps and lists are its own. */
function deepCopy(budget: Budget, value: Value, depth = 0): Value {
  budget.deep(depth)
  if (value instanceof GoList) {
    budget.make(value.length)
    return listOf(
      value.type,
      value.map((item) => deepCopy(budget, item, depth + 1)),
    )
  }
  if (isList(value)) {
    budget.make(value.length)
    return value.map((item) => deepCopy(budget, item, depth + 1))
  }
  if (!isMap(value)) return value
  budget.make(value.size)
  const entries = [...value].map(([key, item]): [string, Value] => [key, deepCopy(budget, item, depth + 1)])
  return value instanceof GoStringMap ? new GoStringMap(entries) : new Map(entries)
}

function dig(values: readonly Value[]): Value {
  if (values.length < 3) return fail('dig needs at least three arguments')
  const keys = values.slice(0, -2)
  let at = values.at(-1) ?? null
  for (const key of keys) {
    if (!isMap(at) || at instanceof GoStringMap) return fail(`dig: ${typeName(at)} is no map`)
    if (typeof key !== 'string') return fail(`dig: a key is ${typeName(key)}, not string`)
    if (!at.has(key)) return values.at(-2) ?? null
    at = at.get(key) ?? null
  }
  return at
}

const subset = (budget: Budget, entries: Iterable<[string, Value]>): Dict => {
  const made: Dict = new Map(entries)
  budget.make(made.size)
  return made
}

const copyOf = templateFunction(['any'], (budget, value) => (value === null ? fail('copy of nil') : deepCopy(budget, value)))

/** The functions by name. In ours the order of keys and values is that of the keys; in Go's it is random. */
export const dictFunctions: Functions = new Map(
  Object.entries({
    dict: templateFunction(['...any'], (budget, ...values) => dict(budget, values)),
    get: templateFunction(['map', 'string'], (_, map, key) => (map.has(key) ? (map.get(key) ?? null) : '')),
    set: templateFunction(['map', 'string', 'any'], (budget, map, key, value) => {
      budget.make(1)
      return map.set(key, value)
    }),
    unset: templateFunction(['map', 'string'], (_, map, key) => {
      map.delete(key)
      return map
    }),
    hasKey: templateFunction(['map', 'string'], (_, map, key) => map.has(key)),
    pluck: templateFunction(['string', '...map'], (budget, key, ...maps) => {
      budget.make(maps.length)
      return maps.filter((map) => map.has(key)).map((map) => map.get(key) ?? null)
    }),
    keys: templateFunction(['...map'], (budget, ...maps) => {
      budget.make(maps.reduce((sum, map) => sum + map.size, 0))
      return listOf('[]string', maps.flatMap(sortedKeys))
    }),
    values: templateFunction(['map'], (budget, map) => {
      budget.make(map.size)
      return sortedKeys(map).map((key) => map.get(key) ?? null)
    }),
    pick: templateFunction(['map', '...string'], (budget, map, ...keys) =>
      subset(
        budget,
        keys.filter((key) => map.has(key)).map((key) => [key, map.get(key) ?? null]),
      ),
    ),
    omit: templateFunction(['map', '...string'], (budget, map, ...keys) => {
      const gone = new Set(keys)
      return subset(
        budget,
        [...map].filter(([key]) => !gone.has(key)),
      )
    }),
    merge: merging(false),
    mustMerge: merging(false),
    mergeOverwrite: merging(true),
    mustMergeOverwrite: merging(true),
    deepCopy: copyOf,
    mustDeepCopy: copyOf,
    dig: templateFunction(['...any'], (_, ...values) => dig(values)),
  }),
)
