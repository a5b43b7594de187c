/**
 * AuthorizationPolicies as `envoy.config.rbac.v3.RBAC` (docs/resources.md, A6 to A8). Identities come from the peer's certificate
 * (`Principal.authenticated`), tokens from what `jwt_authn` leaves in the metadata under {@link payloadKey}.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import ipaddr from 'ipaddr.js'
import type { PermissionSchema, PolicySchema, PrincipalSchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { HeaderMatcherSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { MetadataMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/metadata_pb.js'
import type { StringMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ValueMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import { type Condition, isHttpOnly, isWholeText, type Rule } from '../../config/policy-attributes.ts'
import { inTrustDomains, type Pattern, patternOf, patternRegex, type TrustDomains } from '../../policy/patterns.ts'

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
    permissions: to.map((list) => allRules([...usable(list), ...whenOperations].map(permissionOf))),
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

function permissionOf(condition: Condition): Permission {
  const matched = anyRule(condition.values.map((value) => permissionFor(condition, value)))
  return condition.not ? { rule: { case: 'notRule', value: matched as never } } : matched
}

function principalsOf({ attribute }: Condition, value: string, { trustDomains }: RuleTarget): Principal[] {
  const metadata = (match: MetadataMatch): Principal => ({ identifier: { case: 'metadata', value: match } })
  const peer = (principalName: StringMatch): Principal => ({ identifier: { case: 'authenticated', value: { principalName } } })
  switch (attribute.type) {
    case 'principal':
      return inTrustDomains(value, trustDomains).map((each) => peer(spiffeMatch(patternOf(each))))
    case 'namespace':
      return [peer(regexMatch(`spiffe://[^/]+/ns/${patternRegex(patternOf(value), '[^/]')}/.*`))]
    case 'ip':
      return [{ identifier: { case: attribute.of === 'client' ? 'remoteIp' : 'directRemoteIp', value: cidrOf(value) } }]
    case 'requestPrincipal':
      return requestPrincipalIds(patternOf(value), metadata)
    case 'claim':
      return [metadata(claimMatch(attribute.path, claimValue(patternOf(value), isWholeText(attribute.path))))]
    case 'header':
      return [{ identifier: { case: 'header', value: headerMatch(attribute.name, patternOf(value)) } }]
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

function permissionFor({ attribute }: Condition, value: string): Permission {
  switch (attribute.type) {
    case 'host':
      return {
        rule: { case: 'header', value: { name: ':authority', headerMatchSpecifier: stringSpecifier(regexMatch(hostRegex(patternOf(value)))) } },
      }
    case 'method':
      return { rule: { case: 'header', value: { name: ':method', headerMatchSpecifier: stringSpecifier(stringMatch(patternOf(value))) } } }
    case 'path':
      return { rule: { case: 'urlPath', value: { rule: { case: 'path', value: stringMatch(patternOf(value)) } } } }
    case 'port':
      return { rule: { case: 'destinationPort', value: Number(value) } }
    case 'ip':
      return { rule: { case: 'destinationIp', value: cidrOf(value) } }
    case 'sni':
      return { rule: { case: 'requestedServerName', value: { ...stringMatch(patternOf(value)), ignoreCase: true } } }
    default:
      throw new Error(`${attribute.type} does not belong to the operation`)
  }
}

const regexMatch = (regex: string): StringMatch => ({ matchPattern: { case: 'safeRegex', value: { regex: `(?s)${regex}` } } })

function stringMatch(pattern: Pattern): StringMatch {
  if (pattern.kind === 'any') return regexMatch('.+')
  if (pattern.kind !== 'exact' && pattern.text === '') return regexMatch('.*')
  return { matchPattern: { case: pattern.kind, value: pattern.text } }
}

function spiffeMatch(pattern: Pattern): StringMatch {
  if (pattern.kind === 'exact' || pattern.kind === 'prefix') return { matchPattern: { case: pattern.kind, value: `spiffe://${pattern.text}` } }
  return regexMatch(`spiffe://${patternRegex(pattern, '.')}`)
}

/** A host without a port stands for any port, whatever its case and with or without the final dot of a full name. */
function hostRegex(pattern: Pattern): string {
  const regex = patternRegex(pattern, '.')
  const withPort = pattern.kind !== 'any' && /:\d+$/.test(pattern.text)
  return withPort || pattern.kind === 'any' || pattern.kind === 'prefix' ? `(?i)${regex}` : `(?i)${regex}\\.?(:[0-9]+)?`
}

const stringSpecifier = (value: StringMatch) => ({ case: 'stringMatch' as const, value })

/** A header that is sent several times matches by any of its values: Envoy joins them with commas, or looks at each, by release. */
function headerMatch(name: string, pattern: Pattern): HeaderMatch {
  if (pattern.kind === 'any') return { name, headerMatchSpecifier: { case: 'presentMatch', value: true } }
  return { name, headerMatchSpecifier: stringSpecifier(regexMatch(`(.*,)?[ \\t]*${patternRegex(pattern, '[^,]')}[ \\t]*(,.*)?`)) }
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

const stringValue = (pattern: Pattern): ValueMatch => ({ matchPattern: { case: 'stringMatch', value: stringMatch(pattern) } })
const listOf = (value: ValueMatch): ValueMatch => ({
  matchPattern: { case: 'listMatch', value: { matchPattern: { case: 'oneOf', value: value as never } } },
})
const eitherValue = (...valueMatchers: ValueMatch[]): ValueMatch => ({
  matchPattern: { case: 'orMatch', value: { valueMatchers: valueMatchers as never[] } },
})

function claimValue(pattern: Pattern, whole: boolean): ValueMatch {
  return eitherValue(
    listOf(stringValue(pattern)),
    whole || /\s/.test('text' in pattern ? pattern.text : '') ? stringValue(pattern) : wordValue(pattern),
  )
}

const wordValue = (pattern: Pattern): ValueMatch => ({
  matchPattern: { case: 'stringMatch', value: regexMatch(`(.* )?${patternRegex(pattern, '[^ ]')}( .*)?`) },
})

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
