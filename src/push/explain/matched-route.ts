/** Which virtual host and route of a proxy take a request, and why other routes do not: the rules of Envoy, in words. */
import { RE2JS } from 're2js'
import type {
  HeaderMatcher,
  QueryParameterMatcher,
  Route,
  RouteMatch,
  VirtualHost,
} from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { StringMatcher } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import { contain } from '../../model/faults.ts'

/** A request as routes see it. */
export interface RoutedRequest {
  readonly method: string
  readonly scheme: string
  /** The host, with the port if the client sends it. */
  readonly authority: string
  /** Normalized, without the query. */
  readonly path: string
  /** Without the question mark; empty: there is none. */
  readonly query: string
  /** The values of each header in order, by names in lower case. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Whether several values of a header are compared as one text, with commas between them: Envoys before 1.39 do (docs/resources.md, R20). */
  readonly joinsValues: boolean
}

/** Whether an Envoy compares several values of a header as one text; one whose release is not known does not. */
export const joinsValues = ([major, minor]: readonly [number, number] = [1, 39]): boolean => major === 1 && minor < 39

/** A route, and whether all of its conditions hold. */
export interface JudgedRoute {
  readonly route: Route
  readonly holds: boolean
  /** The first condition that does not hold, or what is not known of one that may not; empty: all hold. */
  readonly because: string
}

/** Finds the virtual host of a request: one with its host, then the longest `*.suffix`, the longest `prefix.*`, and `*`. */
export function hostFor(hosts: readonly VirtualHost[], authority: string): { readonly host: VirtualHost; readonly domain: string } | undefined {
  const asked = authority.toLowerCase()
  let best: { host: VirtualHost; domain: string; rank: number } | undefined
  for (const host of hosts)
    for (const domain of host.domains) {
      const rank = rankOf(domain.toLowerCase(), asked)
      if (rank > (best?.rank ?? 0)) best = { host, domain, rank }
    }
  return best
}

/** How closely a domain names a host; 0: it does not. */
function rankOf(domain: string, asked: string): number {
  if (domain === asked) return 3_000_000
  if (domain === '*') return 1
  if (asked.length < domain.length) return 0
  if (domain.startsWith('*') && asked.endsWith(domain.slice(1))) return 2_000_000 + domain.length
  return domain.endsWith('*') && asked.startsWith(domain.slice(0, -1)) ? 1_000_000 + domain.length : 0
}

/** Says of each route of a virtual host whether its conditions hold. The first one of which they do takes the request. */
export const judged = (host: VirtualHost, request: RoutedRequest): JudgedRoute[] =>
  host.routes.map((route) => ({ route, ...verdictOn(route.match, request) }))

interface Verdict {
  readonly holds: boolean
  readonly because: string
}

const held: Verdict = { holds: true, because: '' }
const not = (because: string): Verdict => ({ holds: false, because })
const quoted = (text: string): string => JSON.stringify(text)

function verdictOn(match: RouteMatch | undefined, request: RoutedRequest): Verdict {
  if (!match) return not('it has no match')
  const failed =
    [
      onPath(match, request.path),
      ...match.headers.map((matcher) => onHeader(matcher, request)),
      ...match.queryParameters.map((matcher) => onParameter(matcher, request.query)),
    ].find(({ holds }) => !holds) ?? held
  if (!failed.holds) return failed
  const unknown = [
    ...(match.dynamicMetadata.length > 0 ? ['claims of the token'] : []),
    ...(match.runtimeFraction ? ['the fraction of requests'] : []),
    ...(match.tlsContext ? ['the certificate of the client'] : []),
    ...(match.grpc ? ['whether the request is gRPC'] : []),
  ]
  return unknown.length === 0 ? held : { holds: true, because: `if ${unknown.join(' and ')} match too, which is not known here` }
}

function onPath({ pathSpecifier, caseSensitive }: RouteMatch, path: string): Verdict {
  const cased = (text: string) => (caseSensitive === false ? text.toLowerCase() : text)
  const { case: kind, value } = pathSpecifier
  switch (kind) {
    case 'prefix':
      return cased(path).startsWith(cased(value)) ? held : not(`path ${path} does not begin with ${value}`)
    case 'path':
      return cased(path) === cased(value) ? held : not(`path ${path} is not ${value}`)
    case 'pathSeparatedPrefix':
      return cased(path) === cased(value) || cased(path).startsWith(`${cased(value)}/`) ? held : not(`path ${path} is not ${value} or below it`)
    case 'safeRegex':
      return isMatch(value.regex, path) ? held : not(`path ${path} does not match the regular expression ${value.regex}`)
    default:
      return not(`how it matches paths is not known here (${kind ?? 'no path'})`)
  }
}

/** The parts of a request that Envoy has among its headers. */
const parts: Readonly<Record<string, (request: RoutedRequest) => string>> = {
  ':method': ({ method }) => method,
  ':authority': ({ authority }) => authority,
  ':scheme': ({ scheme }) => scheme,
  ':path': ({ path, query }) => (query === '' ? path : `${path}?${query}`),
}

/** The headers of which Envoy makes one when it reads a request. */
const alwaysOne: ReadonlySet<string> = new Set([
  ...['accept', 'accept-encoding', 'access-control-request-method', 'authorization', 'cache-control', 'content-type', 'grpc-timeout', 'origin'],
  ...['if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'pragma'],
  ...['referer', 'user-agent', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-request-id'],
])

/** The texts of a header that are compared; undefined: the request does not have it. */
function comparedValues(name: string, request: RoutedRequest): readonly string[] | undefined {
  const part = parts[name]
  if (part) return [part(request)]
  const values = request.headers[name.toLowerCase()]
  return values && (request.joinsValues || alwaysOne.has(name.toLowerCase())) ? [values.join(',')] : values
}

function onHeader({ name, headerMatchSpecifier, invertMatch, treatMissingHeaderAsEmpty }: HeaderMatcher, request: RoutedRequest): Verdict {
  const shown = name.startsWith(':') ? name.slice(1) : `header ${name}`
  const given = comparedValues(name, request)
  const { case: kind, value } = headerMatchSpecifier
  if (kind === 'presentMatch' || kind === undefined) {
    const isWanted = (value ?? true) !== invertMatch
    return (given !== undefined) === isWanted ? held : not(`${shown} is ${isWanted ? 'missing' : 'there'}`)
  }
  if (given === undefined && !treatMissingHeaderAsEmpty) return not(`${shown} is missing`)
  const texts = given ?? ['']
  const isOrNot = (holds: boolean, wanted: string) =>
    holds !== invertMatch ? held : not(`${shown} is ${texts.map(quoted).join(' and ')}, ${invertMatch ? 'which is excluded' : 'not'}: ${wanted}`)
  if (kind === 'rangeMatch') {
    const isWithin = (text: string) => /^-?\d+$/.test(text) && BigInt(text) >= value.start && BigInt(text) < value.end
    return isOrNot(texts.some(isWithin), `from ${value.start} to below ${value.end}`)
  }
  if (kind !== 'stringMatch') return not(`how it matches ${shown} is not known here (${kind})`)
  const compared = texts.map((text) => onText(value, text))
  return isOrNot(
    compared.some(({ holds }) => holds),
    compared[0]?.wanted ?? '',
  )
}

function onParameter({ name, queryParameterMatchSpecifier }: QueryParameterMatcher, query: string): Verdict {
  const given = parameterOf(query, name)
  const { case: kind, value } = queryParameterMatchSpecifier
  if (kind === 'presentMatch' || kind === undefined) {
    const isWanted = value ?? true
    return (given !== undefined) === isWanted ? held : not(`query parameter ${name} is ${isWanted ? 'missing' : 'there'}`)
  }
  if (given === undefined) return not(`query parameter ${name} is missing`)
  const { holds, wanted } = onText(value, given)
  return holds ? held : not(`query parameter ${name} is ${quoted(given)}, not: ${wanted}`)
}

/** The first value of a query parameter, as it is sent: Envoy does not decode it. */
function parameterOf(query: string, name: string): string | undefined {
  for (const pair of query.split('&')) {
    const at = pair.indexOf('=')
    if ((at < 0 ? pair : pair.slice(0, at)) === name && pair !== '') return at < 0 ? '' : pair.slice(at + 1)
  }
  return undefined
}

/** Whether a text matches, and what is wanted of it. */
export function onText({ matchPattern, ignoreCase }: StringMatcher, text: string): { readonly holds: boolean; readonly wanted: string } {
  const cased = (one: string) => (ignoreCase ? one.toLowerCase() : one)
  const { case: kind, value } = matchPattern
  switch (kind) {
    case 'exact':
      return { holds: cased(text) === cased(value), wanted: quoted(value) }
    case 'prefix':
      return { holds: cased(text).startsWith(cased(value)), wanted: `a text that begins with ${quoted(value)}` }
    case 'suffix':
      return { holds: cased(text).endsWith(cased(value)), wanted: `a text that ends with ${quoted(value)}` }
    case 'contains':
      return { holds: cased(text).includes(cased(value)), wanted: `a text that contains ${quoted(value)}` }
    case 'safeRegex':
      return { holds: isMatch(value.regex, text), wanted: `a text that matches the regular expression ${value.regex}` }
    default:
      return { holds: false, wanted: `what is not known here (${kind ?? 'no pattern'})` }
  }
}

/** A text with each match of a regular expression replaced, where `\\1` stands for the first group. One that cannot be read matches nothing. */
export const replaced = (regex: string, substitution: string, text: string): string =>
  contain(
    () => {
      const written = substitution.replaceAll('$', '$$$$').replace(/\\(\d)/g, (_, group) => (group === '0' ? '$&' : `$${group}`))
      return RE2JS.compile(regex).matcher(text).replaceAll(written)
    },
    () => text,
  )

/** Whether a regular expression matches a whole text. One that cannot be read matches nothing. */
const isMatch = (regex: string, text: string): boolean =>
  contain(
    () => RE2JS.compile(regex).matches(text),
    () => false,
  )
