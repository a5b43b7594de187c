/** The functions of injection templates that users know from charts (docs/injection.md, N5). */
import { type Functions, templateFunction } from '../../../src/template/function.ts'
import { fail, isList, isMap, isTrue, type Value } from '../../../src/template/values.ts'

const listOf = (value: Value): readonly Value[] => (isList(value) ? value : fail('expected a list'))
const mapOf = (value: Value): ReadonlyMap<string, Value> => (isMap(value) ? value : fail('expected a map'))
const textOf = (value: Value): string => (typeof value === 'string' ? value : String(value))

function pairs(values: readonly Value[]): Map<string, Value> {
  const map = new Map<string, Value>()
  for (let at = 0; at < values.length; at += 2) map.set(textOf(values[at] ?? ''), values[at + 1] ?? '')
  return map
}

const chosen = (map: Value, isChosen: (key: string) => boolean) => new Map([...mapOf(map)].filter(([key]) => isChosen(key)))

const functions: Functions = new Map(
  Object.entries({
    append: templateFunction(['any', 'any'], (budget, list, item) => {
      budget.make(listOf(list).length + 1)
      return [...listOf(list), item]
    }),
    default: templateFunction(['any', '...any'], (_, otherwise, ...given) => (isTrue(given[0] ?? null) ? (given[0] ?? null) : otherwise)),
    dict: templateFunction(['...any'], (budget, ...values) => {
      budget.make(values.length)
      return pairs(values)
    }),
    fail: templateFunction(['string'], (_, reason) => fail(reason)),
    has: templateFunction(['any', 'any'], (_, item, list) => listOf(list).includes(item)),
    join: templateFunction(['string', 'any'], (_, separator, list) => listOf(list).map(textOf).join(separator)),
    list: templateFunction(['...any'], (budget, ...values) => {
      budget.make(values.length)
      return values
    }),
    lower: templateFunction(['string'], (_, text) => text.toLowerCase()),
    omit: templateFunction(['any', '...string'], (_, map, ...keys) => chosen(map, (key) => !keys.includes(key))),
    pick: templateFunction(['any', '...string'], (_, map, ...keys) => chosen(map, (key) => keys.includes(key))),
    quote: templateFunction(['any'], (_, value) => JSON.stringify(textOf(value))),
    toString: templateFunction(['any'], (_, value) => textOf(value)),
  }),
)

/** Returns the functions by name. */
export const templateLibrary = (): Functions => functions
