/**
 * AuthorizationPolicies as `envoy.config.rbac.v3.RBAC` (docs/resources.md, A6 to A8). Identities come from the peer's certificate
 * (`Principal.authenticated`), tokens from what `jwt_authn` leaves in the metadata under {@link payloadKey}.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import ipaddr from 'ipaddr.js'
import type { PermissionSchema, PolicySchema, PrincipalSchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { HeaderMatcherSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { UriTemplateMatchConfigSchema } from '../../../protocols/gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.js'
import type { MetadataMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/metadata_pb.js'
import type { StringMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ValueMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import { envoyTemplate, isPathTemplate, templatePath, templatePrefix } from '../../config/path-templates.ts'
import { type Condition, isHttpOnly, isWholeText, type Rule } from '../../config/policy-attributes.ts'
import { equalTrustDomains, inTrustDomains, type Pattern, patternOf, patternRegex, type TrustDomains } from '../../policy/patterns.ts'
import { pack } from '../message.ts'

/** Where `jwt_authn` puts the claims of the token that it accepted. */
export const payloadKey = 'payload'
const jwtFilter = 'envoy.filters.http.jwt_authn'

type Permission = MessageInitShape<typeof PermissionSchema>
type Principal = MessageInitShape<typeof PrincipalSchema>
type Policy = MessageInitShape<typeof PolicySchema>
type StringMatch = MessageInitShape<typeof StringMatcherSchema>
type ValueMatch = MessageInitShape<typeof ValueMatcherSchema>
type HeaderMatch = MessageInitShape<typeof HeaderMatcherSchema>
type MetadataMatch = MessageInitShape<typeof MetadataMatcherSchema>

/** What a rule is compiled for. */
export interface RuleTarget {
  readonly protocol: 'http' | 'tcp'
  /** Whether a match lets a request pass: then what cannot be judged must not match, else it must. */
  readonly allows: boolean
  readonly trustDomains: TrustDomains
}

/** One rule as a policy, or undefined where it can never match: an ALLOW rule that looks at what a TCP connection does not have. */
export function rulePolicy(rule: Rule, target: RuleTarget): Policy | undefined {
  const unusable = (condition: Condition) => target.protocol === 'tcp' && isHttpOnly(condition.attribute)
  const conditions = [...rule.from.flat(), ...rule.to.flat(), ...rule.when]
  if (target.allows && conditions.some(unusable)) return undefined
  const usable = (list: readonly Condition[]) => list.filter((condition) => !unusable(condition))
  const when = usable(rule.when)
  const whenSources = when.filter((condition) => !isOfOperation(condition))
  const whenOperations = when.filter(isOfOperation)
  const from = rule.from.length > 0 ? rule.from : [[]]
  const to = rule.to.length > 0 ? rule.to : [[]]
  return {
    principals: from.map((list) => allIds([...usable(list), ...whenSources].map((condition) => principalOf(condition, target)))),
    permissions: to.map((list) => allRules([...usable(list), ...whenOperations].map((condition) => permissionOf(condition, target)))),
  }
}

/** A policy that matches everything. */
export const matchesAll: Policy = {
  permissions: [{ rule: { case: 'any', value: true } }],
  principals: [{ identifier: { case: 'any', value: true } }],
}

/** Whether Envoy sees it in the operation (`Permission`); everything else it sees in the peer and its request (`Principal`). */
function isOfOperation({ attribute }: Condition): boolean {
  return ['host', 'method', 'path', 'port', 'sni'].includes(attribute.type) || (attribute.type === 'ip' && attribute.of === 'destination')
}

const allIds = (ids: Principal[]): Principal =>
  ids.length === 1 && ids[0] ? ids[0] : { identifier: ids.length === 0 ? { case: 'any', value: true } : { case: 'andIds', value: { ids } } }
const anyId = (ids: Principal[]): Principal => (ids.length === 1 && ids[0] ? ids[0] : { identifier: { case: 'orIds', value: { ids } } })
const allRules = (rules: Permission[]): Permission =>
  rules.length === 1 && rules[0] ? rules[0] : { rule: rules.length === 0 ? { case: 'any', value: true } : { case: 'andRules', value: { rules } } }
const anyRule = (rules: Permission[]): Permission => (rules.length === 1 && rules[0] ? rules[0] : { rule: { case: 'orRules', value: { rules } } })

function principalOf(condition: Condition, target: RuleTarget): Principal {
  const matched = anyId(condition.values.flatMap((value) => principalsOf(condition, value, target)))
  return condition.not ? { identifier: { case: 'notId', value: matched as never } } : matched
}

function permissionOf(condition: Condition, { allows }: RuleTarget): Permission {
  const matched = anyRule(condition.values.map((value) => permissionFor(condition, value, condition.not === allows)))
  return condition.not ? { rule: { case: 'notRule', value: matched as never } } : matched
}

function principalsOf({ attribute, not }: Condition, value: string, { trustDomains, allows }: RuleTarget): Principal[] {
  const metadata = (match: MetadataMatch): Principal => ({ identifier: { case: 'metadata', value: match } })
  const peer = (principalName: StringMatch): Principal => ({ identifier: { case: 'authenticated', value: { principalName } } })
  switch (attribute.type) {
    case 'principal':
      return inTrustDomains(value, trustDomains).map((each) => allIds(spiffeMatches(patternOf(each)).map(peer)))
    case 'namespace':
      return [allIds(namespaceMatches(patternOf(value)).map(peer))]
    case 'serviceAccount': {
      const [namespace, name] = value.split('/')
      const account = plain('suffix', `/ns/${namespace}/sa/${name}`)
      return [allIds([peer(plain('prefix', 'spiffe://')), peer(account)])]
    }
    case 'trustDomain':
      return equalTrustDomains(value, trustDomains).map((each) => peer(trustDomainMatch(patternOf(each))))
    case 'ip':
      return [{ identifier: { case: attribute.of === 'client' ? 'remoteIp' : 'directRemoteIp', value: cidrOf(value) } }]
    case 'requestPrincipal':
      return requestPrincipalIds(patternOf(value), metadata)
    case 'claim':
      return [metadata(claimMatch(attribute.path, claimValue(patternOf(value), isWholeText(attribute.path))))]
    case 'header':
      return headerMatches(attribute.name, patternOf(value), allows === not).map((match) => ({ identifier: { case: 'header', value: match } }))
    case 'metadata':
      return [metadata(metadataMatch(attribute.filter, attribute.path, filterValue(value)))]
    default:
      throw new Error(`${attribute.type} belongs to the operation`)
  }
}

/** An exact value without a slash that could part it is nobody's: a policy must say so in some way. */
function requestPrincipalIds(pattern: Pattern, metadata: (match: MetadataMatch) => Principal): Principal[] {
  const pairs = requestPrincipals(pattern).map(([issuer, subject]): Principal => {
    const ids = [claimMatch(['iss'], stringValue(issuer)), claimMatch(['sub'], stringValue(subject))].map(metadata)
    return { identifier: { case: 'andIds', value: { ids } } }
  })
  const nobody: Principal = { identifier: { case: 'notId', value: { identifier: { case: 'any', value: true } } as never } }
  return pairs.length > 0 ? pairs : [nobody]
}

/** `widely`: a match denies. */
function permissionFor({ attribute }: Condition, value: string, widely: boolean): Permission {
  switch (attribute.type) {
    case 'host':
      return anyRule(
        hostMatches(patternOf(value)).map((match) => ({
          rule: { case: 'header', value: { name: ':authority', headerMatchSpecifier: stringSpecifier(match) } },
        })),
      )
    case 'method':
      return { rule: { case: 'header', value: { name: ':method', headerMatchSpecifier: stringSpecifier(stringMatch(patternOf(value))) } } }
    case 'path':
      if (isPathTemplate(value)) return templatePermission(value, widely)
      return pathPermission(stringMatch(patternOf(value)))
    case 'port':
      return { rule: { case: 'destinationPort', value: Number(value) } }
    case 'ip':
      return { rule: { case: 'destinationIp', value: cidrOf(value) } }
    case 'sni':
      return { rule: { case: 'requestedServerName', value: inAnyCase(stringMatch(patternOf(value))) } }
    default:
      throw new Error(`${attribute.type} does not belong to the operation`)
  }
}

const pathPermission = (value: StringMatch): Permission => ({ rule: { case: 'urlPath', value: { rule: { case: 'path', value } } } })

/** As {@link templateMatches} has it. */
function templatePermission(value: string, widely: boolean): Permission {
  const typedConfig = pack(UriTemplateMatchConfigSchema, { pathTemplate: envoyTemplate(value) })
  const template: Permission = { rule: { case: 'uriTemplate', value: { name: 'envoy.path.match.uri_template.uri_template_matcher', typedConfig } } }
  if (!widely) return template
  const prefix = pathPermission({ matchPattern: { case: 'prefix', value: templatePrefix(value) } })
  const plain = pathPermission({ matchPattern: { case: 'safeRegex', value: { regex: templatePath } } })
  return anyRule([template, allRules([prefix, { rule: { case: 'notRule', value: plain as never } }])])
}

const regexMatch = (regex: string): StringMatch => ({ matchPattern: { case: 'safeRegex', value: { regex: `(?s)${regex}` } } })

/**
 * Whether text may stand in one of the regular expressions here: every Envoy takes programs of 100 steps, and what stands around the text takes half of
 * them at most. Of longer text the same is said by plain matchers.
 */
const isShort = ({ text }: { readonly text: string }): boolean =>
  text.length <= 50 && [...text].reduce((steps, each) => steps + stepsOf(each), 0) <= 50

/** Steps of a character that is matched in any case: `k` and `s` have a third form, and others than ASCII are several bytes in each. */
const stepsOf = (character: string): number => (character > '\u007f' ? 12 : /[ks]/i.test(character) ? 4 : 1)

const plain = (kind: 'exact' | 'prefix' | 'suffix' | 'contains', value: string): StringMatch => ({ matchPattern: { case: kind, value } })

/** The same in any case of ASCII. Envoy refuses that of a regular expression, and those that stand for stars need it not. */
const inAnyCase = (match: StringMatch): StringMatch => (match.matchPattern?.case === 'safeRegex' ? match : { ...match, ignoreCase: true })

function stringMatch(pattern: Pattern): StringMatch {
  if (pattern.kind === 'any') return regexMatch('.+')
  if (pattern.kind !== 'exact' && pattern.text === '') return regexMatch('.*')
  return { matchPattern: { case: pattern.kind, value: pattern.text } }
}

/** All of these match what stands behind `spiffe://`. */
function spiffeMatches(pattern: Pattern): StringMatch[] {
  if (pattern.kind === 'exact' || pattern.kind === 'prefix') return [plain(pattern.kind, `spiffe://${pattern.text}`)]
  const regex = `spiffe://${patternRegex(pattern, '.')}`
  return pattern.kind === 'any' || isShort(pattern) ? [regexMatch(regex)] : [plain('prefix', 'spiffe://'), plain('suffix', pattern.text)]
}

/** All of these match an identity of a namespace. */
function namespaceMatches(pattern: Pattern): StringMatch[] {
  const regex = `spiffe://[^/]+/ns/${patternRegex(pattern, '[^/]')}/.*`
  if (pattern.kind === 'any' || isShort(pattern)) return [regexMatch(regex)]
  const part = { exact: `/ns/${pattern.text}/`, prefix: `/ns/${pattern.text}`, suffix: `${pattern.text}/sa/` }[pattern.kind]
  return [plain('prefix', 'spiffe://'), plain('contains', part)]
}

/** A trust domain is what stands before the first slash of an identity. */
function trustDomainMatch(pattern: Pattern): StringMatch {
  if (pattern.kind === 'suffix') return regexMatch(`spiffe://[^/]*${patternRegex({ kind: 'exact', text: pattern.text }, '')}/.*`)
  return plain('prefix', `spiffe://${pattern.kind === 'exact' ? `${pattern.text}/` : pattern.kind === 'prefix' ? pattern.text : ''}`)
}

/** Any of these matches a host. One without a port stands for any port, whatever its case and with or without the final dot of a full name. */
function hostMatches(pattern: Pattern): StringMatch[] {
  const regex = patternRegex(pattern, '.')
  const withPort = pattern.kind !== 'any' && /:\d+$/.test(pattern.text)
  const isWhole = withPort || pattern.kind === 'any' || pattern.kind === 'prefix'
  const whole = isWhole ? `(?i)${regex}` : `(?i)${regex}\\.?(:[0-9]+)?`
  if (pattern.kind === 'any' || isShort(pattern)) return [regexMatch(whole)]
  const { kind, text } = pattern
  const forms = isWhole
    ? [plain(kind, text)]
    : ['', '.'].flatMap((dot) => [plain(kind, text + dot), plain(kind === 'exact' ? 'prefix' : 'contains', `${text}${dot}:`)])
  return forms.map(inAnyCase)
}

const stringSpecifier = (value: StringMatch) => ({ case: 'stringMatch' as const, value })

/**
 * Any of these matches a header. One that is sent several times matches by any of its values: Envoy joins them with commas, or looks at each, by release.
 * Of a value too long for a regular expression, `wide` says whether one that has it anywhere matches, or one with it between commas alone.
 */
function headerMatches(name: string, pattern: Pattern, wide: boolean): HeaderMatch[] {
  if (pattern.kind === 'any') return [{ name, headerMatchSpecifier: { case: 'presentMatch', value: true } }]
  const regex = `(.*,)?[ \\t]*${patternRegex(pattern, '[^,]')}[ \\t]*(,.*)?`
  const matches = isShort(pattern) ? [regexMatch(regex)] : wide ? [plain('contains', pattern.text)] : elementMatches(pattern, [',', ', '], [','])
  return matches.map((match) => ({ name, headerMatchSpecifier: stringSpecifier(match) }))
}

/** Any of these matches text that has one element like the pattern; elements stand behind and before the separators. */
function elementMatches({ kind, text }: Exclude<Pattern, { kind: 'any' }>, before: readonly string[], behind: readonly string[]): StringMatch[] {
  const [starts, ends] = [kind !== 'suffix', kind !== 'prefix']
  return [
    plain(kind, text),
    ...(kind === 'exact' ? behind.map((end) => plain('prefix', text + end)) : []),
    ...(kind === 'exact' ? before.map((start) => plain('suffix', start + text)) : []),
    ...(starts ? before : ['']).flatMap((start) => (ends ? behind : ['']).map((end) => plain('contains', start + text + end))),
  ]
}

/**
 * Pairs of patterns for issuer and subject that together say what one says of `<iss>/<sub>`: either may contain slashes, so
 * each slash may be the one between them. Both must be there for a principal to be.
 */
export function requestPrincipals(pattern: Pattern): [issuer: Pattern, subject: Pattern][] {
  const any: Pattern = { kind: 'any' }
  if (pattern.kind === 'any') return [[any, any]]
  const { kind, text } = pattern
  const pairs: [Pattern, Pattern][] = []
  const part = (partKind: 'exact' | 'prefix' | 'suffix', value: string): Pattern =>
    value === '' && partKind !== 'exact' ? any : { kind: partKind, text: value }
  for (let at = text.indexOf('/'); at >= 0; at = text.indexOf('/', at + 1)) {
    const [issuer, subject] = [text.slice(0, at), text.slice(at + 1)]
    if (kind !== 'suffix' && issuer === '') continue
    if (kind !== 'prefix' && subject === '') continue
    pairs.push([part(kind === 'suffix' ? 'suffix' : 'exact', issuer), part(kind === 'prefix' ? 'prefix' : 'exact', subject)])
  }
  if (kind === 'prefix') pairs.push([part('prefix', text), any])
  if (kind === 'suffix') pairs.push([any, part('suffix', text)])
  return pairs
}

const textValue = (match: StringMatch): ValueMatch => ({ matchPattern: { case: 'stringMatch', value: match } })
const stringValue = (pattern: Pattern): ValueMatch => textValue(stringMatch(pattern))
const listOf = (value: ValueMatch): ValueMatch => ({
  matchPattern: { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value: value as never } } },
})
const eitherValue = (...valueMatchers: ValueMatch[]): ValueMatch => ({
  matchPattern: { case: 'orMatch', value: { valueMatchers: valueMatchers as never[] } },
})

function claimValue(pattern: Pattern, whole: boolean): ValueMatch {
  const isWhole = whole || /\s/.test('text' in pattern ? pattern.text : '')
  return eitherValue(listOf(stringValue(pattern)), ...(isWhole ? [stringValue(pattern)] : wordMatches(pattern).map(textValue)))
}

/** Any of these matches text that has one word like the pattern. */
function wordMatches(pattern: Pattern): StringMatch[] {
  const regex = `(.* )?${patternRegex(pattern, '[^ ]')}( .*)?`
  return pattern.kind === 'any' || isShort(pattern) ? [regexMatch(regex)] : elementMatches(pattern, [' '], [' '])
}

/** `[x]` asks for a list that has x in it. */
function filterValue(value: string): ValueMatch {
  return value.startsWith('[') && value.endsWith(']') ? listOf(stringValue(patternOf(value.slice(1, -1)))) : stringValue(patternOf(value))
}

const claimMatch = (path: readonly string[], value: ValueMatch): MetadataMatch => metadataMatch(jwtFilter, [payloadKey, ...path], value)

function metadataMatch(filter: string, path: readonly string[], value: ValueMatch): MetadataMatch {
  return { filter, path: path.map((key) => ({ segment: { case: 'key', value: key } })), value: value as never }
}

/** `envoy.config.core.v3.CidrRange` of an address or a range. */
function cidrOf(value: string) {
  const [addressPrefix = '', bits] = value.split('/')
  const whole = ipaddr.parse(addressPrefix).kind() === 'ipv6' ? 128 : 32
  return { addressPrefix, prefixLen: bits === undefined ? whole : Number(bits) }
}

/** A name that no user's rule can have: namespaces have no brackets. */
export function policyName(policy: { namespace: string; name: string }, rule: number): string {
  return `ns[${policy.namespace}]-policy[${policy.name}]-rule[${rule}]`
}
