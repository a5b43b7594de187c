/** Functions for numbers: integers have 64 bits and wrap around; decimals are exact until they become a float. */
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { printed } from '../printed.ts'
import { fail, GoFloat, goInt, goInt64, type Value } from '../values.ts'
import { parsedInt, toFloat, toInt64 } from './casts.ts'

const wrapped = (value: bigint): bigint => BigInt.asIntN(64, value)

const sum = (values: readonly Value[]): bigint => values.reduce<bigint>((total, value) => wrapped(total + toInt64(value)), 0n)

function divided(one: Value, other: Value, by: (one: bigint, other: bigint) => bigint): Value {
  const divisor = toInt64(other)
  return divisor === 0n ? fail('runtime error: integer divide by zero') : goInt64(by(toInt64(one), divisor))
}

const chosen = (values: readonly Value[], isBetter: (one: bigint, other: bigint) => boolean): Value =>
  goInt64(values.map(toInt64).reduce((best, value) => (isBetter(value, best) ? value : best)))

/** A decimal number: `digits` times ten to the power of `exponent`. */
interface Decimal {
  readonly digits: bigint
  readonly exponent: number
}

/** The number of digits behind the point in a quotient. */
const quotientDigits = 16
/** The largest difference of exponents that is reckoned with. */
const widest = 4000

function decimalOf(value: Value): Decimal {
  const float = toFloat(value)
  if (!Number.isFinite(float)) return fail(`Cannot create a Decimal from ${float}`)
  const [, digits = '0', fraction = '', power = '0'] = /^(-?\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(float.toExponential()) ?? []
  return { digits: BigInt(digits + fraction), exponent: Number(power) - fraction.length }
}

const scaled = ({ digits, exponent }: Decimal, to: number): bigint => {
  if (exponent - to > widest) return fail(`numbers are more than 10^${widest} apart`)
  return digits * 10n ** BigInt(exponent - to)
}

type Operation = (one: Decimal, other: Decimal) => Decimal

const added =
  (sign: bigint): Operation =>
  (one, other) => {
    const exponent = Math.min(one.exponent, other.exponent)
    return { digits: scaled(one, exponent) + sign * scaled(other, exponent), exponent }
  }

const multiplied: Operation = (one, other) => ({ digits: one.digits * other.digits, exponent: one.exponent + other.exponent })

/** Divides with sixteen digits behind the point, rounded away from zero at the middle. */
const quotient: Operation = (one, other) => {
  if (other.digits === 0n) return fail('decimal division by 0')
  const shift = one.exponent - other.exponent + quotientDigits
  if (Math.abs(shift) > widest) return fail(`numbers are more than 10^${widest} apart`)
  const top = shift >= 0 ? one.digits * 10n ** BigInt(shift) : one.digits
  const bottom = shift >= 0 ? other.digits : other.digits * 10n ** BigInt(-shift)
  const [whole, rest] = [top / bottom, top % bottom]
  const isHalf = 2n * (rest < 0n ? -rest : rest) >= (bottom < 0n ? -bottom : bottom)
  return { digits: isHalf ? whole + (top < 0n === bottom < 0n ? 1n : -1n) : whole, exponent: -quotientDigits }
}

function reckoned(budget: Budget, first: Value, others: readonly Value[], operation: Operation): Value {
  let result = decimalOf(first)
  for (const other of others) {
    result = operation(result, decimalOf(other))
    const { length } = String(result.digits)
    budget.spend(length)
    if (length > widest) return fail(`a number has more than ${widest} digits`)
  }
  return new GoFloat(Number(`${result.digits}e${result.exponent}`))
}

function rounded(value: Value, places: number, on: number): Value {
  const power = 10 ** places
  const number = power * toFloat(value)
  const fraction = number - Math.trunc(number)
  return new GoFloat((fraction >= on ? Math.ceil(number) : Math.floor(number)) / power)
}

/** The functions by name. */
export const numberFunctions: Functions = new Map(
  Object.entries({
    int: templateFunction(['any'], (_, value) => goInt(toInt64(value))),
    int64: templateFunction(['any'], (_, value) => goInt64(toInt64(value))),
    float64: templateFunction(['any'], (_, value) => new GoFloat(toFloat(value))),
    toDecimal: templateFunction(['any'], (budget, value) => goInt64(parsedInt(printed(value, budget), 8) ?? 0n)),
    add1: templateFunction(['any'], (_, value) => goInt64(toInt64(value) + 1n)),
    add: templateFunction(['...any'], (_, ...values) => goInt64(sum(values))),
    sub: templateFunction(['any', 'any'], (_, one, other) => goInt64(toInt64(one) - toInt64(other))),
    mul: templateFunction(['any', '...any'], (_, first, ...others) =>
      goInt64(others.reduce<bigint>((product, value) => wrapped(product * toInt64(value)), toInt64(first))),
    ),
    div: templateFunction(['any', 'any'], (_, one, other) => divided(one, other, (top, bottom) => top / bottom)),
    mod: templateFunction(['any', 'any'], (_, one, other) => divided(one, other, (top, bottom) => top % bottom)),
    max: templateFunction(['any', '...any'], (_, ...values) => chosen(values, (one, other) => one > other)),
    biggest: templateFunction(['any', '...any'], (_, ...values) => chosen(values, (one, other) => one > other)),
    min: templateFunction(['any', '...any'], (_, ...values) => chosen(values, (one, other) => one < other)),
    maxf: templateFunction(['any', '...any'], (_, ...values) => new GoFloat(values.map(toFloat).reduce((one, other) => Math.max(one, other)))),
    minf: templateFunction(['any', '...any'], (_, ...values) => new GoFloat(values.map(toFloat).reduce((one, other) => Math.min(one, other)))),
    add1f: templateFunction(['any'], (budget, value) => reckoned(budget, value, [1], added(1n))),
    addf: templateFunction(['...any'], (budget, ...values) => reckoned(budget, 0, values, added(1n))),
    subf: templateFunction(['any', '...any'], (budget, first, ...others) => reckoned(budget, first, others, added(-1n))),
    mulf: templateFunction(['any', '...any'], (budget, first, ...others) => reckoned(budget, first, others, multiplied)),
    divf: templateFunction(['any', '...any'], (budget, first, ...others) => reckoned(budget, first, others, quotient)),
    floor: templateFunction(['any'], (_, value) => new GoFloat(Math.floor(toFloat(value)))),
    ceil: templateFunction(['any'], (_, value) => new GoFloat(Math.ceil(toFloat(value)))),
    round: templateFunction(['any', 'int', '...float64'], (_, value, places, on = 0.5) => rounded(value, places, on)),
  }),
)
