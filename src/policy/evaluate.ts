/**
 * What the policies of a workload say of a described request, and why, without a proxy (`/debug/authz`). Says what the
 * specification says (docs/resources.md, A5 to A8); that Envoy does the same is what `test/envoy/matrix.test.ts` shows.
 */
import ipaddr from 'ipaddr.js'
import type { MeshConfig } from '../config/mesh-config.ts'
import { isPathTemplate, templateMatches } from '../config/path-templates.ts'
import { type Attribute, type Condition, isHttpOnly, isWholeText, type Rule, resolveRule } from '../config/policy-attributes.ts'
import { isStandIn } from '../config/stand-in.ts'
import { type Action, type AuthorizationPolicy, actionOf } from '../snapshot/policies.ts'
import { normalizePath } from './paths.ts'
import { equalTrustDomains, inTrustDomains, type Pattern, patternMatches, patternOf, type TrustDomains } from './patterns.ts'

/** A request, or a connection that carries none, as a proxy would see it. */
export interface DescribedRequest {
  readonly protocol: 'http' | 'tcp'
  readonly method: string
  /** `:authority`. */
  readonly host: string
  /** As it was sent, query included. */
  readonly path: string
  /** Lower-case names; several values of a name in order. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Address of the connection's other end, and of the client it speaks for. */
  readonly sourceIp: string
  readonly remoteIp: string
  readonly destinationIp: string
  readonly destinationPort: number
  readonly sni: string
  /** SPIFFE identity of the peer's certificate without its scheme; undefined without mutual TLS. */
  readonly peer: string | undefined
  /** Claims of the token that was accepted; undefined without one. */
  readonly claims: Readonly<Record<string, unknown>> | undefined
  /** Dynamic metadata that filters of Envoy's left, by filter. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** What decides beside the policies. */
export interface Circumstances {
  readonly trustDomains: TrustDomains
  readonly normalization: MeshConfig['pathNormalization']['normalization']
  /** Whether a policy only tells what it would do. */
  isDryRun(policy: AuthorizationPolicy): boolean
}

/** One rule that was looked at. */
export interface Considered {
  /** `<namespace>/<name>`. */
  readonly policy: string
  readonly rule: number
  readonly action: string
  readonly dryRun: boolean
  readonly matched: boolean
  /** The condition for want of which it did not match. */
  readonly because: string
}

/** What happens to the request. */
export interface Decision {
  readonly verdict: 'allowed' | 'denied' | 'external'
  /** `<namespace>/<name>` and number of the rule that decided; undefined when no rule did. */
  readonly policy: string | undefined
  readonly rule: number | undefined
  readonly reason: string
  readonly considered: readonly Considered[]
}

/** Decides by the policies that select the workload, stage after stage; tokens are checked between CUSTOM and the others. */
export function decide(
  policies: readonly AuthorizationPolicy[],
  request: DescribedRequest,
  circumstances: Circumstances,
  stages: readonly Action[],
): Decision {
  const considered: Considered[] = []
  for (const action of stages) {
    const chosen = policies.filter((policy) => actionOf(policy) === action)
    const matches = chosen.flatMap((policy) => look(policy, action, request, circumstances))
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
    if (action === 'ALLOW' && chosen.some((policy) => !circumstances.isDryRun(policy)))
      return decided('denied', 'there are ALLOW policies, and no rule of theirs matches')
  }
  return { verdict: 'allowed', policy: undefined, rule: undefined, reason: 'no policy speaks against it', considered }
}

function look(policy: AuthorizationPolicy, action: Action, request: DescribedRequest, circumstances: Circumstances): Considered[] {
  const common = { policy: `${policy.namespace}/${policy.name}`, action, dryRun: circumstances.isDryRun(policy) }
  if (isStandIn(policy))
    return [{ ...common, rule: 0, matched: true, because: `the policy is invalid and denies everything until it is mended: ${policy.spec.invalid}` }]
  return (policy.spec.rules ?? []).map((rule, index) => {
    const because = mismatch(resolveRule(rule, policy.namespace), action === 'ALLOW', request, circumstances)
    return { ...common, rule: index, matched: because === undefined, because: because ?? '' }
  })
}

/** Why a rule does not match, or undefined when it does. */
export function mismatch(rule: Rule, allows: boolean, request: DescribedRequest, circumstances: Circumstances): string | undefined {
  const unusable = (condition: Condition) => request.protocol === 'tcp' && isHttpOnly(condition.attribute)
  const unusableOne = [...rule.from.flat(), ...rule.to.flat(), ...rule.when].find(unusable)
  if (allows && unusableOne) return `${unusableOne.written} cannot be judged on a TCP connection`
  const failing = (list: readonly Condition[]) =>
    list.find((condition) => !unusable(condition) && !conditionHolds(condition, request, circumstances, condition.not === allows))
  const failsAll = (lists: readonly (readonly Condition[])[]) => {
    if (lists.length === 0) return undefined
    const found = lists.map(failing)
    return found.every((one) => one !== undefined) ? found[0] : undefined
  }
  const because = failsAll(rule.from) ?? failsAll(rule.to) ?? failing(rule.when)
  return because && `${because.written} ${because.not ? 'matches' : 'is none of'} ${because.values.join(', ')}`
}

function conditionHolds(condition: Condition, request: DescribedRequest, circumstances: Circumstances, widely: boolean): boolean {
  const { attribute, values, not } = condition
  return values.some((value) => valueMatches(attribute, value, request, circumstances, widely)) !== not
}

/** `widely`: a match denies. */
function valueMatches(attribute: Attribute, value: string, request: DescribedRequest, circumstances: Circumstances, widely: boolean): boolean {
  const pattern = patternOf(value)
  switch (attribute.type) {
    case 'principal': {
      const { peer } = request
      return peer !== undefined && inTrustDomains(value, circumstances.trustDomains).some((each) => patternMatches(patternOf(each), peer))
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
      return domain !== undefined && equalTrustDomains(value, circumstances.trustDomains).some((each) => patternMatches(patternOf(each), domain))
    }
    case 'requestPrincipal': {
      const { iss, sub } = request.claims ?? {}
      const there = typeof iss === 'string' && typeof sub === 'string' && iss !== '' && sub !== ''
      return there && patternMatches(pattern, `${iss}/${sub}`)
    }
    case 'claim':
      return claimMatches(pattern, attribute.path, request.claims)
    case 'ip':
      return inRange(value, attribute.of === 'connection' ? request.sourceIp : attribute.of === 'client' ? request.remoteIp : request.destinationIp)
    case 'port':
      return Number(value) === request.destinationPort
    case 'host':
      return hostMatches(pattern, request.host)
    case 'method':
      return patternMatches(pattern, request.method)
    case 'path': {
      const path = normalizePath(request.path, circumstances.normalization)
      return isPathTemplate(value) ? templateMatches(value, path, widely) : patternMatches(pattern, path)
    }
    case 'header':
      return headerMatches(pattern, headerOf(attribute.name, request))
    case 'sni':
      return patternMatches('text' in pattern ? { ...pattern, text: pattern.text.toLowerCase() } : pattern, request.sni.toLowerCase())
    case 'metadata':
      return metadataMatches(value, valueAt(request.metadata, [attribute.filter, ...attribute.path]))
  }
}

function claimMatches(pattern: Pattern, path: readonly string[], claims: DescribedRequest['claims']): boolean {
  const value = valueAt(claims, path)
  const matches = (text: unknown) => typeof text === 'string' && patternMatches(pattern, text)
  if (Array.isArray(value)) return value.some(matches)
  if (typeof value !== 'string') return false
  // One text is a list of its words, unless what is looked for has several itself.
  return isWholeText(path) || /\s/.test('text' in pattern ? pattern.text : '') ? matches(value) : value.split(' ').some(matches)
}

/** `[x]` asks for a list that has x in it. */
function metadataMatches(wanted: string, found: unknown): boolean {
  const inList = wanted.startsWith('[') && wanted.endsWith(']')
  const pattern = patternOf(inList ? wanted.slice(1, -1) : wanted)
  const matches = (one: unknown) => typeof one === 'string' && patternMatches(pattern, one)
  return inList ? Array.isArray(found) && found.some(matches) : matches(found)
}

/** What stands at a path of mappings, or undefined. */
function valueAt(start: unknown, path: readonly string[]): unknown {
  let value = start
  for (const key of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

function inRange(range: string, address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  const [base = '', bits] = range.split('/')
  const start = ipaddr.parse(base)
  if (start.kind() !== parsed.kind()) return false
  return parsed.match(start as never, bits === undefined ? (start.kind() === 'ipv6' ? 128 : 32) : Number(bits))
}

function hostMatches(pattern: Pattern, given: string): boolean {
  const host = given.toLowerCase()
  if (pattern.kind === 'any') return host !== ''
  const wanted: Pattern = { ...pattern, text: pattern.text.toLowerCase() }
  if (pattern.kind === 'prefix' || /:\d+$/.test(pattern.text)) return patternMatches(wanted, host)
  const withoutPort = [host, host.replace(/:[0-9]+$/, '')]
  return [...withoutPort, ...withoutPort.map((each) => each.replace(/\.$/, ''))].some((each) => patternMatches(wanted, each))
}

function headerOf(name: string, request: DescribedRequest): readonly string[] | undefined {
  const pseudo = new Map([
    [':method', request.method],
    [':authority', request.host],
    [':path', request.path],
  ])
  const value = pseudo.get(name)
  return value === undefined ? (Object.hasOwn(request.headers, name) ? request.headers[name] : undefined) : [value]
}

/** Some of the values of a header matches, whether they came on lines of their own or between commas. */
function headerMatches(pattern: Pattern, values: readonly string[] | undefined): boolean {
  if (values === undefined) return false
  if (pattern.kind === 'any') return true
  const elements = values.join(',').split(',')
  for (let from = 0; from < elements.length; from++) {
    for (let to = from + 1; to <= elements.length; to++) {
      const run = elements.slice(from, to).join(',')
      const candidates = [run, run.replace(/^[ \t]+/, ''), run.replace(/[ \t]+$/, ''), run.replace(/^[ \t]+|[ \t]+$/g, '')]
      const rest = (text: string) =>
        pattern.kind === 'prefix' ? text.slice(pattern.text.length) : text.slice(0, Math.max(0, text.length - pattern.text.length))
      if (candidates.some((text) => patternMatches(pattern, text) && (pattern.kind === 'exact' || !rest(text).includes(',')))) return true
    }
  }
  return false
}
