/** Regular expressions of templates, in the syntax of RE2. None of them becomes a regular expression of JavaScript. */
import { RE2JS } from 're2js'
import type { Budget } from '../budget.ts'
import { type Functions, type TemplateFunction, templateFunction } from '../function.ts'
import { fail, listOf, nilList } from '../values.ts'

/** The largest expression, in characters and in instructions of its program. */
const largest = { text: 4096, program: 10_000 }
/** The share of an instruction in one unit of work, for each character that is looked at. */
const instructionsAtOnce = 2
/** The same for each search behind a match, which may look at all that is left of the text, and mostly does not. */
const instructionsBehind = 6

/** A match: positions of the whole and of each group, -1 where a group took no part. */
type Match = readonly (readonly [from: number, to: number])[]

function compiled(budget: Budget, text: string, against: string): RE2JS {
  if (text.length > largest.text) return fail(`a regular expression is longer than ${largest.text} characters`)
  if (!text.isWellFormed()) return fail('error parsing regexp: invalid UTF-8')
  let pattern: RE2JS
  try {
    pattern = RE2JS.compile(text)
  } catch (error) {
    return fail(`error parsing regexp: ${String((error as Error).message).slice(0, 200)}`)
  }
  const size = pattern.programSize()
  if (size > largest.program) return fail(`a regular expression has more than ${largest.program} instructions`)
  // Looking behind is no part of RE2, and does not take linear time.
  if (/\(\?<[=!]/.test(text)) return fail('error parsing regexp: invalid or unsupported Perl syntax: (?<')
  budget.spend(size + Math.ceil((against.length * size) / instructionsAtOnce))
  return pattern
}

/** Finds matches as Go does: an empty one directly behind another match does not count. */
function matches(budget: Budget, pattern: RE2JS, text: string, most: number): Match[] {
  const matcher = pattern.matcher(text)
  const all: Match[] = []
  const size = pattern.programSize()
  let before = -1
  let at = 0
  while (all.length < most && at <= text.length && matcher.find(at)) {
    const [from, to] = [matcher.start(), matcher.end()]
    if (from !== to || from !== before) {
      budget.make(1)
      const groups: [number, number][] = []
      for (let group = 0; group <= matcher.groupCount(); group++) groups.push([matcher.start(group), matcher.end(group)])
      all.push(groups)
    }
    before = to
    budget.spend(Math.ceil(((text.length - to) * size) / instructionsBehind))
    at = to > from ? to : from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1)
  }
  return all
}

const whole = (text: string, [range]: Match): string => text.slice(range?.[0], range?.[1])

/** Replaces all matches by what `by` makes of each. */
function replaced(budget: Budget, pattern: RE2JS, text: string, by: (match: Match) => string): string {
  const parts: string[] = []
  let [at, length] = [0, 0]
  for (const match of matches(budget, pattern, text, Number.POSITIVE_INFINITY)) {
    const [from, to] = match[0] as readonly [number, number]
    const piece = by(match)
    length += from - at + piece.length
    budget.text(length)
    parts.push(text.slice(at, from), piece)
    at = to
  }
  return parts.join('') + text.slice(at)
}

/** Returns what a replacement says for a match: `$1`, `${name}`, `$$`. */
function expanded(replacement: string, { text, match, names }: { text: string; match: Match; names: Readonly<Record<string, number>> }): string {
  return replacement.replaceAll(
    /\$(?:\$|([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)\})/gu,
    (found, bare: string | undefined, braced: string | undefined) => {
      const name = bare ?? braced
      if (name === undefined) return found === '$$' ? '$' : found
      const group = /^\d+$/.test(name) && !/^0\d/.test(name) ? Number(name) : Object.hasOwn(names, name) ? (names[name] as number) : -1
      const [from, to] = match[group] ?? [-1, -1]
      return from < 0 ? '' : text.slice(from, to)
    },
  )
}

/** Splits a text between matches, into `most` parts at most; all when it is negative. */
function split(budget: Budget, pattern: RE2JS, text: string, most: number, source: string): string[] {
  if (most === 0) return []
  if (source !== '' && text === '') return ['']
  const parts: string[] = []
  let [from, to] = [0, 0]
  for (const match of matches(budget, pattern, text, most < 0 ? Number.POSITIVE_INFINITY : most)) {
    if (most > 0 && parts.length === most - 1) break
    const [start, end] = match[0] as readonly [number, number]
    to = start
    if (end !== 0) parts.push(text.slice(from, to))
    from = end
  }
  if (to !== text.length) parts.push(text.slice(from))
  return parts
}

/** Go's list of no matches is nil. */
const stringsOf = (texts: readonly string[]) => (texts.length === 0 ? nilList('[]string') : listOf('[]string', texts))

const limit = (most: number): number => (most < 0 ? Number.POSITIVE_INFINITY : most)

const alike: Readonly<Record<string, TemplateFunction>> = {
  regexFind: templateFunction(['string', 'string'], (budget, regex, text) => {
    const [found] = matches(budget, compiled(budget, regex, text), text, 1)
    return found ? whole(text, found) : ''
  }),
  regexFindAll: templateFunction(['string', 'string', 'int'], (budget, regex, text, most) =>
    stringsOf(matches(budget, compiled(budget, regex, text), text, limit(most)).map((match) => whole(text, match))),
  ),
  regexReplaceAll: templateFunction(['string', 'string', 'string'], (budget, regex, text, replacement) => {
    const pattern = compiled(budget, regex, text)
    const names = pattern.namedGroups() as Readonly<Record<string, number>>
    return replaced(budget, pattern, text, (match) => {
      budget.spend(replacement.length)
      return expanded(replacement, { text, match, names })
    })
  }),
  regexReplaceAllLiteral: templateFunction(['string', 'string', 'string'], (budget, regex, text, replacement) =>
    replaced(budget, compiled(budget, regex, text), text, () => replacement),
  ),
  regexSplit: templateFunction(['string', 'string', 'int'], (budget, regex, text, most) => {
    const pattern = compiled(budget, regex, text)
    return most === 0 ? nilList('[]string') : listOf('[]string', split(budget, pattern, text, most, regex))
  }),
}

const isMatch = (budget: Budget, regex: string, text: string): boolean => matches(budget, compiled(budget, regex, text), text, 1).length > 0

/** The functions by name. */
export const regexFunctions: Functions = new Map<string, TemplateFunction>([
  ...Object.entries(alike).flatMap(([name, called]): [string, TemplateFunction][] => [
    [name, called],
    [`mustR${name.slice(1)}`, called],
  ]),
  [
    'regexMatch',
    templateFunction(['string', 'string'], (budget, regex, text) => {
      try {
        return isMatch(budget, regex, text)
      } catch (error) {
        // An expression that is none matches nothing, as in Go; a bound that is exceeded is an error.
        if ((error as Error).message.startsWith('error parsing regexp')) return false
        throw error
      }
    }),
  ],
  ['mustRegexMatch', templateFunction(['string', 'string'], isMatch)],
  ['regexQuoteMeta', templateFunction(['string'], (_, text) => text.replaceAll(/[\\.+*?()|[\]{}^$]/g, (letter) => `\\${letter}`))],
])
