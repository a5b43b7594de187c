/** Semantic versions (`semver`, `semverCompare`), with the constraints of Masterminds' package. */
import { fail, GoInt, GoStruct, type Value } from '../values.ts'

interface Version {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly pre: string
  readonly metadata: string
  readonly original: string
}

const tail = String.raw`(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?`
const versionPattern = new RegExp(String.raw`^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?${tail}$`)
/** The largest texts that are read. Patterns of this file take time linear in them, times the number of constraints. */
const longest = 256

function parsed(text: string): Version {
  const match = text.length <= longest ? versionPattern.exec(text) : null
  if (!match) return fail('Invalid Semantic Version')
  const numbers = [match[1], match[2]?.slice(1), match[3]?.slice(1)].map((digits) => BigInt(digits ?? '0')) as [bigint, bigint, bigint]
  if (numbers.some((number) => number >= 2n ** 64n)) return fail('Error parsing version segment: value out of range')
  const pre = match[4] ?? ''
  if (pre.split('.').some((part) => /^0[0-9]+$/.test(part))) return fail('Version segment starts with 0')
  return { numbers, pre, metadata: match[5] ?? '', original: text }
}

function compared(one: Version, other: Version): number {
  for (const at of [0, 1, 2] as const) if (one.numbers[at] !== other.numbers[at]) return one.numbers[at] < other.numbers[at] ? -1 : 1
  if (one.pre === other.pre) return 0
  if (one.pre === '' || other.pre === '') return one.pre === '' ? 1 : -1
  return comparedPre(one.pre.split('.'), other.pre.split('.'))
}

function comparedPre(one: readonly string[], other: readonly string[]): number {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const [mine, theirs] = [one[at] ?? '', other[at] ?? '']
    if (mine === theirs) continue
    if (mine === '' || theirs === '') return mine === '' ? -1 : 1
    const [isNumber, isTheirsNumber] = [isUint(mine), isUint(theirs)]
    if (isNumber && isTheirsNumber) return BigInt(mine) > BigInt(theirs) ? 1 : -1
    if (isNumber !== isTheirsNumber) return isNumber ? -1 : 1
    return mine > theirs ? 1 : -1
  }
  return 0
}

const isUint = (text: string): boolean => /^[0-9]+$/.test(text) && BigInt(text) < 2n ** 64n

interface Constraint {
  readonly operator: string
  readonly version: Version
  /** Which of the numbers are open: any minor version, any patch, or any of them. */
  readonly isOpen: boolean
  readonly anyMinor: boolean
  readonly anyPatch: boolean
}

const piece = '[0-9|x|X|*]+'
const range = String.raw`v?(${piece})(\.${piece})?(\.${piece})?((?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)`
const operators = String.raw`=>|=<|>=|<=|!=|~>|=|>|<|~|\^|`
const constraintPattern = new RegExp(String.raw`(${operators})\s*${range}`, 'y')

const isAny = (text: string | undefined): boolean => text === undefined || ['x', 'X', '*'].includes(text.replace(/^\./, ''))

function constraint([, operator = '', major = '', minor, patch, rest = '']: readonly string[]): Constraint {
  const [anyMajor, anyMinor, anyPatch] = [isAny(major), isAny(minor), isAny(patch)]
  const numbers = anyMajor ? '0.0.0' : anyMinor ? `${major}.0.0` : anyPatch ? `${major}${minor}.0` : `${major}${minor}${patch}`
  const version = parsed(`${numbers}${rest}`)
  return {
    operator,
    version,
    isOpen: anyMajor || anyMinor || anyPatch,
    anyMinor: !anyMajor && anyMinor,
    anyPatch: !anyMajor && !anyMinor && anyPatch,
  }
}

/** Parses alternatives (`||`) of constraints. */
function constraints(text: string): Constraint[][] {
  if (text.length > longest) return fail(`improper constraint: it is longer than ${longest} characters`)
  return withoutHyphens(text)
    .split('||')
    .map((part) => {
      const all: Constraint[] = []
      let rest = part.trim()
      while (rest !== '' || all.length === 0) {
        constraintPattern.lastIndex = 0
        const match = constraintPattern.exec(rest)
        if (!match) return fail(`improper constraint: ${part}`)
        all.push(constraint(match))
        const after = rest.slice(match[0].length)
        const separator = /^(?:\s+,?\s*|,\s*)/.exec(after)?.[0] ?? ''
        if (after.trim() !== '' && separator === '') return fail(`improper constraint: ${part}`)
        rest = after.slice(separator.length)
        if (rest === '' && separator.includes(',')) return fail(`improper constraint: ${part}`)
      }
      return all
    })
}

const hyphens = new RegExp(String.raw`(${range})\s+-\s+(${range})`, 'g')

/** `1.2 - 2.3` is `>= 1.2, <= 2.3`. */
const withoutHyphens = (text: string): string =>
  text.replaceAll(hyphens, (_, from: string, ...groups: string[]) => `>= ${from}, <= ${groups[4] ?? ''} `)

function fits(version: Version, { operator, version: wanted, isOpen, anyMinor, anyPatch }: Constraint): boolean {
  if (version.pre !== '' && wanted.pre === '' && (operator !== '!=' || isOpen)) return false
  const order = compared(version, wanted)
  const [major, minor] = [version.numbers[0] - wanted.numbers[0], version.numbers[1] - wanted.numbers[1]]
  switch (operator) {
    case '>':
      if (!isOpen) return order > 0
      if (major !== 0n) return major > 0n
      return anyMinor ? false : anyPatch ? minor > 0n : order > 0
    case '<':
      return order < 0
    case '>=':
    case '=>':
      return order >= 0
    case '<=':
    case '=<':
      return isOpen ? !(major > 0n || (major === 0n && minor > 0n && !anyMinor)) : order <= 0
    case '!=':
      return !isOpen ? order !== 0 : differs(version, wanted, { anyMinor, anyPatch, order })
    case '^':
      return caret(version, wanted, { anyMinor, anyPatch, order })
    default:
      if (operator !== '~' && operator !== '~>' && !isOpen) return order === 0
      if (order < 0) return false
      if (wanted.numbers.every((number) => number === 0n) && !anyMinor && !anyPatch) return true
      return major === 0n && (minor === 0n || anyMinor)
  }
}

interface Open {
  readonly anyMinor: boolean
  readonly anyPatch: boolean
  readonly order: number
}

function differs(version: Version, wanted: Version, { anyMinor, anyPatch, order }: Open): boolean {
  if (version.numbers[0] !== wanted.numbers[0]) return true
  if (anyMinor) return false
  if (version.numbers[1] !== wanted.numbers[1]) return true
  if (!anyPatch && version.numbers[2] !== wanted.numbers[2]) return true
  if (!anyPatch) return order !== 0
  return (version.pre !== '' || wanted.pre !== '') && comparedPre(version.pre.split('.'), wanted.pre.split('.')) !== 0
}

function caret({ numbers }: Version, { numbers: wanted }: Version, { anyMinor, anyPatch, order }: Open): boolean {
  if (order < 0) return false
  if (wanted[0] > 0n || anyMinor) return numbers[0] === wanted[0]
  if (numbers[0] > 0n) return false
  if (wanted[1] > 0n || anyPatch) return numbers[1] === wanted[1]
  return numbers[1] === 0n && numbers[2] === wanted[2]
}

/** Whether a version fulfils a constraint. */
export function semverCompare(constraintText: string, text: string): boolean {
  const alternatives = constraints(constraintText)
  const version = parsed(text)
  return alternatives.some((all) => all.every((one) => fits(version, one)))
}

/** The version as a message with the names of Go's package. */
export function semver(text: string): Value {
  const { numbers, pre, metadata, original } = parsed(text)
  const [major, minor, patch] = numbers.map((number) => new GoInt('uint64', number)) as [GoInt, GoInt, GoInt]
  return new GoStruct(
    '*semver.Version',
    new Map<string, Value>([
      ['Major', major],
      ['Minor', minor],
      ['Patch', patch],
      ['Prerelease', pre],
      ['Metadata', metadata],
      ['Original', original],
    ]),
    `${numbers.join('.')}${pre === '' ? '' : `-${pre}`}${metadata === '' ? '' : `+${metadata}`}`,
  )
}
