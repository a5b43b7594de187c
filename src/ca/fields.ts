/** Checks the fields of state that was stored as JSON. Each function throws an Error that names the field (`where`) and the fault. */

/** Returns `value` as an object. */
export function object(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${where}: is not an object`)
  return value as Record<string, unknown>
}

/** Returns `value` as a list of at most `most` entries. */
export function list(value: unknown, where: string, most = Number.POSITIVE_INFINITY): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${where}: is not a list`)
  if (value.length > most) throw new Error(`${where}: has more than ${most} entries`)
  return value
}

export function text(value: unknown, where: string): string {
  if (typeof value !== 'string') throw new Error(`${where}: is not a text`)
  return value
}

/** Returns `value` as a number that is not negative: a count, or a time in Unix milliseconds. */
export function number(value: unknown, where: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw new Error(`${where}: is not a number from 0 on`)
  return value
}

/** Returns `value` as one of `values`. */
export function oneOf<T extends string>(value: unknown, values: readonly T[], where: string): T {
  if (!values.includes(value as T)) throw new Error(`${where}: is none of ${values.join(', ')}`)
  return value as T
}
