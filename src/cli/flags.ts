/** The kinds of flags, in terms of the command-line library, and the checks of their values (docs/operation.md, "Flags"). */
import { boolean, custom } from '@oclif/core/flags'
import type { BooleanFlag, FlagInput, OptionFlag } from '@oclif/core/interfaces'
import { parseDuration } from '../config/duration.ts'
import { type ReadValue, readValue } from '../config/variable.ts'
import { isObjectName } from '../names/object-names.ts'

/** What every flag has: what it means, and optionally a short form and an environment variable that counts where the flag is not given. */
interface Described {
  readonly description: string
  readonly char?: OptionFlag<string>['char']
  readonly env?: string
}

/** A flag that has no effect yet, and the reason. Its use is reported at start-up, and its value is not in {@link FlagValues}. */
interface NotYet {
  readonly notYet: string
}

/** The values of flags, except of those without effect. Durations are in milliseconds. */
export type FlagValues<Flags> = {
  readonly [Name in keyof Flags as Flags[Name] extends NotYet ? never : Name]: Flags[Name] extends OptionFlag<infer Value>
    ? Value
    : Flags[Name] extends BooleanFlag<infer Value>
      ? Value
      : never
}

/**
 * What a text is, which help shows and shells complete (`completion.ts`): `file`, `directory`, `namespace`, `scope`, `scope:level`, or the texts that it may be,
 * with bars.
 */
interface Valued {
  readonly value?: string
}

/** Returns a flag for text. */
export const text = ({ value = 'string', ...options }: Described & Valued & { readonly default: string }): OptionFlag<string> =>
  custom<string>({ helpValue: value })({ ...options })

/** Returns a flag that is on or off; off when not given. */
export const toggle = (options: Described): BooleanFlag<boolean> => boolean(options)

/** Returns a flag for values that are separated by commas. Those of a repeated flag are joined. */
export const list = ({ value = 'a,b', ...options }: Described & Valued & { readonly default: readonly string[] }): OptionFlag<string[]> =>
  custom<string>({ helpValue: value })({ ...options, default: [...options.default], multiple: true, multipleNonGreedy: true, delimiter: ',' })

/** Returns a flag for paths, each given by the flag once more. */
export const paths = (options: Described & { readonly default: readonly string[] }): OptionFlag<string[]> => texts({ ...options, value: 'path' })

/** Returns a flag for texts, each given by the flag once more: commas are part of them. */
export const texts = ({ value = 'string', ...options }: Described & Valued & { readonly default: readonly string[] }): OptionFlag<string[]> =>
  custom<string>({ helpValue: value })({ ...options, default: [...options.default], multiple: true, multipleNonGreedy: true })

/** A number and the range of its values, both ends included. */
interface Numbered extends Described {
  readonly default: number
  readonly range: readonly [least: number, most: number]
}

const numbers =
  (type: 'integer' | 'number', helpValue: string) =>
  ({ range, ...options }: Numbered): OptionFlag<number> & Pick<Numbered, 'range'> => ({
    ...custom<number>({ helpValue, parse: async (given, _, { name }) => checked(name, given, readValue({ type, range }, given)) })(options),
    range,
  })

/** Return flags for whole numbers and for decimal ones. */
export const int = numbers('integer', 'int')
export const uint16 = numbers('integer', 'uint16')
export const float32 = numbers('number', 'float32')

/** Returns a flag for a duration such as `1m30s`. The default and the range, both ends included, are in that notation; the value is in milliseconds. */
export function duration({
  range,
  default: standard,
  ...options
}: Described & { readonly default: string; readonly range: readonly [least: string, most: string] }): OptionFlag<number> & {
  readonly range: typeof range
} {
  const read = (name: string, given: string) => checked(name, given, readValue({ type: 'duration', range }, given))
  const parsed = { default: parseDuration(standard) as number, defaultHelp: async () => standard }
  return { ...custom<number>({ helpValue: 'duration', parse: async (given, _, { name }) => read(name, given) })({ ...options, ...parsed }), range }
}

/** Marks a flag as one that has no effect yet, for this reason. Help says so. */
export const notYet = <Flag extends { description?: string }>(reason: string, flag: Flag): Flag & NotYet => ({
  ...flag,
  description: `${flag.description}; it has no effect yet: ${reason}`,
  notYet: reason,
})

/** Returns the reason why a flag has no effect yet, if it has none. */
export const notYetOf = (flag: FlagInput[string] | undefined): string | undefined => (flag as Partial<NotYet> | undefined)?.notYet

/** Returns flags under a heading of their own in help. */
export const underHeading = <Flags extends FlagInput>(helpGroup: string, flags: Flags): Flags =>
  Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, helpGroup }])) as Flags

/** Returns flags that are accepted and checked, and that neither help nor completion shows: they change nothing of what the command does. */
export const unshown = <Flags extends FlagInput>(flags: Flags): Flags =>
  Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, hidden: true }])) as Flags

/** Parses the value of a switch as pflag does. Throws an Error that names the flag. */
export function isOn(name: string, given: string): boolean {
  if (/^(1|t|true)$/i.test(given)) return true
  return checked(name, given, /^(0|f|false)$/i.test(given) ? { value: false } : { expected: 'true or false' })
}

function checked<Value>(name: string, given: string, read: ReadValue<Value>): Value {
  if ('expected' in read) throw new Error(`invalid argument ${JSON.stringify(given)} for "--${name}": expected ${read.expected}`)
  return read.value
}

/** Throws an Error where the value of `--namespace` is no name; empty: the flag is not given. */
export function checkNamespace(namespace: string): void {
  if (namespace !== '' && !isObjectName(namespace)) throw new Error(`--namespace: ${JSON.stringify(namespace.slice(0, 100))} is not a name`)
}
