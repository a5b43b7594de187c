/**
 * Evaluates the policies of a workload for a described request, with reasons, without a proxy (`/debug/authz`). Implements the
 * specification (docs/resources.md, A5 to A8 and M1 to M8); `test/envoy/matrix.test.ts` shows that Envoy does the same.
 */
import type { DescribedRequest } from '../../protocols/messages/described-request.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import type { OptOuts } from '../config/opt-outs.ts'
import { isPathTemplate } from '../config/path-templates.ts'
import { type Attribute, type Condition, isHttpOnly, isWholeText, type Rule, resolveRule } from '../config/policy-attributes.ts'
import { isStandIn } from '../config/stand-in.ts'
import { type Action, type AuthorizationPolicy, actionOf } from '../snapshot/policies.ts'
import { isInRange, ofConnection } from './address-ranges.ts'
import { authorities, hostPatternOf, isDefaultPort } from './authorities.ts'
import { otherValueMatches } from './claim-values.ts'
import { headerMatches } from './header-lists.ts'
import { normalizePath, pathMatches } from './paths.ts'
import { equalTrustDomains, inTrustDomains, type Pattern, patternMatches, patternOf, type TrustDomains } from './patterns.ts'

/** The settings that affect decisions besides the policies. */
export interface EvaluationContext {
  readonly trustDomains: TrustDomains
  readonly normalization: MeshConfig['pathNormalization']['normalization']
  /** Whether the client address may be taken from a header: proxies in front of this one are trusted. */
  readonly trustsForwarded: boolean
  readonly optOuts: OptOuts
  /** The host of the request, if none was given and it was taken from what the proxy serves; empty: it is as it was given. */
  readonly takenHost: string
  /** Called for each comparison with the approximate number of characters to compare; may throw. */
  spend?(characters: number): void
  /** Whether a policy is a dry run: it is evaluated and reported, and not enforced. */
  isDryRun(policy: AuthorizationPolicy): boolean
}

/** The result of one rule. */
export interface Considered {
  /** `<namespace>/<name>`. */
  readonly policy: string
  readonly rule: number
  readonly action: string
  readonly dryRun: boolean
  readonly matched: boolean
  /** The condition that did not match, and what the rule is on that was not given; empty if all matched by what was given. */
  readonly because: string
}

/** The decision on the request. */
export interface Decision {
  readonly verdict: 'allowed' | 'denied' | 'external'
  /** The policy, as `<namespace>/<name>`, and the index of the rule that decided; undefined if none did. */
  readonly policy: string | undefined
  readonly rule: number | undefined
  readonly reason: string
  readonly considered: readonly Considered[]
}

/**
 * Decides by the policies that select the workload, one stage after the other. Tokens are validated by the caller, between CUSTOM and the
 * other stages.
 */
export function decide(
  policies: readonly AuthorizationPolicy[],
  request: DescribedRequest,
  context: EvaluationContext,
  stages: readonly Action[],
): Decision {
  const considered: Considered[] = []
  for (const action of stages) {
    const chosen = policies.filter((policy) => actionOf(policy) === action)
    const matches = chosen.flatMap((policy) => evaluatePolicy(policy, action, request, context))
    considered.push(...matches)
    const first = matches.find(({ matched, dryRun }) => matched && !dryRun)
    const decided = (verdict: Decision['verdict'], reason: string): Decision => ({
      verdict,
      policy: first?.policy,
      rule: first?.rule,
      reason,
      considered,
    })
    if (first && action === 'CUSTOM') return decided('external', `${first.policy} sends it to an external authorizer`)
    if (first && action === 'DENY') return decided('denied', `rule ${first.rule} of ${first.policy} denies it`)
    if (first && action === 'ALLOW') return decided('allowed', `rule ${first.rule} of ${first.policy} allows it`)
    if (action === 'ALLOW' && chosen.some((policy) => !context.isDryRun(policy)))
      return decided('denied', 'there are ALLOW policies, and no rule of theirs matches')
  }
  return { verdict: 'allowed', policy: undefined, rule: undefined, reason: 'no policy speaks against it', considered }
}

function evaluatePolicy(policy: AuthorizationPolicy, action: Action, request: DescribedRequest, context: EvaluationContext): Considered[] {
  const common = { policy: `${policy.namespace}/${policy.name}`, action, dryRun: context.isDryRun(policy) }
  if (isStandIn(policy))
    return [{ ...common, rule: 0, matched: true, because: `the policy is invalid and denies everything until it is mended: ${policy.spec.invalid}` }]
  return (policy.spec.rules ?? []).map((rule, index) => {
    const resolved = resolveRule(rule, policy.namespace)
    const because = mismatch(resolved, action === 'ALLOW', request, context)
    return {
      ...common,
      rule: index,
      matched: because === undefined,
      because: [because ?? [], notJudged(resolved, action, request), notGiven(resolved, request, context)].flat().join('; '),
    }
  })
}

const conditionsOf = ({ from, to, when }: Rule): Condition[] => [...from.flat(), ...to.flat(), ...when]

const attributesOf = (rule: Rule): Attribute[] => conditionsOf(rule).map(({ attribute }) => attribute)

/** What is said of a rule that does not allow, on a TCP connection: its conditions on requests do not count there, so that it takes more than it says. */
function notJudged(rule: Rule, action: Action, { protocol }: DescribedRequest): string[] {
  if (protocol !== 'tcp' || action === 'ALLOW') return []
  const written = [...new Set(conditionsOf(rule).flatMap((condition) => (isHttpOnly(condition.attribute) ? condition.written : [])))]
  return written.length === 0 ? [] : [`on a TCP connection ${written.join(' and ')} ${written.length === 1 ? 'does' : 'do'} not count`]
}

/** Whether a rule is on the address that a connection comes from, or that of the client behind it. */
const isOnSource = (rule: Rule): boolean => attributesOf(rule).some((attribute) => attribute.type === 'ip' && attribute.of !== 'destination')

/** Whether a policy has a rule on the address that a connection comes from, or that of the client behind it. */
export const looksAtSource = (policy: AuthorizationPolicy): boolean =>
  !isStandIn(policy) && (policy.spec.rules ?? []).some((rule) => isOnSource(resolveRule(rule, policy.namespace)))

/** What is said of a rule on something that every request or connection has, and that this one was described without. */
function notGiven(rule: Rule, { protocol, host, sourceIp, remoteIp, destinationPort }: DescribedRequest, { takenHost }: EvaluationContext): string[] {
  const isOn = (type: Attribute['type']) => attributesOf(rule).some((attribute) => attribute.type === type)
  const missing = (what: string) => `no ${what} was given, and this rule is on it: name the ${what}`
  return [
    ...(protocol === 'http' && isOn('host') && (host === '' || takenHost !== '')
      ? [host === '' ? missing('host') : `no host was given: ${takenHost} was taken, which the proxy serves`]
      : []),
    ...(sourceIp === '' && remoteIp === '' && isOnSource(rule) ? [missing('source address')] : []),
    ...(destinationPort === 0 && isOn('port') ? [missing('port')] : []),
  ]
}

/** Returns the reason why a rule does not match; undefined if it does. */
export function mismatch(rule: Rule, allows: boolean, request: DescribedRequest, context: EvaluationContext): string | undefined {
  const unusable = (condition: Condition) => request.protocol === 'tcp' && isHttpOnly(condition.attribute)
  const unusableOne = conditionsOf(rule).find(unusable)
  if (allows && unusableOne) return `${unusableOne.written} cannot be judged on a TCP connection`
  const failing = (list: readonly Condition[]) =>
    list.find((condition) => !unusable(condition) && !conditionHolds(condition, { denies: condition.not === allows, request, context }))
  const failsAll = (lists: readonly (readonly Condition[])[]) => {
    if (lists.length === 0) return undefined
    const found = lists.map(failing)
    return found.every((one) => one !== undefined) ? found[0] : undefined
  }
  const because = failsAll(rule.from) ?? failsAll(rule.to) ?? failing(rule.when)
  return because && `${because.written} ${because.not ? 'matches' : 'is none of'} ${because.values.join(', ')}`
}

/**
 * A request and the settings for its evaluation. `denies`: a match denies the request; ambiguous values then count as a match, otherwise as
 * no match.
 */
interface Evaluation {
  readonly denies: boolean
  readonly request: DescribedRequest
  readonly context: EvaluationContext
}

function conditionHolds({ attribute, values, not }: Condition, evaluation: Evaluation): boolean {
  return values.some((value) => valueMatches(attribute, value, evaluation)) !== not
}

function valueMatches(attribute: Attribute, value: string, evaluation: Evaluation): boolean {
  const { denies, request, context } = evaluation
  const { normalization, optOuts } = context
  const compared = lengthOf(attribute, request)
  context.spend?.(compared + value.length)
  const pattern = patternOf(value)
  switch (attribute.type) {
    case 'principal': {
      const { peer } = request
      return peer !== undefined && inTrustDomains(value, context.trustDomains).some((each) => patternMatches(patternOf(each), peer))
    }
    case 'namespace': {
      const namespace = /^[^/]+\/ns\/([^/]+)\//.exec(request.peer ?? '')?.[1]
      return namespace !== undefined && patternMatches(pattern, namespace)
    }
    case 'serviceAccount': {
      const [account, name] = value.split('/')
      return request.peer?.endsWith(`/ns/${account}/sa/${name}`) === true
    }
    case 'trustDomain': {
      const [domain] = request.peer?.split('/') ?? []
      return domain !== undefined && equalTrustDomains(value, context.trustDomains).some((each) => patternMatches(patternOf(each), domain))
    }
    case 'requestPrincipal': {
      const { iss, sub } = request.claims ?? {}
      const there = typeof iss === 'string' && typeof sub === 'string' && iss !== '' && sub !== ''
      return there && patternMatches(pattern, `${iss}/${sub}`)
    }
    case 'claim':
      return claimMatches(pattern, attribute.path, evaluation)
    case 'ip':
      return addressMatches(value, attribute.of, evaluation)
    case 'port':
      return Number(value) === request.destinationPort
    case 'host':
      return hostMatches(value, request.host, { denies, forms: !optOuts.has('host-forms') })
    case 'method':
      return patternMatches(pattern, request.method)
    case 'path':
    case 'target': {
      const path = normalizePath(request.path, normalization)
      const isPath = pathMatches(value, path, { normalization, denies, forms: !optOuts.has('path-forms') })
      if (attribute.type === 'path') return isPath
      return patternMatches(pattern, path + request.path.slice(/[?#]|$/.exec(request.path)?.index)) || (denies && isPath && !isPathTemplate(value))
    }
    case 'header':
      return headerMatches(pattern, headerOf(attribute.name, request), denies)
    case 'sni':
      return sniMatches(pattern, request.sni.toLowerCase(), denies)
    case 'metadata':
      return metadataMatches(value, valueAt(request.metadata, [attribute.filter, ...attribute.path]), denies && !optOuts.has('claim-types'))
  }
}

/** Returns the approximate number of characters of a request that an attribute compares. */
function lengthOf(attribute: Attribute, request: DescribedRequest): number {
  switch (attribute.type) {
    case 'path':
    case 'target':
      return request.path.length
    case 'header':
      return (headerOf(attribute.name, request) ?? []).reduce((sum, value) => sum + value.length, 0)
    case 'host':
      return request.host.length
    case 'claim':
      return sizeOf(valueAt(request.claims, attribute.path))
    case 'metadata':
      return sizeOf(valueAt(request.metadata, [attribute.filter, ...attribute.path]))
    default:
      return 100
  }
}

/** Returns the approximate number of characters of a value. Lists include their elements, two levels deep, as far as they are compared. */
function sizeOf(value: unknown, depth = 2): number {
  if (typeof value === 'string') return value.length
  return Array.isArray(value) && depth > 0 ? value.reduce((sum: number, one: unknown) => sum + 10 + sizeOf(one, depth - 1), 0) : 10
}

function claimMatches(pattern: Pattern, path: readonly string[], { denies, request, context }: Evaluation): boolean {
  const value = valueAt(request.claims, path)
  const matches = (text: unknown) => typeof text === 'string' && patternMatches(pattern, text)
  if (denies && !context.optOuts.has('claim-types') && otherValueMatches(pattern, value)) return true
  if (Array.isArray(value)) return value.some(matches)
  if (typeof value !== 'string') return false
  // A string is treated as a list of words, unless the pattern itself contains white space.
  return isWholeText(path) || /\s/.test('text' in pattern ? pattern.text : '') ? matches(value) : value.split(' ').some(matches)
}

/** Whether a metadata value matches. `[x]` requires a list that contains x. */
function metadataMatches(wanted: string, found: unknown, otherTypes: boolean): boolean {
  const inList = wanted.startsWith('[') && wanted.endsWith(']')
  const pattern = patternOf(inList ? wanted.slice(1, -1) : wanted)
  const matches = (one: unknown) => (typeof one === 'string' && patternMatches(pattern, one)) || (otherTypes && otherValueMatches(pattern, one))
  return inList ? Array.isArray(found) && found.some(matches) : matches(found)
}

/** Returns the value at a path of nested objects; undefined if there is none. */
function valueAt(start: unknown, path: readonly string[]): unknown {
  let value = start
  for (const key of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/**
 * Whether an address matches. The client address is that of the connection unless a trusted proxy reports another; an untrusted report can
 * only deny a request.
 */
function addressMatches(range: string, of: 'connection' | 'client' | 'destination', { denies, request, context }: Evaluation): boolean {
  const { remoteIp, protocol } = request
  const [sourceIp, destinationIp] = [ofConnection(request.sourceIp), ofConnection(request.destinationIp)]
  if (of !== 'client') return isInRange(range, of === 'connection' ? sourceIp : destinationIp)
  const trusted = context.trustsForwarded || protocol === 'tcp' || context.optOuts.has('forwarded-addresses')
  return trusted ? isInRange(range, remoteIp) : isInRange(range, sourceIp) || (denies && isInRange(range, remoteIp))
}

const has = (form: keyof typeof authorities, text: string): boolean => new RegExp(`^(?:${authorities[form]})$`, 's').test(text)

/**
 * Whether an authority matches a host value: in a plain form, or, if a match denies the request, in any form that a server may read as that
 * host.
 */
function hostMatches(value: string, given: string, { denies, forms }: { denies: boolean; forms: boolean }): boolean {
  const wanted = hostPatternOf(value)
  const authority = given.toLowerCase()
  const wide = denies && forms
  if (wanted.kind === 'any') return wide || authority !== ''
  if (wide && !has('readable', authority)) return true
  if (forms && !wide && !has('plain', authority)) return false
  const [, text = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(authority) ?? []
  if (wanted.kind === 'prefix') {
    const plain = `${text.replace(/\.$/, '')}${port === undefined ? '' : `:${port}`}`
    return authority.startsWith(wanted.host) || (wide && wanted.host.indexOf(':') > 0 && plain.startsWith(wanted.host))
  }
  if (!forms && !has('anyHost', authority)) return false
  const isHost = [text, text.replace(/\.$/, '')].some((each) => (wanted.kind === 'exact' ? each === wanted.host : each.endsWith(wanted.host)))
  if (wanted.port === undefined) return isHost
  if (!wide) return wanted.kind === 'exact' ? authority === `${wanted.host}:${wanted.port}` : authority.endsWith(`${wanted.host}:${wanted.port}`)
  if (port === undefined) return isHost && wanted.host !== '' && isDefaultPort(wanted.port)
  return isHost && (port === wanted.port || !has('plainPort', authority))
}

/**
 * Whether a server name matches. It has no trailing dot (RFC 6066, section 3); if a match denies the connection, a name with the dot
 * matches too.
 */
function sniMatches(pattern: Pattern, sni: string, denies: boolean): boolean {
  const wanted = 'text' in pattern ? { ...pattern, text: pattern.text.toLowerCase() } : pattern
  return patternMatches(wanted, sni) || (denies && patternMatches(wanted, sni.replace(/\.$/, '')))
}

function headerOf(name: string, { headers }: DescribedRequest): readonly string[] | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}
