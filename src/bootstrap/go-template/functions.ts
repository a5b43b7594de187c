/** The functions of templates (Go's package `text/template`, "Functions"), and `toJSON`. */
import { isPrintable, printf } from './printf.ts'
import { GoFloat, isList, isMap, isTrue, printed, TemplateError, toJson, typeName, type Value } from './values.ts'

type GoFunction = (...args: Value[]) => Value

/** Functions that are evaluated with short-circuit. The executor handles them by name. */
export const lazyFunctions: ReadonlySet<string> = new Set(['and', 'or'])

const fail = (text: string): never => {
  throw new TemplateError(text)
}

function whole(value: Value, what: string): number {
  if (typeof value === 'number') return value
  return fail(value === null ? `cannot index slice/array with nil` : `cannot index slice/array with type ${typeName(value)}${what}`)
}

function index(of: Value, ...keys: Value[]): Value {
  let value = of
  for (const key of keys) {
    if (value === null) return fail('index of untyped nil')
    if (isMap(value)) {
      if (typeof key !== 'string') return fail(`value has type ${typeName(key)}; should be string`)
      value = value.get(key) ?? null
      continue
    }
    const items: Buffer | readonly Value[] | undefined = typeof value === 'string' ? Buffer.from(value) : isList(value) ? value : undefined
    if (!items) return fail(`can't index item of type ${typeName(value)}`)
    const at = whole(key, '')
    if (at < 0 || at >= items.length) return fail(`index out of range: ${at}`)
    value = items[at] ?? null
  }
  return value
}

function slice(of: Value, ...bounds: Value[]): Value {
  if (of === null) return fail('slice of untyped nil')
  if (bounds.length > 3) return fail(`too many slice indexes: ${bounds.length}`)
  if (typeof of !== 'string' && !isList(of)) return fail(`can't slice item of type ${typeName(of)}`)
  if (typeof of === 'string' && bounds.length === 3) return fail('cannot 3-index slice a string')
  const items = typeof of === 'string' ? Buffer.from(of) : of
  const ends = bounds.map((bound) => {
    const at = whole(bound, '')
    return at < 0 || at > items.length ? fail(`index out of range: ${at}`) : at
  })
  const [from = 0, to = items.length] = ends
  if (from > to) return fail(`invalid slice index: ${from} > ${to}`)
  return typeof of === 'string' ? Buffer.from(of).subarray(from, to).toString() : of.slice(from, to)
}

function length(value: Value): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (isList(value)) return value.length
  if (isMap(value)) return value.size
  return fail(value === null ? 'len of nil pointer' : `len of type ${typeName(value)}`)
}

/** The kind of a value, as comparisons distinguish it. Undefined for values that cannot be compared. */
function kindOf(value: Value): 'bool' | 'int' | 'float' | 'string' | 'nil' | undefined {
  if (value === null) return 'nil'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return 'int'
  if (typeof value === 'string') return 'string'
  return value instanceof GoFloat ? 'float' : undefined
}

const plain = (value: Value) => (value instanceof GoFloat ? value.value : value)

function equal(one: Value, ...others: Value[]): boolean {
  if (others.length === 0) return fail('missing argument for comparison')
  return others.some((other) => {
    if (one === null || other === null) return one === other
    for (const value of [one, other]) if (kindOf(value) === undefined) fail(`non-comparable type ${printed(value)}: ${typeName(value)}`)
    return kindOf(one) === kindOf(other) ? plain(one) === plain(other) : fail('incompatible types for comparison')
  })
}

function less(one: Value, other: Value): boolean {
  const kinds = [kindOf(one), kindOf(other)]
  if (kinds.some((kind) => kind === undefined || kind === 'nil' || kind === 'bool')) {
    if (kinds.some((kind) => kind === undefined || kind === 'nil')) return fail('invalid type for comparison')
    return fail(kinds[0] === kinds[1] ? 'invalid type for comparison' : 'incompatible types for comparison')
  }
  if (kinds[0] !== kinds[1]) return fail('incompatible types for comparison')
  if (typeof one === 'string' && typeof other === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
  return (plain(one) as number) < (plain(other) as number)
}

/** Concatenates the arguments, with a space between two adjacent ones that are both not text. */
function print(...args: Value[]): string {
  return args.map((value, at) => (at > 0 && typeof value !== 'string' && typeof args[at - 1] !== 'string' ? ' ' : '') + printed(value)).join('')
}

/** Like {@link print}, but nil is printed as an action prints it. */
const joined = (args: readonly Value[]): string =>
  args.length === 1 && args[0] === null ? '<no value>' : print(...args.map((value) => value ?? '<no value>'))

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
    return isPrintable(letter) ? letter : `\\u${(letter.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
  })

const queryText = (text: string): string =>
  encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')

/** A function with its minimum and maximum number of arguments. */
export interface Callable {
  readonly least: number
  readonly most: number
  readonly call: GoFunction
}

const takes = (least: number, most: number, call: GoFunction): Callable => ({ least, most, call })
const any = Number.POSITIVE_INFINITY

/** All functions, by name. */
export const functions: ReadonlyMap<string, Callable> = new Map(
  Object.entries({
    and: takes(1, any, (...args) => args.find((value) => !isTrue(value)) ?? args.at(-1) ?? null),
    or: takes(1, any, (...args) => args.find(isTrue) ?? args.at(-1) ?? null),
    not: takes(1, 1, (value = null) => !isTrue(value)),
    len: takes(1, 1, (value = null) => length(value)),
    index: takes(1, any, (of = null, ...keys) => index(of, ...keys)),
    slice: takes(1, any, (of = null, ...bounds) => slice(of, ...bounds)),
    print: takes(0, any, print),
    println: takes(0, any, (...args) => `${args.map((value) => printed(value)).join(' ')}\n`),
    printf: takes(1, any, (format = null, ...args) => {
      if (typeof format !== 'string') return fail(`wrong type for value; expected string; got ${typeName(format)}`)
      return printf(format, args)
    }),
    html: takes(0, any, (...args) => joined(args).replaceAll(/["'&<>\0]/g, (letter) => htmlEscapes[letter] as string)),
    js: takes(0, any, (...args) => jsText(joined(args))),
    urlquery: takes(0, any, (...args) => queryText(joined(args))),
    eq: takes(1, any, (one = null, ...others) => equal(one, ...others)),
    ne: takes(2, 2, (one = null, other = null) => !equal(one, other)),
    lt: takes(2, 2, (one = null, other = null) => less(one, other)),
    le: takes(2, 2, (one = null, other = null) => less(one, other) || equal(one, other)),
    gt: takes(2, 2, (one = null, other = null) => !(less(one, other) || equal(one, other))),
    ge: takes(2, 2, (one = null, other = null) => !less(one, other)),
    call: takes(1, any, () => fail('call of nil')),
    toJSON: takes(1, 1, (value = null) => (value === null ? '{}' : toJson(value))),
  }),
)
