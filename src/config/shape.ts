/**
 * Shapes of configuration documents: each reads untrusted JSON into a typed value and reports what is wrong with the path
 * of the field. Proto-JSON habits are honoured: lowerCamelCase or snake_case names, numbers as strings, null as absent.
 */
import { parseDuration } from './duration.ts'

/** A fault in a document: where it is and why. */
export interface Fault {
  readonly path: string
  readonly reason: string
}

/** Collects what a document's reading found. Faults make the object invalid, warnings do not. */
export interface Report {
  readonly faults: Fault[]
  readonly warnings: Fault[]
}

/** Reads one value. Returns undefined when it is absent or wrong (then a fault was reported). */
export interface Shape<T> {
  read(value: unknown, path: string, report: Report): T | undefined
  readonly required?: boolean
}

/** The value a shape reads. */
export type Read<S> = S extends Shape<infer T> ? T : never

type Fields = Readonly<Record<string, Shape<unknown>>>
type ReadFields<F extends Fields> = {
  -readonly [K in keyof F as F[K] extends { required: true } ? K : never]: Read<F[K]>
} & { -readonly [K in keyof F as F[K] extends { required: true } ? never : K]?: Read<F[K]> }

const describe = (value: unknown): string =>
  Array.isArray(value)
    ? 'a list'
    : value === null
      ? 'null'
      : typeof value === 'object'
        ? 'a mapping'
        : `${typeof value} ${JSON.stringify(value)?.slice(0, 60)}`

function fault(report: Report, path: string, reason: string): undefined {
  report.faults.push({ path, reason })
  return undefined
}

/** Text, bounded; `pattern` is one of ours, never a user's. */
export function text(options: { max?: number; pattern?: RegExp; what?: string } = {}): Shape<string> {
  return {
    read(value, path, report) {
      if (typeof value !== 'string') return fault(report, path, `expected text, got ${describe(value)}`)
      if (value.length > (options.max ?? 65_536)) return fault(report, path, `longer than ${options.max ?? 65_536} characters`)
      if (options.pattern && !options.pattern.test(value))
        return fault(report, path, `${JSON.stringify(value.slice(0, 100))} is not ${options.what ?? 'valid'}`)
      return value
    },
  }
}

/** A whole number within bounds. */
export function integer(min: number, max: number): Shape<number> {
  return {
    read(value, path, report) {
      const n = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
      if (typeof n !== 'number' || !Number.isInteger(n)) return fault(report, path, `expected a whole number, got ${describe(value)}`)
      if (n < min || n > max) return fault(report, path, `${n} is outside ${min}..${max}`)
      return n
    },
  }
}

/** A number within bounds. */
export function decimal(min: number, max: number): Shape<number> {
  return {
    read(value, path, report) {
      const n = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
      if (typeof n !== 'number' || !Number.isFinite(n)) return fault(report, path, `expected a number, got ${describe(value)}`)
      return n < min || n > max ? fault(report, path, `${n} is outside ${min}..${max}`) : n
    },
  }
}

/** True or false. */
export const flag: Shape<boolean> = {
  read: (value, path, report) => (typeof value === 'boolean' ? value : fault(report, path, `expected true or false, got ${describe(value)}`)),
}

/** A duration such as `5s`, read as milliseconds. */
export function duration(minMs = 0): Shape<number> {
  return {
    read(value, path, report) {
      if (typeof value === 'object' && value !== null && 'seconds' in value) {
        return Number((value as { seconds: unknown }).seconds) * 1000 + Number((value as { nanos?: unknown }).nanos ?? 0) / 1e6
      }
      const ms = typeof value === 'string' ? parseDuration(value) : undefined
      if (ms === undefined || ms > 315_576_000_000_000) return fault(report, path, `expected a duration such as 5s, got ${describe(value)}`)
      return ms < minMs ? fault(report, path, `${value} is shorter than ${minMs} ms`) : ms
    },
  }
}

/** One of the listed names; with `numbers`, the proto number is taken too (index in the list). */
export function oneOf<const T extends string>(...names: T[]): Shape<T> {
  return {
    read(value, path, report) {
      if (typeof value === 'number' && names[value] !== undefined) return names[value]
      const found = names.find((name) => name === value)
      return found ?? fault(report, path, `${describe(value)} is not one of ${names.join(', ')}`)
    },
  }
}

/** A list of values. */
export function list<T>(item: Shape<T>, options: { min?: number; max?: number } = {}): Shape<T[]> {
  return {
    read(value, path, report) {
      if (!Array.isArray(value)) return fault(report, path, `expected a list, got ${describe(value)}`)
      if (value.length < (options.min ?? 0)) return fault(report, path, `needs at least ${options.min} entries`)
      if (value.length > (options.max ?? 20_000)) return fault(report, path, `more than ${options.max ?? 20_000} entries`)
      const result: T[] = []
      for (const [index, entry] of value.entries()) {
        const read = item.read(entry, `${path}[${index}]`, report)
        if (read !== undefined) result.push(read)
      }
      return result
    },
  }
}

/** A mapping with free keys. */
export function map<T>(item: Shape<T>): Shape<Record<string, T>> {
  return {
    read(value, path, report) {
      if (!isMapping(value)) return fault(report, path, `expected a mapping, got ${describe(value)}`)
      const result: Record<string, T> = {}
      for (const [key, entry] of Object.entries(value)) {
        const read = item.read(entry, `${path}[${key}]`, report)
        if (read !== undefined) Object.defineProperty(result, key, { value: read, enumerable: true, writable: true, configurable: true })
      }
      return result
    },
  }
}

/** Any JSON value, kept as it is. */
export const anything: Shape<unknown> = { read: (value) => value }

/**
 * A mapping with known fields. Unknown fields are warned about and left out; where leaving one out could change what the rest
 * means for the worse, `unknown` makes them faults.
 */
export function record<F extends Fields>(
  fields: F,
  check?: (value: ReadFields<F>, path: string, report: Report) => void,
  unknown: 'left out' | 'fault' = 'left out',
): Shape<ReadFields<F>> {
  return {
    read(value, path, report) {
      if (!isMapping(value)) return fault(report, path, `expected a mapping, got ${describe(value)}`)
      const result: Record<string, unknown> = {}
      for (const [given, entry] of Object.entries(value)) {
        const name = Object.hasOwn(fields, given) ? given : camelCase(given)
        const shape = Object.hasOwn(fields, name) ? fields[name] : undefined
        if (!shape) {
          if (unknown === 'fault') fault(report, join(path, given), 'unknown field')
          else report.warnings.push({ path: join(path, given), reason: 'unknown field, left out' })
          continue
        }
        if (entry === null || entry === undefined) continue
        const read = shape.read(entry, join(path, name), report)
        if (read !== undefined) result[name] = read
      }
      const before = report.faults.length
      for (const [name, shape] of Object.entries(fields)) {
        const faulty = () =>
          report.faults.some(
            (found) =>
              found.path === join(path, name) || found.path.startsWith(`${join(path, name)}.`) || found.path.startsWith(`${join(path, name)}[`),
          )
        if (shape.required && result[name] === undefined && !faulty()) fault(report, join(path, name), 'required, but missing')
      }
      if (check && report.faults.length === before) check(result as ReadFields<F>, path, report)
      return result as ReadFields<F>
    },
  }
}

/** The same shape, as a field that must be present. */
export function required<T>(shape: Shape<T>): Shape<T> & { required: true } {
  return { read: (value, path, report) => shape.read(value, path, report), required: true }
}

/** Adds a fault at a path below a record. */
export function reject(report: Report, path: string, reason: string): void {
  report.faults.push({ path, reason })
}

/** Whether a value is a plain mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)
const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
