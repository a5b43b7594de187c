/** Moments and durations as Go's package `time` reads and writes them. */
import { fail, GoTime, goInt64, type Value } from './values.ts'

const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const second = 1_000_000_000n

/** The moment that Go's `time.Time` is without a value: 1 January of the year 1. */
export const zeroTime = new GoTime(-62_135_596_800n * second, 'UTC')

const tokens =
  /January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|15|1|2006|2|__2|_2(?!006)|3|4|5|PM|pm|-07:00:00|-070000|-07:00|-0700|-07|Z07:00:00|Z070000|Z07:00|Z0700|Z07|[.,]0+(?!\d)|[.,]9+(?!\d)/g

/** The parts of a moment in its zone. */
interface Parts {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly nanos: number
  readonly weekday: number
  readonly yearDay: number
  /** The offset of the zone in seconds, and its short name. */
  readonly offset: number
  readonly zone: string
}

function floorDivided(value: bigint, by: bigint): bigint {
  const whole = value / by
  return whole * by > value ? whole - 1n : whole
}

/** The difference of a zone to UTC at a moment, in seconds. */
function offsetOf(zone: string, ms: number): number {
  if (zone === 'UTC') return 0
  const fixed = /^([+-])(\d\d)(\d\d)$/.exec(zone)
  if (fixed) return (fixed[1] === '-' ? -1 : 1) * (Number(fixed[2]) * 3600 + Number(fixed[3]) * 60)
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, hourCycle: 'h23', era: 'short', year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  })
  const read = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)])) as Record<string, number>
  const shown = Date.UTC(read.year ?? 0, (read.month ?? 1) - 1, read.day, read.hour, read.minute, read.second)
  return Math.round((shown - Math.floor(ms / 1000) * 1000) / 1000)
}

/** Whether there is a zone of the name. */
export function isZone(name: string): boolean {
  if (name === 'UTC') return true
  if (!/^[A-Z][\w+-]*(\/[\w+-]+)*$/.test(name)) return false
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

function partsOf({ nanos, zone }: GoTime): Parts {
  const seconds = floorDivided(nanos, second)
  const offset = offsetOf(zone, Number(seconds) * 1000)
  const date = new Date((Number(seconds) + offset) * 1000)
  if (Number.isNaN(date.getTime())) return fail('the time is out of range')
  const year = date.getUTCFullYear()
  const start = new Date(0)
  start.setUTCFullYear(year)
  return {
    year,
    month: date.getUTCMonth(),
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    nanos: Number(nanos - seconds * second),
    weekday: date.getUTCDay(),
    yearDay: Math.floor((date.getTime() - start.getTime()) / 86_400_000) + 1,
    offset,
    zone: zone === 'UTC' ? 'UTC' : offsetText(offset, offset % 3600 === 0 ? '' : 'm'),
  }
}

function offsetText(offset: number, form: string): string {
  const size = Math.abs(offset)
  const [hours, minutes, seconds] = [Math.floor(size / 3600), Math.floor(size / 60) % 60, size % 60].map((part) => String(part).padStart(2, '0'))
  const sign = offset < 0 ? '-' : '+'
  if (form === '') return `${sign}${hours}`
  if (form === 'm') return `${sign}${hours}${minutes}`
  if (form === ':m') return `${sign}${hours}:${minutes}`
  return form === 's' ? `${sign}${hours}${minutes}${seconds}` : `${sign}${hours}:${minutes}:${seconds}`
}

const offsetForms: Readonly<Record<string, string>> = { '07': '', '0700': 'm', '07:00': ':m', '070000': 's', '07:00:00': ':s' }

const two = (value: number): string => String(value).padStart(2, '0')

/** Formats a moment by a layout of Go. */
export function timeText(time: GoTime, layout = '2006-01-02 15:04:05.999999999 -0700 MST'): string {
  const parts = partsOf(time)
  return layout.replaceAll(tokens, (token) => written(token, parts))
}

function written(token: string, parts: Parts): string {
  const hour = parts.hour % 12 || 12
  const plain: Readonly<Record<string, () => string>> = {
    January: () => months[parts.month] as string,
    Jan: () => (months[parts.month] as string).slice(0, 3),
    Monday: () => days[parts.weekday] as string,
    Mon: () => (days[parts.weekday] as string).slice(0, 3),
    MST: () => parts.zone,
    '2006': () => `${parts.year < 0 ? '-' : ''}${String(Math.abs(parts.year)).padStart(4, '0')}`,
    '06': () => two(Math.abs(parts.year) % 100),
    '01': () => two(parts.month + 1),
    '1': () => String(parts.month + 1),
    '02': () => two(parts.day),
    '2': () => String(parts.day),
    _2: () => String(parts.day).padStart(2, ' '),
    '002': () => String(parts.yearDay).padStart(3, '0'),
    __2: () => String(parts.yearDay).padStart(3, ' '),
    '15': () => two(parts.hour),
    '03': () => two(hour),
    '3': () => String(hour),
    '04': () => two(parts.minute),
    '4': () => String(parts.minute),
    '05': () => two(parts.second),
    '5': () => String(parts.second),
    PM: () => (parts.hour >= 12 ? 'PM' : 'AM'),
    pm: () => (parts.hour >= 12 ? 'pm' : 'am'),
  }
  if (Object.hasOwn(plain, token)) return (plain[token] as () => string)()
  if (token.startsWith('Z') && parts.offset === 0) return 'Z'
  if (token.startsWith('Z') || token.startsWith('-')) return offsetText(parts.offset, offsetForms[token.slice(1)] ?? '')
  const digits = String(parts.nanos)
    .padStart(9, '0')
    .slice(0, token.length - 1)
    .padEnd(token.length - 1, '0')
  if (token[1] === '0') return `${token[0]}${digits}`
  const short = digits.replace(/0+$/, '')
  return short === '' ? '' : `${token[0]}${short}`
}

/** Returns the moment that a text says by a layout; undefined when it does not follow the layout. */
export function parsedTime(layout: string, text: string): GoTime | undefined {
  const read = new TimeReader(text)
  let at = 0
  for (const match of layout.matchAll(tokens)) {
    if (!read.literal(layout.slice(at, match.index)) || !read.token(match[0])) return undefined
    at = match.index + match[0].length
  }
  return read.literal(layout.slice(at)) ? read.end() : undefined
}

class TimeReader {
  #rest: string
  #year = 0
  #month = 1
  #day = 1
  #hour = 0
  #minute = 0
  #second = 0
  #nanos = 0n
  #isAfternoon: boolean | undefined
  #offset: number | undefined
  #yearDay: number | undefined

  constructor(text: string) {
    this.#rest = text
  }

  literal(text: string): boolean {
    if (!this.#rest.startsWith(text)) return false
    this.#rest = this.#rest.slice(text.length)
    return true
  }

  #take(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.#rest)?.[0]
    if (found !== undefined) this.#rest = this.#rest.slice(found.length)
    return found
  }

  #number(pattern: RegExp, set: (value: number) => void): boolean {
    const digits = this.#take(pattern)
    if (digits === undefined) return false
    set(Number(digits))
    return true
  }

  #name(names: readonly string[], length: number | undefined): number {
    const rest = this.#rest.toLowerCase()
    const at = names.findIndex((name) => rest.startsWith(name.slice(0, length).toLowerCase()))
    if (at >= 0) this.#rest = this.#rest.slice((names[at] as string).slice(0, length).length)
    return at
  }

  token(token: string): boolean {
    switch (token) {
      case 'January':
      case 'Jan':
        this.#month = this.#name(months, token === 'Jan' ? 3 : undefined) + 1
        return this.#month > 0
      case 'Monday':
      case 'Mon':
        return this.#name(days, token === 'Mon' ? 3 : undefined) >= 0
      case '2006':
        return this.#number(/^\d{4}/, (value) => (this.#year = value))
      case '06':
        return this.#number(/^\d\d/, (value) => (this.#year = value + (value >= 69 ? 1900 : 2000)))
      case '01':
        return this.#number(/^\d\d/, (value) => (this.#month = value))
      case '1':
        return this.#number(/^\d\d?/, (value) => (this.#month = value))
      case '02':
        return this.#number(/^\d\d/, (value) => (this.#day = value))
      case '2':
      case '_2':
        if (token === '_2') this.#take(/^ /)
        return this.#number(/^\d\d?/, (value) => (this.#day = value))
      case '002':
      case '__2':
        return this.#number(/^\d{3}/, (value) => (this.#yearDay = value))
      case '15':
      case '03':
        return this.#number(/^\d\d/, (value) => (this.#hour = value))
      case '3':
        return this.#number(/^\d\d?/, (value) => (this.#hour = value))
      case '04':
      case '4':
        return this.#number(token === '04' ? /^\d\d/ : /^\d\d?/, (value) => (this.#minute = value))
      case '05':
      case '5':
        return this.#seconds(token)
      case 'PM':
      case 'pm': {
        const half = this.#take(/^[AaPp][Mm]/)
        this.#isAfternoon = half?.toUpperCase() === 'PM'
        return half !== undefined && (token === 'PM' ? half === half.toUpperCase() : half === half.toLowerCase())
      }
      case 'MST':
        return this.#take(/^[A-Z]{3,5}/) !== undefined
      default:
        return token.startsWith('Z') || token.startsWith('-') ? this.#zone(token) : this.#fraction(token)
    }
  }

  #seconds(token: string): boolean {
    const isThere = this.#number(token === '05' ? /^\d\d/ : /^\d\d?/, (value) => (this.#second = value))
    // A fraction is read though the layout has none.
    const digits = this.#take(/^[.,]\d+/)
    if (digits) this.#nanos = BigInt(digits.slice(1, 10).padEnd(9, '0'))
    return isThere
  }

  #fraction(token: string): boolean {
    if (this.#nanos > 0n) return true
    const digits = this.#take(/^[.,]\d+/)
    if (digits !== undefined) this.#nanos = BigInt(digits.slice(1, 10).padEnd(9, '0'))
    return token[1] === '9' || digits?.length === token.length
  }

  #zone(token: string): boolean {
    if (token.startsWith('Z') && this.#take(/^Z/)) {
      this.#offset = 0
      return true
    }
    const form = token.slice(1)
    const pattern = form === '07' ? /^[+-]\d\d/ : form === '0700' ? /^[+-]\d{4}/ : form === '07:00' ? /^[+-]\d\d:\d\d/ : /^[+-]\d\d:?\d\d:?\d\d/
    const text = this.#take(pattern)
    if (text === undefined) return false
    const digits = text.replaceAll(/[+:-]/g, '').padEnd(6, '0')
    const size = Number(digits.slice(0, 2)) * 3600 + Number(digits.slice(2, 4)) * 60 + Number(digits.slice(4))
    this.#offset = text.startsWith('-') ? -size : size
    return true
  }

  end(): GoTime | undefined {
    if (this.#rest !== '') return undefined
    if (this.#isAfternoon !== undefined) this.#hour = (this.#hour % 12) + (this.#isAfternoon ? 12 : 0)
    if (this.#hour > 23 || this.#minute > 59 || this.#second > 59) return undefined
    const date = new Date(0)
    date.setUTCFullYear(this.#year, this.#yearDay === undefined ? this.#month - 1 : 0, this.#yearDay ?? this.#day)
    if (this.#yearDay === undefined && (date.getUTCMonth() !== this.#month - 1 || date.getUTCDate() !== this.#day)) return undefined
    const seconds = date.getTime() / 1000 + this.#hour * 3600 + this.#minute * 60 + this.#second - (this.#offset ?? 0)
    const zone = this.#offset ? offsetText(this.#offset, 'm') : 'UTC'
    return new GoTime(BigInt(seconds) * second + this.#nanos, zone)
  }
}

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: second,
  m: 60n * second,
  h: 3600n * second,
}

/** Parses a duration of Go (`1h30m`) into nanoseconds. Undefined when it is none, or too large. */
export function parsedDuration(text: string): bigint | undefined {
  const bare = text.replace(/^[+-]/, '')
  if (bare === '0') return 0n
  if (bare === '' || bare.length > 200 || !/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(bare)) return undefined
  let total = 0n
  for (const [, whole = '', fraction = '', unit = ''] of bare.matchAll(/(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const size = units[unit] as bigint
    total +=
      BigInt(whole || '0') * size + (fraction === '' ? 0n : (BigInt(fraction.slice(0, 18)) * size) / 10n ** BigInt(Math.min(fraction.length, 18)))
  }
  return total < 2n ** 63n ? (text.startsWith('-') ? -total : total) : undefined
}

/** Writes nanoseconds as a duration of Go. */
export function durationText(nanos: bigint): string {
  if (nanos === 0n) return '0s'
  const size = nanos < 0n ? -nanos : nanos
  const sign = nanos < 0n ? '-' : ''
  const decimal = (value: bigint, unit: bigint): string => {
    const rest = value % unit
    const digits = String(rest)
      .padStart(String(unit).length - 1, '0')
      .replace(/0+$/, '')
    return `${value / unit}${digits === '' ? '' : `.${digits}`}`
  }
  if (size < 1000n) return `${sign}${size}ns`
  if (size < 1_000_000n) return `${sign}${decimal(size, 1000n)}µs`
  if (size < second) return `${sign}${decimal(size, 1_000_000n)}ms`
  const [hours, minutes] = [size / (3600n * second), (size / (60n * second)) % 60n]
  const seconds = `${decimal(size % (60n * second), second)}s`
  return `${sign}${hours > 0n ? `${hours}h` : ''}${hours > 0n || minutes > 0n ? `${minutes}m` : ''}${seconds}`
}

/** A method of Go's `time.Time` that has no arguments. */
export function timeField(time: GoTime, name: string): Value {
  const parts = partsOf(time)
  const found: Readonly<Record<string, () => Value>> = {
    Unix: () => goInt64(floorDivided(time.nanos, second)),
    UnixMilli: () => goInt64(floorDivided(time.nanos, 1_000_000n)),
    UnixNano: () => goInt64(time.nanos),
    Year: () => parts.year,
    Month: () => months[parts.month] as string,
    Day: () => parts.day,
    Hour: () => parts.hour,
    Minute: () => parts.minute,
    Second: () => parts.second,
    Nanosecond: () => parts.nanos,
    YearDay: () => parts.yearDay,
    Weekday: () => days[parts.weekday] as string,
    String: () => timeText(time),
    UTC: () => new GoTime(time.nanos, 'UTC'),
  }
  return Object.hasOwn(found, name) ? (found[name] as () => Value)() : fail(`can't evaluate field ${name} in type time.Time`)
}
