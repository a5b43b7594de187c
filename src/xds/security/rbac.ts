/**
 * Translates AuthorizationPolicies to `envoy.config.rbac.v3.RBAC` (docs/resources.md, A6 to A8). Identities come from the peer's
 * certificate (`Principal.authenticated`), claims from the metadata that `jwt_authn` writes under {@link payloadKey}.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { PolicySchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { MetadataMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/metadata_pb.js'
import type { ValueMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import type { MeshConfig } from '../../config/mesh-config.ts'
import type { OptOuts } from '../../config/opt-outs.ts'
import { isPathTemplate } from '../../config/path-templates.ts'
import { type Condition, isHttpOnly, isWholeText, type Rule } from '../../config/policy-attributes.ts'
import { type AddressRange, rangesOf } from '../../policy/address-ranges.ts'
import { looksLikeBoolean, looksLikeNumber, numberOf } from '../../policy/claim-values.ts'
import { equalTrustDomains, inTrustDomains, type Pattern, patternOf, patternRegex, type TrustDomains } from '../../policy/patterns.ts'
import { headerIds } from './header-matchers.ts'
import { hostPermission } from './host-matchers.ts'
import {
  allIds,
  allRules,
  anyId,
  anyRule,
  headerRule,
  notId,
  notRule,
  type Permission,
  type Principal,
  regexMatch,
  type StringMatch,
  stringMatch,
  textMatch,
} from './matchers.ts'
import { pathPermission } from './path-matchers.ts'

/** The metadata key under which `jwt_authn` stores the claims of an accepted token. */
export const payloadKey = 'payload'
/** The filter that validates JWTs, also the namespace of its metadata. */
export const jwtFilterName = 'envoy.filters.http.jwt_authn'

type Policy = MessageInitShape<typeof PolicySchema>
type ValueMatch = MessageInitShape<typeof ValueMatcherSchema>
type MetadataMatch = MessageInitShape<typeof MetadataMatcherSchema>

/** Parameters of the translation of rules. */
export interface RuleTarget {
  readonly protocol: 'http' | 'tcp'
  /** Whether a match allows the request. Then a condition that cannot be evaluated must not match, otherwise it must. */
  readonly allows: boolean
  readonly trustDomains: TrustDomains
  readonly normalization: MeshConfig['pathNormalization']['normalization'] | undefined
  /**
   * Whether the client address may be taken from a header: proxies in front of this one are trusted, or this proxy takes the address from
   * the connection.
   */
  readonly trustsForwarded: boolean
  /** Policy checks that are disabled. */
  readonly optOuts: OptOuts
}

/** Returns one rule as a policy; undefined if it can never match: an ALLOW rule with a condition that a TCP connection cannot meet. */
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

/** Whether Envoy evaluates a condition on the operation (`Permission`), and not on the peer and its request (`Principal`). */
function isOfOperation({ attribute }: Condition): boolean {
  return ['host', 'method', 'path', 'target', 'port', 'sni'].includes(attribute.type) || (attribute.type === 'ip' && attribute.of === 'destination')
}

/** Whether a match of a condition denies the request. Ambiguous values then count as a match, otherwise as no match. */
const denies = ({ not }: Condition, { allows }: RuleTarget): boolean => not === allows

function principalOf(condition: Condition, target: RuleTarget): Principal {
  const { attribute, values } = condition
  const matched =
    attribute.type === 'header'
      ? headerIds(attribute.name, values.map(patternOf), denies(condition, target))
      : anyId(values.flatMap((value) => principalsOf(condition, value, target)))
  return condition.not ? notId(matched) : matched
}

function permissionOf(condition: Condition, target: RuleTarget): Permission {
  const { attribute, values } = condition
  const { optOuts, normalization } = target
  const comparison = { denies: denies(condition, target), normalization }
  const paths = (of: readonly string[]) => pathPermission(of, { ...comparison, forms: !optOuts.has('path-forms') })
  const matched =
    attribute.type === 'host'
      ? hostPermission(values, { ...comparison, forms: !optOuts.has('host-forms') })
      : attribute.type === 'path'
        ? paths(values)
        : attribute.type === 'target' && comparison.denies
          ? anyRule([...values.flatMap((value) => permissionsFor(condition, value, true)), paths(values.filter((value) => !isPathTemplate(value)))])
          : anyRule(values.flatMap((value) => permissionsFor(condition, value, comparison.denies)))
  return condition.not ? notRule(matched) : matched
}

function principalsOf(condition: Condition, value: string, target: RuleTarget): Principal[] {
  const { attribute } = condition
  const { trustDomains, optOuts } = target
  const metadata = (match: MetadataMatch): Principal => ({ identifier: { case: 'metadata', value: match } })
  const otherTypes = denies(condition, target) && !optOuts.has('claim-types')
  switch (attribute.type) {
    case 'principal':
      return inTrustDomains(value, trustDomains).map((each) => peerId(patternOf(each)))
    case 'namespace':
      return [namespaceId(patternOf(value))]
    case 'serviceAccount': {
      const [namespace, name] = value.split('/')
      return [allIds([peer(textMatch('prefix', 'spiffe://')), peer(textMatch('suffix', `/ns/${namespace}/sa/${name}`))])]
    }
    case 'trustDomain':
      return equalTrustDomains(value, trustDomains).map((each) => peer(trustDomainMatch(patternOf(each))))
    case 'ip':
      return attribute.of === 'client'
        ? rangesOf(value, true).flatMap((range) => clientIds(range, condition, target))
        : rangesOf(value, false).map((range) => addressId('directRemoteIp', range))
    case 'requestPrincipal':
      return requestPrincipalIds(patternOf(value), metadata)
    case 'claim':
      return [metadata(claimMatch(attribute.path, claimValue(patternOf(value), isWholeText(attribute.path), otherTypes)))]
    case 'metadata':
      return [metadata(metadataMatch(attribute.filter, attribute.path, filterValue(value, otherTypes)))]
    default:
      throw new Error(`${attribute.type} belongs to the operation`)
  }
}

const addressId = (identifier: 'directRemoteIp' | 'remoteIp', value: AddressRange): Principal => ({ identifier: { case: identifier, value } })

/**
 * Returns principals for the client address. If no proxy is trusted, a client can write anything into the header: the address of the
 * connection decides, and the address in the header can only deny a request.
 */
function clientIds(range: AddressRange, condition: Condition, target: RuleTarget): Principal[] {
  const said = addressId('remoteIp', range)
  if (target.trustsForwarded || target.protocol === 'tcp' || target.optOuts.has('forwarded-addresses')) return [said]
  const own = addressId('directRemoteIp', range)
  return denies(condition, target) ? [said, own] : [own]
}

const peer = (principalName: StringMatch): Principal => ({ identifier: { case: 'authenticated', value: { principalName } } })

/** Matches a SPIFFE id by a pattern without the scheme. */
function peerId(pattern: Pattern): Principal {
  const scheme = 'spiffe://'
  if (pattern.kind === 'any') return peer(textMatch('prefix', scheme))
  if (pattern.kind !== 'suffix') return peer(textMatch(pattern.kind, scheme + pattern.text))
  return allIds([peer(textMatch('prefix', scheme)), ...(pattern.text === '' ? [] : [peer(textMatch('suffix', pattern.text))])])
}

/** Matches the trust domain of a SPIFFE id: the part before the first slash. */
function trustDomainMatch(pattern: Pattern): StringMatch {
  if (pattern.kind === 'suffix') return regexMatch(`spiffe://[^/]*${patternRegex({ kind: 'exact', text: pattern.text }, '')}/.*`)
  return textMatch('prefix', `spiffe://${pattern.kind === 'exact' ? `${pattern.text}/` : pattern.kind === 'prefix' ? pattern.text : ''}`)
}

/**
 * The maximum length in bytes of a name that is put into a regular expression. Namespaces of the orchestrator have at most 63 characters.
 */
const longestNamespace = 63

/** Matches the namespace in a SPIFFE id, which consists of ASCII characters. */
function namespaceId(pattern: Pattern): Principal {
  const shape = (name: string) => peer(regexMatch(`spiffe://[!-.0-~]+/ns/${name}/[!-~]*`))
  if (pattern.kind === 'any' || new TextEncoder().encode(pattern.text).length <= longestNamespace) return shape(patternRegex(pattern, '[!-.0-~]'))
  const part = { exact: `/ns/${pattern.text}/`, prefix: `/ns/${pattern.text}`, suffix: `${pattern.text}/sa/` }[pattern.kind]
  return allIds([peer(textMatch('contains', part)), shape('[!-.0-~]+')])
}

/**
 * Returns principals for `<iss>/<sub>`. A value that no slash can divide matches nobody, which must be expressed as a principal that never
 * matches.
 */
function requestPrincipalIds(pattern: Pattern, metadata: (match: MetadataMatch) => Principal): Principal[] {
  const pairs = requestPrincipals(pattern).map(([issuer, subject]): Principal => {
    const ids = [claimMatch(['iss'], stringValue(issuer)), claimMatch(['sub'], stringValue(subject))].map(metadata)
    return { identifier: { case: 'andIds', value: { ids } } }
  })
  return pairs.length > 0 ? pairs : [notId(allIds([]))]
}

function permissionsFor({ attribute }: Condition, value: string, wide: boolean): Permission[] {
  switch (attribute.type) {
    case 'method':
      return [headerRule(':method', stringMatch(patternOf(value)))]
    case 'target':
      return [headerRule(':path', stringMatch(patternOf(value)))]
    case 'port':
      return [{ rule: { case: 'destinationPort', value: Number(value) } }]
    case 'ip':
      return rangesOf(value, false).map((range) => ({ rule: { case: 'destinationIp', value: range } }))
    case 'sni':
      return sniPatterns(patternOf(value), wide).map((pattern) => ({ rule: { case: 'requestedServerName', value: stringMatch(pattern, true) } }))
    default:
      throw new Error(`${attribute.type} does not belong to the operation`)
  }
}

/**
 * Returns the patterns for a server name, which has no trailing dot (RFC 6066, section 3). If a match denies the connection, a name with
 * the dot matches too.
 */
const sniPatterns = (pattern: Pattern, wide: boolean): Pattern[] =>
  wide && (pattern.kind === 'exact' || pattern.kind === 'suffix') ? [pattern, { ...pattern, text: `${pattern.text}.` }] : [pattern]

/**
 * Returns pairs of patterns for issuer and subject that together are equivalent to one pattern for `<iss>/<sub>`. Either may contain
 * slashes, so each slash may be the separator. A request principal exists only if both claims do.
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
const eitherValue = (...valueMatchers: ValueMatch[]): ValueMatch =>
  valueMatchers.length === 1 && valueMatchers[0]
    ? valueMatchers[0]
    : { matchPattern: { case: 'orMatch', value: { valueMatchers: valueMatchers as never[] } } }

/** Matches a claim that is a string or contains it in a list; with `otherTypes` also a claim of another type with the same text. */
function claimValue(pattern: Pattern, whole: boolean, otherTypes: boolean): ValueMatch {
  const isWhole = whole || /\s/.test('text' in pattern ? pattern.text : '')
  const texts = [listOf(stringValue(pattern)), ...(isWhole ? [stringValue(pattern)] : wordValues(pattern))]
  return eitherValue(...texts, ...(otherTypes ? otherValues(pattern) : []))
}

/** Matches one of the space-separated words of a string. */
function wordValues(pattern: Pattern): ValueMatch[] {
  const matching = (match: StringMatch): ValueMatch => ({ matchPattern: { case: 'stringMatch', value: match } })
  if (pattern.kind === 'any' || (pattern.kind !== 'exact' && pattern.text === '')) return [matching(regexMatch('.*[^ ].*'))]
  const { kind, text } = pattern
  const first = kind === 'suffix' ? [] : [textMatch('prefix', kind === 'exact' ? `${text} ` : text)]
  const last = kind === 'prefix' ? [] : [textMatch('suffix', kind === 'exact' ? ` ${text}` : text)]
  const between = textMatch('contains', `${kind === 'suffix' ? '' : ' '}${text}${kind === 'prefix' ? '' : ' '}`)
  return [...(kind === 'exact' ? [textMatch('exact', text)] : []), ...first, ...last, between].map(matching)
}

/** Matches values of other types by their text: booleans in any case, numbers by value, and both in a list or in a list within a list. */
function otherValues(pattern: Pattern): ValueMatch[] {
  if (pattern.kind === 'any') return [{ matchPattern: { case: 'presentMatch', value: true } }]
  const scalars = [...[true, false].filter((one) => looksLikeBoolean(pattern, one)).map(booleanValue), ...numberValues(pattern)]
  const nested = listOf(eitherValue(listOf(eitherValue(stringValue(pattern), ...scalars)), ...scalars))
  return [...scalars, nested]
}

const booleanValue = (value: boolean): ValueMatch => ({ matchPattern: { case: 'boolMatch', value } })

function numberValues(pattern: Pattern): ValueMatch[] {
  if (!looksLikeNumber(pattern)) return []
  const exact = pattern.kind === 'exact' ? numberOf(pattern.text) : undefined
  const whole = { start: -Number.MAX_VALUE, end: Number.MAX_VALUE }
  return [
    {
      matchPattern: {
        case: 'doubleMatch',
        value: { matchPattern: exact !== undefined ? { case: 'exact', value: exact } : { case: 'range', value: whole } },
      },
    },
  ]
}

/** Matches a metadata value. `[x]` requires a list that contains x. */
function filterValue(value: string, otherTypes: boolean): ValueMatch {
  const inList = value.startsWith('[') && value.endsWith(']')
  const pattern = patternOf(inList ? value.slice(1, -1) : value)
  const either = eitherValue(stringValue(pattern), ...(otherTypes ? otherValues(pattern) : []))
  return inList ? listOf(either) : otherTypes ? either : stringValue(pattern)
}

const claimMatch = (path: readonly string[], value: ValueMatch): MetadataMatch => metadataMatch(jwtFilterName, [payloadKey, ...path], value)

function metadataMatch(filter: string, path: readonly string[], value: ValueMatch): MetadataMatch {
  return { filter, path: path.map((key) => ({ segment: { case: 'key', value: key } })), value: value as never }
}

/** Returns the name of a rule in the RBAC filter. It cannot collide with other names, since namespaces contain no brackets. */
export function policyName(policy: { namespace: string; name: string }, rule: number): string {
  return `ns[${policy.namespace}]-policy[${policy.name}]-rule[${rule}]`
}
