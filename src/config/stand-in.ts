/**
 * Stand-ins: objects that replace invalid policies for which there is no last valid version. A stand-in denies whatever the policy could
 * have denied.
 */
import type { ConfigObject } from '../../protocols/data.ts'
import { compare } from '../model/order.ts'
import { headerOutputsOfAny } from './header-outputs.ts'
import { isMapping, type Report } from './shape.ts'
import { dryRunOf } from './shapes/policies.ts'

/** The spec of a stand-in. Of the fields of its kind it contains only the selector. */
interface StandInSpec {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  /** The reason why the policy is invalid. */
  readonly invalid: string
  /** The headers that the policy would set from tokens, as far as they can be read. */
  readonly headers?: readonly string[]
  /** The part of the spec that could be read. It is not enforced. */
  readonly given?: unknown
  /** Whether the stand-in also replaces a known valid version: of two conflicting definitions neither is the last valid one. */
  readonly isContested?: boolean
}

/** A policy that was never valid. A stand-in without a namespace applies to all namespaces, because the intended one is unknown. */
export type StandIn = ConfigObject<StandInSpec>

/** Whether an object is a stand-in for a policy. Otherwise its spec is of its own kind. */
export function isStandIn(object: ConfigObject): object is StandIn {
  return typeof (object.spec as { invalid?: unknown }).invalid === 'string'
}

/** The maximum number of faults in the reason of a stand-in. Further faults are only counted. */
const maxFaults = 20

/** Creates a stand-in with the selector of its document, if that can be read. Otherwise it selects all workloads of its namespace. */
export function standIn(object: ConfigObject, document: unknown, report: Report): StandIn {
  const labels = Object.entries(selected(document) ?? {})
  const isReadable = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string' && !entry.join('').includes('*')
  const matchLabels = labels.every(isReadable) ? (report.names?.canonicalKeys(Object.fromEntries(labels)) ?? {}) : {}
  // With a label in two spellings it is not known which one was meant.
  const isOne = labels.length > 0 && Object.keys(matchLabels).length === labels.length
  const reported = report.faults.slice(0, maxFaults).map(({ path, reason }) => `${path}: ${reason}`)
  const invalid = [...reported, ...(report.faults.length > reported.length ? [`and ${report.faults.length - reported.length} more`] : [])].join('; ')
  const headers = headerOutputsOfAny(document)
  return {
    ...object,
    spec: { ...(isOne ? { selector: { matchLabels } } : {}), invalid, ...(headers.length > 0 ? { headers } : {}), given: object.spec },
  }
}

/**
 * Returns the labels that a document selects workloads by. Undefined when one of the fields on the way to them is missing or present in
 * several spellings.
 */
function selected(document: unknown): Readonly<Record<string, unknown>> | undefined {
  let at: unknown = document
  for (const field of ['spec', 'selector', 'matchLabels']) {
    if (!isMapping(at)) return undefined
    const spellings = Object.keys(at).filter((name) => name.length <= 64 && name.toLowerCase().replace(/[_-]/g, '') === field.toLowerCase())
    if (spellings.length !== 1 || spellings[0] === undefined) return undefined
    at = at[spellings[0]]
  }
  return isMapping(at) ? at : undefined
}

/** Serializes a value independently of the order of its mappings' fields. */
const inOrder = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (isMapping(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => compare(a, b))) : item))

/**
 * Merges several definitions of one policy: returns the first if all have the same content; otherwise a stand-in that denies whatever one
 * of them could deny, for all workloads that one of them could select.
 */
export function contest<T extends ConfigObject>(definitions: readonly [T, ...T[]], reason: string): T | StandIn {
  const [first] = definitions
  const said = ({ spec, labels, annotations }: ConfigObject) => inOrder([spec, labels, annotations])
  if (definitions.every((each) => said(each) === said(first))) return first
  const selector = ({ spec }: ConfigObject) => inOrder([(spec as Partial<StandInSpec>).selector])
  const isOne = definitions.every((each) => selector(each) === selector(first))
  const own = isOne ? (first.spec as Partial<StandInSpec>).selector : undefined
  const headers = [...new Set(definitions.flatMap(({ spec }) => [...((spec as Partial<StandInSpec>).headers ?? []), ...headerOutputsOfAny(spec)]))]
  return {
    ...first,
    version: '',
    // No version of the source says what this object says.
    resourceVersion: '',
    spec: { ...(own ? { selector: own } : {}), invalid: reason, isContested: true, ...(headers.length > 0 ? { headers } : {}) },
  }
}

/**
 * Decides how a policy without a namespace is treated strictly in all namespaces: enforced `as written` if it can only deny, `left out` if
 * it can only allow more, otherwise replaced by a `stand-in` that denies whatever it could deny.
 */
export function strictestAnywhere(object: ConfigObject, domain: string): 'as written' | 'left out' | 'stand-in' {
  const { kind, spec } = object
  if (kind === 'AuthorizationPolicy') {
    return dryRunOf(object, domain) === true || ['DENY', 'CUSTOM', 'AUDIT'].includes((spec as { readonly action?: string }).action ?? 'ALLOW')
      ? 'as written'
      : 'stand-in'
  }
  if (kind !== 'PeerAuthentication') return 'stand-in'
  const { mtls, portLevelMtls } = spec as { readonly mtls?: { readonly mode?: string }; readonly portLevelMtls?: object }
  if (portLevelMtls) return 'stand-in'
  return mtls?.mode === 'STRICT' ? 'as written' : 'left out'
}
