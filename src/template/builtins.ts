/** The functions of Go's package `text/template` ("Functions"). */
import type { Budget } from './budget.ts'
import { type Functions, templateFunction } from './function.ts'
import { printed } from './printed.ts'
import { isPrintable, printf } from './printf.ts'
import {
  bigOf,
  byteOrder,
  bytesOf,
  fail,
  GoFloat,
  GoInt,
  GoList,
  GoStringMap,
  GoStruct,
  GoTime,
  isInt,
  isList,
  isMap,
  isTrue,
  kindName,
  listOf,
  numberOf,
  textOf,
  typeName,
  type Value,
} from './values.ts'
/** Functions that are evaluated with short-circuit. The executor handles them by name. */
export const lazyFunctions: ReadonlySet<string> = new Set(['and', 'or'])

function whole(value: Value, what: string): number {
  if (isInt(value)) return numberOf(value)
  return fail(value === null ? `cannot index slice/array with nil` : `cannot index slice/array with type ${typeName(value)}${what}`)
}

function index(of: Value, ...keys: Value[]): Value {
  if (of === null) return fail('index of untyped nil')
  let value: Value = of
  for (const key of keys) {
    if (value === null) return fail('index of untyped nil')
    if (isMap(value)) {
      if (typeof key !== 'string') return fail(`value has type ${typeName(key)}; should be string`)
      value = value.get(key) ?? (value instanceof GoStringMap ? '' : null)
      continue
    }
    const items: Buffer | readonly Value[] | undefined = typeof value === 'string' ? bytesOf(value) : isList(value) ? value : undefined
    if (!items) return fail(`can't index item of type ${typeName(value)}`)
    const at = whole(key, '')
    if (at < 0 || at >= items.length) return fail(`index out of range: ${at}`)
    const item: Value | number = items[at] ?? null
    value = typeof value === 'string' ? new GoInt('uint8', BigInt(item as number)) : item
  }
  return value
}

function slice(budget: Budget, of: Value, ...bounds: Value[]): Value {
  if (of === null) return fail('slice of untyped nil')
  if (bounds.length > 3) return fail(`too many slice indexes: ${bounds.length}`)
  if (typeof of !== 'string' && !isList(of)) return fail(`can't slice item of type ${typeName(of)}`)
  if (typeof of === 'string' && bounds.length === 3) return fail('cannot 3-index slice a string')
  const items = typeof of === 'string' ? bytesOf(of) : of
  const ends = bounds.map((bound) => {
    const at = whole(bound, '')
    return at < 0 || at > items.length ? fail(`index out of range: ${at}`) : at
  })
  const [from = 0, to = items.length] = ends
  if (from > to) return fail(`invalid slice index: ${from} > ${to}`)
  budget.spend(to - from)
  if (typeof of === 'string') return textOf((items as Buffer).subarray(from, to))
  return of instanceof GoList ? listOf(of.type, of.slice(from, to)) : of.slice(from, to)
}

function length(value: Value): number {
  if (typeof value === 'string') return value.isWellFormed() ? Buffer.byteLength(value) : bytesOf(value).length
  if (isList(value)) return value.length
  if (isMap(value)) return value.size
  return fail(value === null ? 'len of nil pointer' : `len of type ${typeName(value)}`)
}

/** The kind of a value, as comparisons distinguish it. Undefined for values that cannot be compared. */
function kindOf(value: Value): 'bool' | 'int' | 'float' | 'string' | 'nil' | undefined {
  if (value === null) return 'nil'
  if (typeof value === 'boolean') return 'bool'
  if (isInt(value)) return 'int'
  if (typeof value === 'string') return 'string'
  return value instanceof GoFloat ? 'float' : undefined
}

const plain = (value: Value) => (value instanceof GoFloat ? value.value : value instanceof GoInt ? value.value : value)

/** Whether two values of one kind are equal. */
const same = (one: Value, other: Value): boolean =>
  typeof one === typeof other && !(one instanceof GoInt) ? plain(one) === plain(other) : isInt(one) && isInt(other) && bigOf(one) === bigOf(other)

const isNil = (value: Value): boolean => value === null || (value instanceof GoList && value.isNil)

function equal(one: Value, ...others: Value[]): boolean {
  if (others.length === 0) return fail('missing argument for comparison')
  return others.some((other) => {
    if (one === null || other === null) return isNil(one) && isNil(other)
    if (kindOf(one) !== kindOf(other)) return fail('incompatible types for comparison')
    if (kindOf(one) !== undefined) return same(one, other)
    if (kindName(one) !== kindName(other)) return fail(`non-comparable types ${typeName(one)}, ${typeName(other)}`)
    return isNil(one) || isNil(other) ? isNil(one) === isNil(other) : sameMessage(one, other)
  })
}

/** Whether two messages or moments are equal: pointers to the same one, or of one type with the same fields. Lists and maps are not comparable. */
function sameMessage(one: Value, other: Value): boolean {
  if (one instanceof GoTime && other instanceof GoTime) return one.nanos === other.nanos && one.zone === other.zone
  if (one instanceof GoTime || other instanceof GoTime) return false
  if (!(one instanceof GoStruct && other instanceof GoStruct)) return fail(`non-comparable type ${typeName(other)}`)
  if (kindName(other) === 'ptr') return one === other
  for (const field of other.fields.values()) if (isList(field) || isMap(field)) fail(`non-comparable type ${typeName(other)}`)
  return one.type === other.type && [...other.fields].every(([name, field]) => equal(one.fields.get(name) ?? null, field))
}

function less(one: Value, other: Value): boolean {
  const kinds = [kindOf(one), kindOf(other)]
  if (kinds.some((kind) => kind === undefined || kind === 'nil' || kind === 'bool')) {
    if (kinds.some((kind) => kind === undefined || kind === 'nil')) return fail('invalid type for comparison')
    return fail(kinds[0] === kinds[1] ? 'invalid type for comparison' : 'incompatible types for comparison')
  }
  if (kinds[0] !== kinds[1]) return fail('incompatible types for comparison')
  if (typeof one === 'string' && typeof other === 'string') return byteOrder(one, other) < 0
  if (isInt(one) && isInt(other)) return bigOf(one) < bigOf(other)
  return (plain(one) as number) < (plain(other) as number)
}

/** Concatenates the arguments, with a space between two adjacent ones that are both not text. */
function print(budget: Budget, args: readonly Value[]): string {
  return args
    .map((value, at) => (at > 0 && typeof value !== 'string' && typeof args[at - 1] !== 'string' ? ' ' : '') + printed(value, budget))
    .join('')
}

/** Like {@link print}, but nil is printed as an action prints it. */
const joined = (budget: Budget, args: readonly Value[]): string =>
  args.length === 1 && args[0] === null
    ? '<no value>'
    : print(
        budget,
        args.map((value) => value ?? '<no value>'),
      )

const jsEscapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '"': '\\"',
  '<': '\\u003C',
  '>': '\\u003E',
  '&': '\\u0026',
  '=': '\\u003D',
}
const htmlEscapes: Readonly<Record<string, string>> = { '"': '&#34;', "'": '&#39;', '&': '&amp;', '<': '&lt;', '>': '&gt;', '\0': '\ufffd' }

const jsText = (text: string): string =>
  text.replaceAll(/[\\'"<>&=]|[^ -~]/gu, (letter) => {
    if (jsEscapes[letter] !== undefined) return jsEscapes[letter]
    // A byte that is not UTF-8 stays.
    return isPrintable(letter) || /[\udc80-\udcff]/u.test(letter)
      ? letter
      : `\\u${(letter.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
  })

const queryText = (text: string): string =>
  bytesOf(text)
    .toString('latin1')
    .replaceAll(/[^\w.~-]/g, (byte) => (byte === ' ' ? '+' : `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`))

/** All functions, by name. */
export const builtins: Functions = new Map(
  Object.entries({
    // The executor evaluates `and` and `or`.
    and: templateFunction(['any', '...any'], () => null),
    or: templateFunction(['any', '...any'], () => null),
    not: templateFunction(['any'], (_, value) => !isTrue(value)),
    len: templateFunction(['any'], (_, value) => length(value)),
    index: templateFunction(['any', '...any'], (_, of, ...keys) => index(of, ...keys)),
    slice: templateFunction(['any', '...any'], (budget, of, ...bounds) => slice(budget, of, ...bounds)),
    print: templateFunction(['...any'], (budget, ...args) => print(budget, args)),
    println: templateFunction(['...any'], (budget, ...args) => `${args.map((value) => printed(value, budget)).join(' ')}\n`),
    printf: templateFunction(['string', '...any'], (budget, format, ...args) => printf(format, args, budget)),
    html: templateFunction(['...any'], (budget, ...args) => joined(budget, args).replaceAll(/["'&<>\0]/g, (letter) => htmlEscapes[letter] as string)),
    js: templateFunction(['...any'], (budget, ...args) => jsText(joined(budget, args))),
    urlquery: templateFunction(['...any'], (budget, ...args) => queryText(joined(budget, args))),
    eq: templateFunction(['any', '...any'], (_, one, ...others) => equal(one, ...others)),
    ne: templateFunction(['any', 'any'], (_, one, other) => !equal(one, other)),
    lt: templateFunction(['any', 'any'], (_, one, other) => less(one, other)),
    le: templateFunction(['any', 'any'], (_, one, other) => less(one, other) || equal(one, other)),
    gt: templateFunction(['any', 'any'], (_, one, other) => !(less(one, other) || equal(one, other))),
    ge: templateFunction(['any', 'any'], (_, one, other) => !less(one, other)),
    call: templateFunction(['any', '...any'], () => fail('call of what is no function')),
  }),
)
