/**
 * Shapes common to the policy kinds (docs/resources.md, A1 to A10). Unknown fields are faults in policies, because a policy that loses a
 * misspelt condition allows more.
 */
import { type Fault, list, type Read, type Report, record, reject, required, text } from '../shape.ts'
import { checkSelector, labelsOf } from './hosts.ts'

/** A record whose unknown fields are faults. */
export const strict: <F extends Parameters<typeof record>[0]>(fields: F, check?: Parameters<typeof record<F>>[1]) => ReturnType<typeof record<F>> = (
  fields,
  check,
) => record(fields, check, 'fault')

/** The labels of the workloads that a policy selects. */
export const selector = strict({ matchLabels: labelsOf(text({ max: 63 })) }, (value, path, report) => {
  checkSelector(value.matchLabels ?? {}, `${path}.matchLabels`, report)
})

/** The label with the Gateway's name on the proxies of a Gateway of the orchestrator's API. */
const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name'
const gatewayGroup = 'gateway.networking.k8s.io'

/** An object in the namespace of the policy that the policy is attached to. */
const targetRef = strict(
  { group: text({ max: 253 }), kind: required(text({ max: 63 })), name: required(text({ max: 253 })), namespace: text({ max: 253 }) },
  ({ group = '', kind, name, namespace }, path, report) => {
    if (name === '') reject(report, `${path}.name`, 'required, but empty')
    if (namespace) reject(report, `${path}.namespace`, 'a policy is attached to objects of its own namespace')
    const named = `${group}/${kind}`
    if (named === `${gatewayGroup}/Gateway`) return
    if (!/^(\/Service|core\/Service|networking\.[^/]+\/ServiceEntry|gateway\.networking\.k8s\.io\/GatewayClass)$/.test(named))
      reject(report, `${path}.kind`, `${JSON.stringify(named.slice(0, 100))} cannot be a target: Gateway, GatewayClass, Service and ServiceEntry can`)
  },
)

/** The fields by which a policy selects workloads: labels, or objects that it is attached to. */
export const targets = { selector, targetRef, targetRefs: list(targetRef, { max: 16 }) }

/** The fields by which a policy, or a stand-in for one, selects workloads. */
interface Targeted {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  readonly targetRef?: Target
  readonly targetRefs?: readonly Target[]
}
type Target = Read<typeof targetRef>

/** Rejects a policy that selects workloads in several ways. */
export function checkTargets(spec: Targeted, path: string, report: Report): void {
  const ways = [spec.selector && 'selector', spec.targetRef && 'targetRef', spec.targetRefs?.length && 'targetRefs'].filter(Boolean)
  if (ways.length > 1) reject(report, `${path}.${ways[1]}`, `excluded by ${ways[0]}`)
}

const targetsOf = ({ targetRef: one, targetRefs = [] }: Targeted): readonly Target[] => (targetRefs.length > 0 || !one ? targetRefs : [one])

/** Converts the fields by which an object with a `workloadSelector` selects workloads. */
export function targetedBy(spec: {
  readonly workloadSelector?: { readonly labels?: Readonly<Record<string, string>> }
  readonly targetRefs?: readonly Target[]
}): Targeted {
  const { labels = {} } = spec.workloadSelector ?? {}
  return {
    ...(Object.keys(labels).length > 0 ? { selector: { matchLabels: labels } } : {}),
    ...(spec.targetRefs ? { targetRefs: spec.targetRefs } : {}),
  }
}

/** Whether a policy is attached to objects, which are all in its own namespace. */
export const isAttached = (spec: Targeted): boolean => targetsOf(spec).length > 0

/**
 * Returns label sets: a policy, or a stand-in for one, selects the workloads that have all labels of one of the sets. Without a set it
 * selects no workload.
 */
export function selectedLabelSets(spec: Targeted): readonly Readonly<Record<string, string>>[] {
  if (!isAttached(spec)) return [spec.selector?.matchLabels ?? {}]
  return targetsOf(spec)
    .filter(({ group, kind }) => group === gatewayGroup && kind === 'Gateway')
    .map(({ name }) => ({ [gatewayNameLabel]: name }))
}

/** Returns the targets of a policy that have no effect, with reasons. */
export function idleTargets(spec: Targeted): Fault[] {
  const path = spec.targetRefs?.length ? (index: number) => `spec.targetRefs[${index}]` : () => 'spec.targetRef'
  return targetsOf(spec).flatMap(({ group, kind }, index) =>
    group === gatewayGroup && kind === 'Gateway'
      ? []
      : [{ path: path(index), reason: `has no effect: a ${kind} is a target for waypoint proxies only, which are not served` }],
  )
}

/** Returns labels that every workload selected by a policy has. Empty when the policy has several label sets. */
export function selectedLabels(spec: Targeted): Readonly<Record<string, string>> {
  const [first = {}, ...others] = selectedLabelSets(spec)
  return others.length === 0 ? first : {}
}

/**
 * Returns the value of the annotation `mesh.io/dry-run`: a boolean in the notation of Go, `unclear` for other text, undefined when it is
 * not set.
 */
export function dryRunOf(
  { annotations }: { readonly annotations: Readonly<Record<string, string>> },
  domain: string,
): boolean | 'unclear' | undefined {
  const given = annotations[`${domain}/dry-run`] ?? annotations[`security.${domain}/dry-run`]
  if (given === undefined) return undefined
  if (/^(1|t|T|true|TRUE|True)$/.test(given)) return true
  return /^(0|f|F|false|FALSE|False)$/.test(given) ? false : 'unclear'
}

/** Whether text is a port number. */
export const isPort = (given: string): boolean => /^\d{1,5}$/.test(given) && Number(given) >= 1 && Number(given) <= 65_535
