/** Translates request matches of VirtualServices to `envoy.config.route.v3.RouteMatch` (docs/resources.md, R6, R17, R18). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { HeaderMatcherSchema, RouteMatchSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { MetadataMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/metadata_pb.js'
import type { StringMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ValueMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import type { HttpMatch, HttpRoute, StringMatch } from '../../config/kinds/virtual-service.ts'
import { programSize } from '../../config/program-size.ts'
import { claimPath } from '../../config/shapes/headers.ts'
import { labelsMatch } from '../../model/match.ts'
import { jwtFilterName, payloadKey } from '../security/rbac.ts'

type RouteMatch = MessageInitShape<typeof RouteMatchSchema>
type HeaderMatcher = MessageInitShape<typeof HeaderMatcherSchema>
type StringMatcher = MessageInitShape<typeof StringMatcherSchema>
type MetadataMatcher = MessageInitShape<typeof MetadataMatcherSchema>
type ValueMatcher = MessageInitShape<typeof ValueMatcherSchema>

/** The match of a rule without conditions: every path. */
export const matchAll: RouteMatch = { pathSpecifier: { case: 'prefix', value: '/' } }

/** Returns the route match for one match of a rule, or for a rule without matches. */
export function routeMatch(match: HttpMatch | undefined): RouteMatch {
  if (!match) return matchAll
  const given = Object.entries(match.headers ?? {})
  const without = Object.entries(match.withoutHeaders ?? {})
  const headers = [
    ...given.filter(([name]) => !claimPath(name)).map(([name, value]) => headerMatcher(name, value)),
    ...without
      .filter(([name]) => !claimPath(name))
      .map(([name, value]) => ({
        ...headerMatcher(name, value),
        invertMatch: true,
        treatMissingHeaderAsEmpty: !isPresence(value),
      })),
  ].sort((one, other) => ((one.name as string) < (other.name as string) ? -1 : 1))
  for (const [name, value] of [
    [':method', match.method],
    [':authority', match.authority],
    [':scheme', match.scheme],
  ] as const) {
    if (value) headers.push(headerMatcher(name, value))
  }
  const queryParameters = Object.entries(match.queryParams ?? {}).map(([name, value]) => {
    if (isPresence(value)) return { name, queryParameterMatchSpecifier: { case: 'presentMatch' as const, value: true } }
    return { name, queryParameterMatchSpecifier: { case: 'stringMatch' as const, value: stringMatcher(value) } }
  })
  return {
    pathSpecifier: pathSpecifier(match.uri),
    ...(match.uri && match.ignoreUriCase ? { caseSensitive: false } : {}),
    headers,
    queryParameters,
    dynamicMetadata: [
      ...given.flatMap(([name, value]) => claimMatcher(claimPath(name), value, false)),
      ...without.flatMap(([name, value]) => claimMatcher(claimPath(name), value, true)),
    ],
  }
}

/** Returns the match of a claim of the token that `jwt_authn` has verified. The claim may be a string or a list of strings. */
function claimMatcher(path: readonly string[] | undefined, value: StringMatch, invert: boolean): MetadataMatcher[] {
  if (!path) return []
  const text = { matchPattern: { case: 'stringMatch' as const, value: stringMatcher(value) } }
  const one: ValueMatcher = isPresence(value)
    ? { matchPattern: { case: 'presentMatch', value: true } }
    : {
        matchPattern: {
          case: 'orMatch',
          value: { valueMatchers: [text, { matchPattern: { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value: text } } } }] },
        },
      }
  return [{ filter: jwtFilterName, path: [payloadKey, ...path].map((key) => ({ segment: { case: 'key', value: key } })), value: one, invert }]
}

function pathSpecifier(uri: StringMatch | undefined): RouteMatch['pathSpecifier'] {
  if (uri?.exact !== undefined) return { case: 'path', value: uri.exact }
  if (uri?.regex !== undefined) return { case: 'safeRegex', value: { regex: uri.regex } }
  return { case: 'prefix', value: uri?.prefix ?? '/' }
}

/** Whether a match only requires presence: it has no condition, or the regular expression `*`. */
const isPresence = (value: StringMatch): boolean =>
  value.regex === '*' || (value.exact === undefined && value.prefix === undefined && value.regex === undefined)

function headerMatcher(name: string, value: StringMatch): HeaderMatcher {
  if (isPresence(value)) return { name, headerMatchSpecifier: { case: 'presentMatch', value: true } }
  return { name, headerMatchSpecifier: { case: 'stringMatch', value: stringMatcher(value) } }
}

/** Returns a string matcher. An empty prefix matches everything. */
export function stringMatcher(value: StringMatch): StringMatcher {
  if (value.exact !== undefined) return { matchPattern: { case: 'exact', value: value.exact } }
  if (value.regex !== undefined) return { matchPattern: { case: 'safeRegex', value: { regex: value.regex } } }
  return value.prefix ? { matchPattern: { case: 'prefix', value: value.prefix } } : { matchPattern: { case: 'safeRegex', value: { regex: '.*' } } }
}

const sizes = new WeakMap<object, number>()

/** Returns the program size of the regular expression in an object of a VirtualService; 0 if it has none. Cached by object. */
function sizeOf(holder: object, regex: string | undefined): number {
  if (regex === undefined || regex === '*') return 0
  const size = sizes.get(holder) ?? programSize(regex)
  sizes.set(holder, size)
  return size
}

/** Returns the reason why proxies with a maximum program size of `largest` refuse a string match; undefined if they accept it. */
export function tooLarge(value: StringMatch | undefined, field: string, largest: number): string | undefined {
  const size = value ? sizeOf(value, value.regex) : 0
  return size > largest ? programFault(field, size, largest) : undefined
}

/** Returns the reason why such proxies refuse the rewrite of a rule or one of its matches; undefined if they accept both. */
export function tooLargeIn(rule: HttpRoute, match: HttpMatch | undefined, largest: number): string | undefined {
  const rewrite = rule.rewrite?.uriRegexRewrite
  const size = rewrite ? sizeOf(rewrite, rewrite.match) : 0
  if (size > largest) return programFault('rewrite.uriRegexRewrite.match', size, largest)
  for (const field of ['uri', 'scheme', 'method', 'authority'] as const) {
    const reason = tooLarge(match?.[field], `match.${field}.regex`, largest)
    if (reason) return reason
  }
  for (const field of ['headers', 'withoutHeaders', 'queryParams'] as const)
    for (const [name, value] of Object.entries(match?.[field] ?? {})) {
      const reason = tooLarge(value, `match.${field}[${name}].regex`, largest)
      if (reason) return reason
    }
  return undefined
}

const programFault = (field: string, size: number, largest: number): string =>
  `${field}: a pattern of program size ${size}; a proxy without another bound in its bootstrap takes ${largest} (re2.max_program_size.error_level)`

/** The attributes of a match that are known to the control plane: where the rule applies, and who calls. */
export interface Place {
  /** `mesh`, or the names of the Gateways (`<namespace>/<name>`) that the port belongs to. */
  readonly gateways: ReadonlySet<string>
  readonly port: number
  readonly sourceLabels: Readonly<Record<string, string>>
  readonly sourceNamespace: string
}

/**
 * Whether a request match applies at a place. If the match names gateways, attributes of the caller are ignored (docs/resources.md, R6).
 */
export const appliesToRequests = (match: HttpMatch, place: Place): boolean =>
  applies(match.gateways?.length ? { port: match.port, gateways: match.gateways } : match, place)

/** A match without the part that the control plane evaluates. */
export const withoutPlace = ({ port: _, gateways: __, sourceLabels: ___, sourceNamespace: ____, ...rest }: HttpMatch): HttpMatch => rest

/** Whether the part of a match that the control plane evaluates holds at a place. */
export function applies(
  match: { readonly [Field in 'port' | 'gateways' | 'sourceLabels' | 'sourceNamespace']?: HttpMatch[Field] | undefined },
  place: Place,
): boolean {
  if (match.port !== undefined && match.port !== place.port) return false
  if (match.sourceNamespace && match.sourceNamespace !== place.sourceNamespace) return false
  if (!labelsMatch(match.sourceLabels, place.sourceLabels)) return false
  return !match.gateways?.length || match.gateways.some((gateway) => place.gateways.has(gateway))
}

/** Whether a match covers every request, so that later rules are never reached. */
export function isCatchAll(match: HttpMatch | undefined): boolean {
  if (!match) return true
  const { name: _, uri, ...conditions } = match
  const anyPath = !uri || uri.prefix === '/' || uri.prefix === '' || uri.regex === '.*'
  return anyPath && Object.values(conditions).every((value) => value === undefined || (Array.isArray(value) && value.length === 0))
}
