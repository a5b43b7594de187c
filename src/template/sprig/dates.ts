/** Functions for dates. The local zone is UTC. */
import { type Functions, templateFunction } from '../function.ts'
import { durationText, isZone, parsedDuration, parsedTime, timeText, zeroTime } from '../time.ts'
import { bigOf, fail, GoInt, GoTime, isInt, typeName, type Value } from '../values.ts'
import { parsedInt } from './casts.ts'

/** The clock of a rendering: nanoseconds since 1970. */
export type Clock = () => bigint

const second = 1_000_000_000n
/** What it costs to find out about a zone. */
const zoneWork = 20_000

/** The functions by name. */
export function dateFunctions(clock: Clock): Functions {
  const now = () => new GoTime(clock(), 'UTC')
  const timeOf = (value: Value): GoTime => {
    if (value instanceof GoTime) return value
    return isInt(value) && ['int', 'int32', 'int64'].includes(typeName(value)) ? new GoTime(bigOf(value) * second, 'UTC') : now()
  }
  const shown = (layout: string, value: Value, zone: string): string => {
    const time = timeOf(value)
    return timeText(new GoTime(time.nanos, zone !== 'Local' && zone !== '' && isZone(zone) ? zone : 'UTC'), layout)
  }
  const moved = (text: string, value: Value, isStrict: boolean): GoTime => {
    if (!(value instanceof GoTime)) return fail(`wrong type for value; expected time.Time; got ${typeName(value)}`)
    const by = parsedDuration(text)
    if (by === undefined) return isStrict ? fail(`time: invalid duration ${JSON.stringify(text)}`) : value
    return new GoTime(value.nanos + by, value.zone)
  }
  const local = templateFunction(['string', 'any'], (_, layout, value) => shown(layout, value, 'Local'))
  const inZone = templateFunction(['string', 'any', 'string'], (budget, layout, value, zone) => {
    budget.spend(zoneWork)
    return shown(layout, value, zone)
  })
  const modify = templateFunction(['string', 'any'], (_, text, value) => moved(text, value, false))
  const mustModify = templateFunction(['string', 'any'], (_, text, value) => moved(text, value, true))
  return new Map(
    Object.entries({
      now: templateFunction([], now),
      date: local,
      dateInZone: inZone,
      date_in_zone: inZone,
      htmlDate: templateFunction(['any'], (_, value) => shown('2006-01-02', value, 'Local')),
      htmlDateInZone: templateFunction(['any', 'string'], (budget, value, zone) => {
        budget.spend(zoneWork)
        return shown('2006-01-02', value, zone)
      }),
      dateModify: modify,
      date_modify: modify,
      mustDateModify: mustModify,
      must_date_modify: mustModify,
      toDate: templateFunction(['string', 'string'], (_, layout, text) => parsedTime(layout, text) ?? zeroTime),
      mustToDate: templateFunction(
        ['string', 'string'],
        (_, layout, text) => parsedTime(layout, text) ?? fail(`parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: cannot parse`),
      ),
      unixEpoch: templateFunction(['any'], (_, value) => {
        if (!(value instanceof GoTime)) return fail(`wrong type for value; expected time.Time; got ${typeName(value)}`)
        const seconds = value.nanos / second
        return String(seconds * second > value.nanos ? seconds - 1n : seconds)
      }),
      ago: templateFunction(['any'], (_, value) => durationText(rounded(clamped(clock() - timeOf(value).nanos)))),
      duration: templateFunction(['any'], (_, value) => durationText(BigInt.asIntN(64, secondsOf(value) * second))),
      durationRound: templateFunction(['any'], (_, value) => largestUnit(spanOf(value, clock))),
    }),
  )
}

/** Rounds to whole seconds, away from zero at the middle. */
const rounded = (nanos: bigint): bigint => ((nanos + (nanos < 0n ? -second : second) / 2n) / second) * second

function secondsOf(value: Value): bigint {
  if (typeof value === 'string') return parsedInt(value, 10) ?? 0n
  return value instanceof GoInt && value.type === 'int64' ? value.value : 0n
}

function spanOf(value: Value, clock: Clock): bigint {
  if (typeof value === 'string') return parsedDuration(value) ?? 0n
  if (value instanceof GoTime) return clamped(clock() - value.nanos)
  return value instanceof GoInt && value.type === 'int64' ? value.value : 0n
}

/** A span of Go has 64 bits: what is longer is cut. */
const clamped = (span: bigint): bigint => (BigInt.asIntN(64, span) === span ? span : span < 0n ? -(2n ** 63n) : 2n ** 63n - 1n)

const hour = 3600n * second

/** The number of the largest unit that fits. */
function largestUnit(span: bigint): string {
  const size = span < 0n ? -span : span
  const sizes: readonly (readonly [string, bigint])[] = [
    ['y', 24n * 365n * hour],
    ['mo', 24n * 30n * hour],
    ['d', 24n * hour],
    ['h', hour],
    ['m', 60n * second],
    ['s', second],
  ]
  const found = sizes.find(([, unit]) => size > unit)
  return found ? `${size / found[1]}${found[0]}` : '0s'
}
