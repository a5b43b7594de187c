/**
 * Shapes of configuration documents. A shape converts untrusted JSON into a typed value and reports faults with the path of the field. The
 * conventions of Proto-JSON are accepted: names in lowerCamelCase or snake_case, numbers as strings, null for an absent field.
 */

import { count } from '../model/counts.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { longestDurationMs, parseDuration } from './duration.ts'
import type { OptOuts } from './opt-outs.ts'

/** A fault in a document: its path and the reason. */
export interface Fault {
  readonly path: string
  readonly reason: string
}

/** Collects the faults and warnings of a document. Faults make the object invalid, warnings do not. */
export interface Report {
  readonly faults: Fault[]
  readonly warnings: Fault[]
  /** Fields that are set and have no effect. Without this list they are added to the warnings. */
  readonly idle?: Fault[]
  /** Checks regular expressions, shared by all documents of one file. */
  readonly patterns?: { fault(pattern: string): string | undefined }
  /** Disabled checks. */
  readonly optOuts?: OptOuts
  /** Converts mesh-owned names to the mesh form. Without it such names stay as written. */
  readonly names?: MeshNames
}

/**
 * The values that a shape accepts, for code that generates documents from shapes. Bounds of numbers are inclusive, durations are in
 * milliseconds. `unused` is the reason why a field has no effect, `only` where alone it has one; `hasUnused` means that some field within has none.
 */
export type Form =
  | { readonly type: 'text'; readonly max: number; readonly pattern: RegExp | undefined; readonly examples: readonly string[] | undefined }
  | { readonly type: 'number'; readonly whole: boolean; readonly min: number; readonly max: number }
  | { readonly type: 'duration'; readonly minMs: number; readonly maxMs: number }
  | { readonly type: 'choice'; readonly names: readonly string[] }
  | { readonly type: 'list'; readonly item: Form; readonly min: number; readonly max: number; readonly hasUnused: boolean }
  | { readonly type: 'map'; readonly item: Form; readonly hasUnused: boolean }
  | {
      readonly type: 'record'
      readonly fields: Readonly<
        Record<string, { readonly form: Form; readonly required: boolean; readonly unused: string | undefined; readonly only?: string | undefined }>
      >
      readonly hasUnused: boolean
      /** Whether unknown fields are faults. */
      readonly isStrict: boolean
    }
  | { readonly type: 'flag' }
  | { readonly type: 'anything' }

/** Converts one value. Returns undefined when the value is invalid; the fault is then in the report. */
export interface Shape<T> {
  readonly form: Form
  read(value: unknown, path: string, report: Report): T | undefined
  readonly required?: boolean
  /** The reason why the field has no effect. */
  readonly unused?: string
  /** Where alone the field has an effect. */
  readonly only?: string
}

/** The type of the value that a shape returns. */
export type Read<S> = S extends Shape<infer T> ? T : never

type Fields = Readonly<Record<string, Shape<unknown>>>
type ReadFields<F extends Fields> = {
  -readonly [K in keyof F as F[K] extends { required: true } ? K : never]: Read<F[K]>
} & { -readonly [K in keyof F as F[K] extends { required: true } | { unused: string } ? never : K]?: Read<F[K]> }

/** Describes an invalid value for a message. */
export const describe = (value: unknown): string =>
  Array.isArray(value)
    ? 'a list'
    : value === null
      ? 'null'
      : typeof value === 'object'
        ? isMapping(value)
          ? 'a mapping'
          : `a ${value.constructor?.name ?? 'object'}`
        : typeof value === 'string'
          ? `string ${JSON.stringify(value.slice(0, 60))}`
          : `${typeof value} ${String(value).slice(0, 60)}`

/** The reason why a value is refused where a text is expected. What YAML reads as a flag or a number without quotes may be meant as one. */
export const noText = (value: unknown): string =>
  `expected text, got ${describe(value)}${
    typeof value === 'boolean'
      ? '; y, n, yes, no, on, off, true and false are texts only in quotes'
      : typeof value === 'number'
        ? '; a number is a text only in quotes'
        : ''
  }`

function fault(report: Report, path: string, reason: string): undefined {
  report.faults.push({ path, reason })
  return undefined
}

/** Well-formed Unicode text of limited length. `pattern` must be one of this project, never a user's. `check` returns any further fault. */
export function text(
  options: {
    max?: number
    pattern?: RegExp
    what?: string
    check?: (value: string, report: Report) => string | undefined
    /** Valid values, for code that generates documents and cannot derive any from `pattern` and `check`. */
    examples?: readonly string[]
  } = {},
): Shape<string> {
  const max = options.max ?? 65_536
  return {
    form: { type: 'text', max, pattern: options.pattern, examples: options.examples },
    read(value, path, report) {
      if (typeof value !== 'string') return fault(report, path, noText(value))
      if (value.length > max) return fault(report, path, `longer than ${count(max, 'character')}`)
      if (value.includes('\u0000')) return fault(report, path, 'has a NUL character, which proxies refuse')
      if (!value.isWellFormed()) return fault(report, path, 'not valid Unicode: it has half a surrogate pair')
      if (options.pattern && !options.pattern.test(value))
        return fault(report, path, `${JSON.stringify(value.slice(0, 100))} is not ${options.what ?? 'valid'}`)
      const reason = options.check?.(value, report)
      return reason === undefined ? value : fault(report, path, reason)
    },
  }
}

/** An integer within bounds, also as text, as Proto-JSON writes 64-bit numbers. `check` returns any further fault. */
export function integer(min: number, max: number, check?: (value: number) => string | undefined): Shape<number> {
  return {
    form: { type: 'number', whole: true, min, max },
    read(value, path, report) {
      const n = typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? Number(value) : value
      if (typeof n !== 'number' || !Number.isInteger(n)) return fault(report, path, `expected a whole number, got ${describe(value)}`)
      if (n < min || n > max) return fault(report, path, `${n} is outside ${min}..${max}`)
      const reason = check?.(n)
      return reason === undefined ? n + 0 : fault(report, path, reason)
    },
  }
}

/** A finite number within bounds, also as text. */
export function decimal(min: number, max: number): Shape<number> {
  return {
    form: { type: 'number', whole: false, min, max },
    read(value, path, report) {
      const n = typeof value === 'string' && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? Number(value) : value
      if (typeof n !== 'number' || !Number.isFinite(n)) return fault(report, path, `expected a number, got ${describe(value)}`)
      return n < min || n > max ? fault(report, path, `${n} is outside ${min}..${max}`) : n + 0
    },
  }
}

/** A boolean. */
export const flag: Shape<boolean> = {
  form: { type: 'flag' },
  read: (value, path, report) => (typeof value === 'boolean' ? value : fault(report, path, `expected true or false, got ${describe(value)}`)),
}

/** A duration such as `5s`, or `{seconds, nanos}`, within bounds; returned in milliseconds. */
export function duration(minMs = 0, maxMs = longestDurationMs): Shape<number> {
  return {
    form: { type: 'duration', minMs, maxMs },
    read(value, path, report) {
      const before = report.faults.length
      const ms = typeof value === 'string' ? parseDuration(value) : isMapping(value) ? durationParts.read(value, path, report) : undefined
      if (report.faults.length > before) return undefined
      if (ms === undefined) return fault(report, path, `expected a duration such as 5s, got ${describe(value)}`)
      if (ms < minMs) return fault(report, path, `${ms} ms is shorter than ${minMs} ms`)
      return ms > maxMs ? fault(report, path, `${ms} ms is longer than ${maxMs} ms`) : ms
    },
  }
}

/** One of the listed names, or its enum number in the protocol, which is its index in the list. An empty name reserves a number. */
export function oneOf<const T extends string>(...names: (T | '')[]): Shape<T> {
  return choice(names, [])
}

/** As {@link oneOf}; `aliases` are suggested too for a misspelt name. */
export function choice<const T extends string>(names: readonly (T | '')[], aliases: readonly string[]): Shape<T> {
  return {
    form: { type: 'choice', names: names.filter((name) => name !== '') },
    read(value, path, report) {
      const found = typeof value === 'number' ? names[value] : names.find((name) => name === value)
      if (found) return found
      const known = names.filter(Boolean)
      const near = typeof value === 'string' ? meant(value, [...known, ...aliases], report) : ''
      return fault(report, path, `${describe(value)} is not one of ${known.join(', ')}${near}`)
    },
  }
}

/** A list of values. */
export function list<T>(item: Shape<T>, options: { min?: number; max?: number } = {}): Shape<T[]> {
  const { min = 0, max = 20_000 } = options
  return {
    form: { type: 'list', item: item.form, min, max, hasUnused: hasUnused(item.form) },
    read(value, path, report) {
      if (!Array.isArray(value)) return fault(report, path, `expected a list, got ${describe(value)}`)
      if (value.length < min) return fault(report, path, `needs at least ${count(min, 'entry', 'entries')}`)
      if (value.length > max) return fault(report, path, `more than ${count(max, 'entry', 'entries')}`)
      const result: T[] = []
      for (const [index, entry] of value.entries()) {
        const read = item.read(entry, `${path}[${index}]`, report)
        if (read !== undefined) result.push(read)
      }
      // A list that grew has room for 17 entries, a copy for its own.
      return result.slice()
    },
  }
}

/** A mapping with arbitrary keys, limited in size like lists. Keys must be well-formed Unicode. */
export function map<T>(item: Shape<T>): Shape<Record<string, T>> {
  return {
    form: { type: 'map', item: item.form, hasUnused: hasUnused(item.form) },
    read(value, path, report) {
      if (!isMapping(value)) return fault(report, path, `expected a mapping, got ${describe(value)}`)
      const entries = Object.entries(value)
      if (entries.length > 20_000) return fault(report, path, 'more than 20000 entries')
      const result: Record<string, T> = {}
      for (const [key, entry] of entries) {
        const at = `${path}[${key.slice(0, 100).toWellFormed()}]`
        if (!key.isWellFormed()) fault(report, at, 'the key is not valid Unicode')
        const read = item.read(entry, at, report)
        if (read !== undefined) Object.defineProperty(result, key, { value: read, enumerable: true, writable: true, configurable: true })
      }
      return result
    },
  }
}

/** Any JSON value, returned unchanged. Values that JSON cannot express (dates and infinities, for example, which YAML can) are faults. */
export const anything: Shape<unknown> = {
  form: { type: 'anything' },
  read(value, path, report) {
    const reason = notJson(value, 0)
    return reason === undefined ? value : fault(report, path, reason)
  },
}

function notJson(value: unknown, depth: number): string | undefined {
  if (depth > 100) return 'nested deeper than 100 levels'
  if (value === null || typeof value === 'boolean') return undefined
  if (typeof value === 'string') return value.isWellFormed() ? undefined : 'not valid Unicode: it has half a surrogate pair'
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${value} is not a number of JSON`
  if (!Array.isArray(value) && !isMapping(value)) return `${describe(value)} is no JSON`
  for (const [key, entry] of Object.entries(value)) {
    const reason = key.isWellFormed() ? notJson(entry, depth + 1) : 'a key is not valid Unicode'
    if (reason !== undefined) return reason
  }
  return undefined
}

/** The number of faults and warnings of a document after which names are no longer suggested: each suggestion compares many names. */
const mostSuggestions = 20

/** The clause that suggests the name that an unknown one may have been meant to be. */
function meant(written: string, names: Iterable<string>, { faults, warnings }: Report): string {
  return written.length <= 64 && faults.length + warnings.length < mostSuggestions ? suggestion(written, names) : ''
}

/**
 * A mapping with known fields. Unknown fields are left out with a warning; with `unknown` set to `fault` they are faults, for mappings
 * whose meaning could become less strict without the field. `check` is called with the whole value, only if nothing in it, however deep, is
 * invalid or missing.
 */
export function record<F extends Fields>(
  fields: F,
  check?: (value: ReadFields<F>, path: string, report: Report) => void,
  unknown: 'left out' | 'fault' = 'left out',
): Shape<ReadFields<F>> {
  const shapes = new Map(Object.entries(fields))
  const requiredNames = [...shapes.keys()].filter((name) => shapes.get(name)?.required)
  return {
    form: {
      type: 'record',
      fields: Object.fromEntries(
        Object.entries(fields).map(([name, { form, required = false, unused, only }]) => [name, { form, required, unused, only }]),
      ),
      hasUnused: Object.values(fields).some(({ form, unused }) => unused !== undefined || hasUnused(form)),
      isStrict: unknown === 'fault',
    },
    read(value, path, report) {
      if (!isMapping(value)) return fault(report, path, `expected a mapping, got ${describe(value)}`)
      const faultsBefore = report.faults.length
      const result: Record<string, unknown> = {}
      const given = new Set<string>()
      for (const [written, entry] of Object.entries(value)) {
        const name = shapes.has(written) ? written : camelCase(written)
        const shape = shapes.get(name)
        if (!shape) {
          const at = join(path, written.slice(0, 100).toWellFormed())
          if (unknown === 'fault') fault(report, at, `unknown field${meant(written, shapes.keys(), report)}`)
          else report.warnings.push({ path: at, reason: `unknown field, left out${meant(written, shapes.keys(), report)}` })
          continue
        }
        if (entry === null || entry === undefined) continue
        if (given.has(name)) fault(report, join(path, name), 'given twice, in two spellings')
        given.add(name)
        if (shape.unused !== undefined) (report.idle ?? report.warnings).push(idle(join(path, name), shape.unused))
        const read = shape.read(entry, join(path, name), report)
        if (read !== undefined) result[name] = read
      }
      for (const name of requiredNames) if (!given.has(name)) fault(report, join(path, name), 'required, but missing')
      if (check && report.faults.length === faultsBefore) check(result as ReadFields<F>, path, report)
      return result as ReadFields<F>
    },
  }
}

/** Marks the shape of a required field. */
export function required<T>(shape: Shape<T>): Shape<T> & { required: true } {
  return { form: shape.form, read: (value, path, report) => shape.read(value, path, report), required: true }
}

/**
 * Marks the shape of a field that has no effect yet. The field is checked, kept for those who read the object, and reported with the
 * reason. It is missing from the type of the record, so that code cannot use a field that is declared to have no effect.
 */
export function unused<T>(shape: Shape<T>, reason = 'not implemented'): Shape<T> & { unused: string } {
  return { form: shape.form, read: (value, path, report) => shape.read(value, path, report), unused: reason }
}

/** Marks the shape of a field that has an effect in one place only (docs/kinds.md). */
export function only<T>(place: string, shape: Shape<T>): Shape<T> {
  return { form: shape.form, read: (value, path, report) => shape.read(value, path, report), only: place }
}

/** Adds a fault at a path below a record. */
export function reject(report: Report, path: string, reason: string): void {
  report.faults.push({ path, reason })
}

/**
 * Rejects the second and further ones of fields that exclude each other, with the name of the first. A field with an empty text or list counts
 * as missing. Fields are read from the value as it is, so that they may be declared to have no effect.
 */
export function rejectBeside(value: object, fields: readonly string[], path: string, report: Report): void {
  const [first, ...others] = fields.filter((field) => isGiven((value as Readonly<Record<string, unknown>>)[field]))
  for (const field of others) reject(report, join(path, field), `excluded by ${first}`)
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)

/** Whether a value is a plain mapping: neither a list nor an instance of a class (YAML can express dates and sets). */
export function isMapping(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** A mapping that is read leniently: any other value counts as one without fields. */
export const mapping = (value: unknown): Readonly<Record<string, unknown>> => (isMapping(value) ? value : {})

/** A text that is read leniently: any other value counts as an empty one. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The message form of a duration, returned in milliseconds. */
const durationParts: Shape<number> = (() => {
  const { form, read } = record(
    { seconds: integer(-315_576_000_000, 315_576_000_000), nanos: integer(-999_999_999, 999_999_999) },
    ({ seconds = 0, nanos = 0 }, path, report) => {
      if (seconds * nanos < 0) reject(report, `${path}.nanos`, 'the sign differs from that of seconds')
    },
  )
  return {
    form,
    read(value, path, report) {
      const { seconds = 0, nanos = 0 } = read(value, path, report) ?? {}
      return seconds * 1000 + nanos / 1e6
    },
  }
})()

const idle = (path: string, reason: string): Fault => ({ path, reason: `has no effect yet: ${reason}` })
function hasUnused(form: Form): boolean {
  return 'hasUnused' in form && form.hasUnused
}

/**
 * Returns the fields without effect, with reasons, in a value that a shape of this form has returned. Parts of the form without such fields
 * are skipped.
 */
export function idleFields(form: Form, value: unknown, path: string): Fault[] {
  if (!hasUnused(form) || value === undefined) return []
  if (form.type === 'list' && Array.isArray(value)) return value.flatMap((item, index) => idleFields(form.item, item, `${path}[${index}]`))
  if (!isMapping(value)) return []
  if (form.type === 'map') return Object.entries(value).flatMap(([key, item]) => idleFields(form.item, item, `${path}[${key.slice(0, 100)}]`))
  if (form.type !== 'record') return []
  return Object.entries(form.fields).flatMap(([name, field]) => {
    if (!Object.hasOwn(value, name)) return []
    const at = join(path, name)
    return field.unused === undefined ? idleFields(field.form, value[name], at) : [idle(at, field.unused)]
  })
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)
const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** Whether a field of metadata has no value. */
export const isMissing = (value: unknown): boolean => value === undefined || value === null || value === ''
