/** Functions that templates call: their parameters, and how arguments are checked for them. */
import type { Budget } from './budget.ts'
import { bigOf, fail, GoFloat, GoInt, GoList, GoStringMap, GoStruct, isInt, isList, isMap, numberOf, typeName, type Value } from './values.ts'

/** The JavaScript values of the types of parameters. `any` takes every value, and nil. A nil map or list is empty. */
interface ParameterTypes {
  any: Value
  string: string
  bool: boolean
  int: number
  int64: bigint
  uint32: number
  float64: number
  /** `map[string]interface {}`. */
  map: Map<string, Value>
  /** `[]interface {}`. */
  list: readonly Value[]
  strings: readonly string[]
  /** `sprig.certificate`: a message with the fields `Cert` and `Key`. */
  certificate: GoStruct
}

type ParameterType = keyof ParameterTypes
type Parameter = ParameterType | `...${ParameterType}`

type Arguments<P extends readonly Parameter[]> = P extends readonly [infer First, ...infer Rest extends readonly Parameter[]]
  ? First extends `...${infer Type extends ParameterType}`
    ? ParameterTypes[Type][]
    : First extends ParameterType
      ? [ParameterTypes[First], ...Arguments<Rest>]
      : never
  : []

/**
 * A function of templates. It is called with the budget of the rendering, from which it takes what it makes before it makes it: strings by
 * `text`, elements by `make`, other work by `spend`. The sizes of its arguments and of its result, when they are texts, are counted by the caller.
 */
export interface TemplateFunction {
  readonly parameters: readonly Parameter[]
  readonly call: (budget: Budget, args: readonly unknown[]) => Value
}

/** Functions by name. */
export type Functions = ReadonlyMap<string, TemplateFunction>

/**
 * Declares a function by the types of its parameters, for instance `templateFunction(['string', '...any'], (budget, format, ...rest) => …)`.
 * Only the last one may be variadic. Arguments of other types are an error in the template, as in Go. A function fails with a TemplateError.
 */
export const templateFunction = <const P extends readonly Parameter[]>(
  parameters: P,
  call: (budget: Budget, ...args: Arguments<P>) => Value,
): TemplateFunction => ({ parameters, call: (budget, args) => call(budget, ...(args as Arguments<P>)) })

/** A literal of a template, which takes the type that its place asks for. */
export interface Literal {
  readonly value: Value
  /** The number as an integer and as a float, as far as it can be one. */
  readonly int?: number | GoInt
  readonly float?: number
}

const typeNames: Readonly<Record<ParameterType, string>> = {
  any: 'interface {}',
  string: 'string',
  bool: 'bool',
  int: 'int',
  int64: 'int64',
  uint32: 'uint32',
  float64: 'float64',
  map: 'map[string]interface {}',
  list: '[]interface {}',
  strings: '[]string',
  certificate: 'sprig.certificate',
}

/** The type of the parameter at a position. Undefined when there are no more. */
export function parameterAt({ parameters }: TemplateFunction, at: number): ParameterType | undefined {
  const parameter = parameters[Math.min(at, parameters.length - 1)]
  if (parameter?.startsWith('...')) return parameter.slice(3) as ParameterType
  return at < parameters.length ? (parameter as ParameterType) : undefined
}

/** Checks the number of arguments. Throws a TemplateError. */
export function checkCount(name: string, { parameters }: TemplateFunction, given: number): void {
  const isVariadic = parameters.at(-1)?.startsWith('...') ?? false
  const least = parameters.length - (isVariadic ? 1 : 0)
  if (given < least || (given > least && !isVariadic))
    fail(`wrong number of args for ${name}: want ${isVariadic ? `at least ${least}` : least} got ${given}`)
}

/** Returns the argument for a parameter of the type. Undefined is the absence of a value. Throws a TemplateError when its type is another. */
export function argumentOf(type: ParameterType, value: Value | undefined): unknown {
  if (type === 'any') return value ?? null
  if (value === undefined) {
    if (type === 'map') return new Map()
    return type === 'list' || type === 'strings' ? [] : fail(`invalid value; expected ${typeNames[type]}`)
  }
  const found = convert(type, value)
  return found === undefined ? fail(`wrong type for value; expected ${typeNames[type]}; got ${typeName(value)}`) : found
}

function convert(type: Exclude<ParameterType, 'any'>, value: Value): unknown {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : undefined
    case 'bool':
      return typeof value === 'boolean' ? value : undefined
    case 'int':
      return isInt(value) && typeName(value) === 'int' ? numberOf(value) : undefined
    case 'int64':
      return value instanceof GoInt && value.type === 'int64' ? value.value : undefined
    case 'uint32':
      return value instanceof GoInt && value.type === 'uint32' ? Number(value.value) : undefined
    case 'float64':
      return value instanceof GoFloat ? value.value : undefined
    case 'map':
      return isMap(value) && !(value instanceof GoStringMap) ? value : undefined
    case 'list':
      return isList(value) && typeName(value) === '[]interface {}' ? value : undefined
    case 'strings':
      return value instanceof GoList && value.type === '[]string' ? value : undefined
    case 'certificate':
      return value instanceof GoStruct && value.type === typeNames.certificate ? value : undefined
  }
}

const nilable: ReadonlySet<string> = new Set(['any', 'map', 'list', 'strings'])

/** Returns the argument that a literal is for a parameter of the type. Throws a TemplateError when it cannot be one. */
export function literalOf(type: ParameterType, { value, int, float }: Literal): unknown {
  if (value === null) return nilable.has(type) ? argumentOf(type, undefined) : fail(`cannot assign nil to ${typeNames[type]}`)
  if (type === 'int' && int !== undefined) return numberOf(int)
  if (type === 'int64' && int !== undefined) return typeof int === 'number' ? BigInt(int) : int.value
  // As in Go, the bits that do not fit are lost.
  if (type === 'uint32' && int !== undefined && bigOf(int) >= 0n) return Number(BigInt.asUintN(32, bigOf(int)))
  if (type === 'float64' && float !== undefined) return float
  if (type === 'any' || typeof value === (type === 'bool' ? 'boolean' : type)) return value
  return fail(`expected ${type.includes('int') ? 'integer' : typeNames[type]}; found ${typeName(value)}`)
}
