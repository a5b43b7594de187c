/** Functions for lists. */
import type { Budget } from '../budget.ts'
import { type Functions, type TemplateFunction, templateFunction } from '../function.ts'
import { byteOrder, fail, GoList, isList, listOf, nilList, typeName, type Value } from '../values.ts'
import { isDeepEqual, isEmpty, listFor, toInt64 } from './casts.ts'
import { texts } from './strings.ts'

/** Steps from one number to another. */
export function steps(budget: Budget, start: number, stop: number, step: number): number[] {
  if (step === 0 || stop - start < 0 !== step < 0) return []
  budget.make(Math.ceil((stop - start) / step))
  const list: number[] = []
  for (let at = start; step > 0 ? at < stop : at > stop; at += step) list.push(at)
  return list
}

const isIn = (list: readonly Value[], wanted: Value, budget: Budget): boolean => list.some((item) => isDeepEqual(wanted, item, budget))

function uniq(budget: Budget, list: readonly Value[]): Value[] {
  const kept: Value[] = []
  const plain = new Set<Value>()
  for (const item of list) {
    // Texts, plain numbers and booleans are looked up; what has parts is compared.
    if (typeof item !== 'object' || item === null) {
      if (!plain.has(item)) kept.push(item)
      plain.add(item)
    } else if (!isIn(kept, item, budget)) kept.push(item)
  }
  budget.make(kept.length)
  return kept
}

function without(budget: Budget, list: readonly Value[], gone: readonly Value[]): Value[] {
  const kept = list.filter((item) => !isIn(gone, item, budget))
  budget.make(kept.length)
  return kept
}

function part(budget: Budget, list: readonly Value[], from: Value, to: Value): Value {
  if (list.length === 0) return null
  const [start, end] = [from === null ? 0 : Number(toInt64(from)), to === null ? list.length : Number(toInt64(to))]
  if (start < 0 || end < start || end > list.length) return fail(`slice index out of bounds: ${start}, ${end}`)
  budget.spend(end - start)
  return list instanceof GoList ? listOf(list.type, list.slice(start, end)) : list.slice(start, end)
}

function chunks(budget: Budget, size: number, list: readonly Value[]): Value {
  if (size <= 0) return fail('chunk: the size is not positive')
  budget.make(list.length)
  const all: Value[] = []
  for (let at = 0; at < list.length; at += size) all.push([...list.slice(at, at + size)])
  return listOf('[][]interface {}', all)
}

function concat(budget: Budget, lists: readonly Value[]): Value {
  const all: Value[] = []
  for (const list of lists) {
    const items = listFor('concat', list)
    budget.make(items.length)
    for (const item of items) all.push(item)
  }
  return all.length === 0 ? nilList('[]interface {}') : all
}

const copy = (budget: Budget, list: readonly Value[]): Value[] => {
  budget.make(list.length + 1)
  return [...list]
}

/** A function of one list, in both spellings. The errors are the same. */
const ofList = (what: string, call: (budget: Budget, list: readonly Value[]) => Value): TemplateFunction =>
  templateFunction(['any'], (budget, list) => call(budget, listFor(what, list)))

const alike = {
  append: templateFunction(['any', 'any'], (budget, list, item) => [...copy(budget, listFor('push on', list)), item]),
  push: templateFunction(['any', 'any'], (budget, list, item) => [...copy(budget, listFor('push on', list)), item]),
  prepend: templateFunction(['any', 'any'], (budget, list, item) => [item, ...copy(budget, listFor('prepend on', list))]),
  first: ofList('find first on', (_, list) => list[0] ?? null),
  last: ofList('find last on', (_, list) => list.at(-1) ?? null),
  rest: ofList('find rest on', (budget, list) => (list.length === 0 ? nilList('[]interface {}') : copy(budget, list).slice(1))),
  initial: ofList('find initial on', (budget, list) => (list.length === 0 ? nilList('[]interface {}') : copy(budget, list).slice(0, -1))),
  reverse: ofList('find reverse on', (budget, list) => copy(budget, list).reverse()),
  compact: ofList('compact on', (budget, list) => copy(budget, list).filter((item) => !isEmpty(item))),
  uniq: ofList('find uniq on', uniq),
  without: templateFunction(['any', '...any'], (budget, list, ...gone) => without(budget, listFor('find without on', list), gone)),
  has: templateFunction(['any', 'any'], (budget, wanted, list) => list !== null && isIn(listFor('find has on', list), wanted, budget)),
  slice: templateFunction(['any', '...any'], (budget, list, from = null, to = null) => {
    if (!isList(list)) return fail(`list should be type of slice or array but ${typeName(list)}`)
    return part(budget, list, from, to)
  }),
  chunk: templateFunction(['int', 'any'], (budget, size, list) => chunks(budget, size, listFor('chunk', list))),
}

const must = (name: string): string => `must${name.slice(0, 1).toUpperCase()}${name.slice(1)}`

const list = templateFunction(['...any'], (budget, ...items) => {
  budget.make(items.length)
  return items
})

/** The functions by name. */
export const listFunctions: Functions = new Map<string, TemplateFunction>([
  ...Object.entries(alike),
  ...Object.entries(alike).map(([name, called]): [string, TemplateFunction] => [must(name), called]),
  ['list', list],
  ['tuple', list],
  ['concat', templateFunction(['...any'], (budget, ...lists) => concat(budget, lists))],
  [
    'sortAlpha',
    templateFunction(['any'], (budget, value) => {
      const all = texts(value, budget)
      if (value === null) return listOf('[]string', ['<nil>'])
      budget.spend(all.length * Math.ceil(Math.log2(all.length + 2)) + all.reduce((sum, text) => sum + text.length, 0))
      return listOf('[]string', all.sort(byteOrder))
    }),
  ],
  ['until', templateFunction(['int'], (budget, count) => listOf('[]int', steps(budget, 0, count, count < 0 ? -1 : 1)))],
  ['untilStep', templateFunction(['int', 'int', 'int'], (budget, start, stop, step) => listOf('[]int', steps(budget, start, stop, step)))],
  ['seq', templateFunction(['...int'], (budget, ...numbers) => sequence(budget, numbers))],
])

/** Numbers with spaces between them: to the end, from a start, by a step. */
function sequence(budget: Budget, numbers: readonly number[]): string {
  if (numbers.length === 0 || numbers.length > 3) return ''
  const start = numbers.length === 1 ? 1 : (numbers[0] as number)
  const end = numbers.at(-1) as number
  const direction = end < start ? -1 : 1
  const step = numbers.length === 3 ? (numbers[1] as number) : direction
  if (numbers.length === 3 && direction < 0 && step > 0) return ''
  const all = steps(budget, start, end + direction, step)
  budget.text(all.length * 12)
  return all.join(' ')
}
