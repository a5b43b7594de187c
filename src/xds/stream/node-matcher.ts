/** Evaluates node matchers of client status requests (`envoy.type.matcher.v3.NodeMatcher`). */
import { RE2JS } from 're2js'
import type { NodeMatcher } from '../../../protocols/gen/envoy/type/matcher/v3/node_pb.js'
import type { StringMatcher } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { StructMatcher } from '../../../protocols/gen/envoy/type/matcher/v3/struct_pb.js'
import type { ValueMatcher } from '../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import { canonicalMetadata } from '../../names/mesh-names.ts'

/** A matcher that is not accepted; the message says why. */
export class BadMatcher extends Error {}

/** The attributes of a node that matchers test: its id, and its metadata under the mesh's own names. */
export interface MatchedNode {
  readonly id: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/**
 * The maximum number of matchers in one request, their nesting depth and the length of a regular expression. Each matcher is evaluated for
 * every node.
 */
const bounds = { matchers: 100, depth: 8, regex: 100 }

type Test<T> = (value: T) => boolean

/**
 * Returns a test that accepts a node if any matcher accepts its id and all metadata matchers of that matcher accept its metadata. Without
 * matchers every node is accepted. Throws {@link BadMatcher} for a matcher that is not supported or exceeds a limit.
 */
export function nodeTest(matchers: readonly NodeMatcher[]): Test<MatchedNode> {
  if (matchers.length > bounds.matchers) throw new BadMatcher(`node_matchers: more than ${bounds.matchers}`)
  if (matchers.length === 0) return () => true
  const tests = matchers.map(({ nodeId, nodeMetadatas }): Test<MatchedNode> => {
    if (nodeMetadatas.length > bounds.matchers) throw new BadMatcher(`node_metadatas: more than ${bounds.matchers}`)
    const id = nodeId ? stringTest(nodeId) : () => true
    const metadata = nodeMetadatas.map(metadataTest)
    return (node) => id(node.id) && metadata.every((test) => test(node.metadata))
  })
  return (node) => tests.some((test) => test(node))
}

function metadataTest({ path, value }: StructMatcher): Test<MatchedNode['metadata']> {
  const keys = path.map(({ segment }) => {
    if (segment.case !== 'key') throw new BadMatcher('node_metadatas: a segment of a path has no key')
    return segment.value
  })
  if (keys.length === 0 || keys.length > bounds.depth) throw new BadMatcher(`node_metadatas: a path has 1 to ${bounds.depth} keys`)
  const [first = '', ...rest] = keys
  const own = [Object.keys(canonicalMetadata({ [first]: '' }))[0] ?? '', ...rest]
  const test = valueTest(value, bounds.depth)
  return (metadata) => {
    let found: unknown = metadata
    for (const key of own) found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
    return test(found)
  }
}

/** Returns a test of a JSON value; undefined stands for a missing value. */
function valueTest(matcher: ValueMatcher | undefined, depth: number): Test<unknown> {
  if (depth === 0) throw new BadMatcher(`node_metadatas: matchers are nested more than ${bounds.depth} deep`)
  const pattern = matcher?.matchPattern
  switch (pattern?.case) {
    case 'nullMatch':
      return (value) => value === null
    case 'doubleMatch': {
      const { case: kind, value: wanted } = pattern.value.matchPattern
      if (kind === 'exact') return (value) => value === wanted
      if (kind === 'range') return (value) => typeof value === 'number' && value >= wanted.start && value < wanted.end
      throw new BadMatcher('node_metadatas: double_match says neither exact nor range')
    }
    case 'stringMatch': {
      const test = stringTest(pattern.value)
      return (value) => typeof value === 'string' && test(value)
    }
    case 'boolMatch':
      return (value) => value === pattern.value
    case 'presentMatch':
      return (value) => typeof value !== 'object' && (value !== undefined) === pattern.value
    case 'listMatch': {
      if (pattern.value.matchPattern.case !== 'oneOf') throw new BadMatcher('node_metadatas: list_match says no one_of')
      const test = valueTest(pattern.value.matchPattern.value, depth - 1)
      return (value) => Array.isArray(value) && value.some(test)
    }
    case 'orMatch': {
      if (pattern.value.valueMatchers.length > bounds.matchers) throw new BadMatcher(`node_metadatas: or_match has more than ${bounds.matchers}`)
      const tests = pattern.value.valueMatchers.map((alternative) => valueTest(alternative, depth - 1))
      return (value) => tests.some((test) => test(value))
    }
    default:
      throw new BadMatcher('node_metadatas: a matcher of a value says nothing')
  }
}

function stringTest({ matchPattern, ignoreCase }: StringMatcher): Test<string> {
  if (matchPattern.case === 'safeRegex') return regexTest(matchPattern.value.regex)
  if (typeof matchPattern.value !== 'string')
    throw new BadMatcher(`a matcher of text of kind ${JSON.stringify(matchPattern.case ?? 'none')} is not taken`)
  const fold = (text: string) => (ignoreCase ? text.toLowerCase() : text)
  const wanted = fold(matchPattern.value)
  switch (matchPattern.case) {
    case 'exact':
      return (text) => fold(text) === wanted
    case 'prefix':
      return (text) => fold(text).startsWith(wanted)
    case 'suffix':
      return (text) => fold(text).endsWith(wanted)
    case 'contains':
      return (text) => fold(text).includes(wanted)
  }
}

/**
 * Returns a test that the pattern matches the whole text. RE2 takes time proportional to the lengths of pattern and text, and both are
 * bounded.
 */
function regexTest(pattern: string): Test<string> {
  if (pattern.length > bounds.regex) throw new BadMatcher(`a regular expression has more than ${bounds.regex} characters`)
  try {
    const compiled = RE2JS.compile(pattern)
    return (text) => compiled.matches(text)
  } catch (error) {
    throw new BadMatcher(`not a valid RE2 pattern: ${(error as Error).message}`)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
