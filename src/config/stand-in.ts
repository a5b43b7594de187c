/** Stand-ins: what takes the place of a policy that cannot be used and has no last good state, as the strictest it could have meant. */
import type { ConfigObject } from '../../protocols/data.ts'
import { compare } from '../model/order.ts'
import { headerOutputsOfAny } from './header-outputs.ts'
import { isMapping, type Report } from './shape.ts'
import { dryRunOf } from './shapes/policies.ts'

/** Spec of a stand-in. Of the fields of its kind it has the selector alone. */
interface StandInSpec {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  /** Why the policy cannot be used. */
  readonly invalid: string
  /** Headers that it would set of tokens, as far as that can be read. */
  readonly headers?: readonly string[]
  /** What could be read of the spec; nothing is enforced by it. */
  readonly given?: unknown
  /** Whether it also counts where a valid version was known before: of two definitions none is the last good one. */
  readonly isContested?: boolean
}

/** A policy that was never valid. One without a namespace stands in all namespaces: the one that was meant is not known. */
export type StandIn = ConfigObject<StandInSpec>

/** Whether an object stands in for a policy that was never valid. Where it does not, it is of its own kind. */
export function isStandIn(object: ConfigObject): object is StandIn {
  return typeof (object.spec as { invalid?: unknown }).invalid === 'string'
}

/** Faults that a stand-in tells; of more their number is. */
const mostFaults = 20

/** A policy that selects what its document selects, as far as that can be read; else all of its namespace. */
export function standIn(object: ConfigObject, document: unknown, report: Report): StandIn {
  const labels = Object.entries(selected(document) ?? {})
  const isReadable = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string' && !entry.join('').includes('*')
  const matchLabels = labels.every(isReadable) ? (report.names?.canonicalKeys(Object.fromEntries(labels)) ?? {}) : {}
  // A label in two spellings may be meant either way.
  const isOne = labels.length > 0 && Object.keys(matchLabels).length === labels.length
  const told = report.faults.slice(0, mostFaults).map(({ path, reason }) => `${path}: ${reason}`)
  const invalid = [...told, ...(report.faults.length > told.length ? [`and ${report.faults.length - told.length} more`] : [])].join('; ')
  const headers = headerOutputsOfAny(document)
  return {
    ...object,
    spec: { ...(isOne ? { selector: { matchLabels } } : {}), invalid, ...(headers.length > 0 ? { headers } : {}), given: object.spec },
  }
}

/** The labels that a document asks of workloads. Undefined where one of the fields that lead to them is there in several spellings, or in another one. */
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

/** A value as text that is the same in whatever order the fields of its mappings stand. */
const inOrder = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (isMapping(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => compare(a, b))) : item))

/**
 * What counts of several definitions of one policy: the first, where all say the same; else a policy that refuses whatever one of them could, for
 * all workloads that one of them could select.
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
    spec: { ...(own ? { selector: own } : {}), invalid: reason, isContested: true, ...(headers.length > 0 ? { headers } : {}) },
  }
}

/**
 * What the strictest is that a policy without a namespace can mean, over all namespaces: to be enforced `as written` in all of them, if it only ever
 * refuses; to be `left out`, if it only ever lets more through; else a `stand-in`, which refuses what it could refuse.
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
