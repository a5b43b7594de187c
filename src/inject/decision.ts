/** Decides whether a pod gets a sidecar (docs/injection.md, N3). */
import { mapping } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { selectsLabels } from '../snapshot/discovery.ts'
import { givenIn, meshKey, writtenKey } from './annotations.ts'
import type { InjectionConfiguration, Selector } from './configuration.ts'
import type { Pod } from './pod.ts'

/** Namespaces of the orchestrator, whose pods never get a sidecar and which nobody configures. */
export const orchestratorNamespaces: ReadonlySet<string> = new Set(['kube-system', 'kube-public', 'kube-node-lease', 'local-path-storage'])

/** A decision and its reason, as a clause about the pod. */
export interface Decision {
  readonly isInjected: boolean
  readonly reason: string
}

/** What decides besides the pod. */
export type DecisionRules = Pick<InjectionConfiguration, 'policy' | 'neverInjectSelector' | 'alwaysInjectSelector'>

const yes = (reason: string): Decision => ({ isInjected: true, reason })
const no = (reason: string): Decision => ({ isInjected: false, reason })

/** Whether a pod runs on Windows, where the containers of the agent do not: it says so, or its nodes do. */
const isForWindows = ({ os, nodeSelector }: Pod['spec']): boolean =>
  mapping(os).name === 'windows' || mapping(nodeSelector)['kubernetes.io/os'] === 'windows'

/** Whether the value of `sidecar.<domain>/inject` asks for a sidecar. */
export const isYes = (asked: string): boolean => /^(y|yes|true|on)$/i.test(asked)

/** Decides: the first rule that applies counts. */
export function decideInjection(
  { metadata: { annotations, labels = {} }, spec }: Pod,
  namespace: string,
  rules: DecisionRules,
  names: MeshNames,
): Decision {
  if (isForWindows(spec)) return no('it runs on Windows (os, nodeSelector), and the agent does not')
  if (spec.hostNetwork === true) return no('it uses the network of its node (hostNetwork)')
  if (orchestratorNamespaces.has(namespace)) return no(`namespace ${namespace} belongs to the orchestrator`)
  const key = meshKey(names, 'sidecar', 'inject')
  const asked = givenIn(annotations, key, names)
  if (asked !== undefined && asked !== '')
    return isYes(asked)
      ? yes(`annotation ${writtenKey(annotations, key, names)} asks for it`)
      : no(`annotation ${writtenKey(annotations, key, names)} forbids it`)
  const canonical = names.canonicalKeys(labels)
  // A selector without parts would select every pod, and counts for none.
  const isSelected = (selectors: readonly Selector[]) => selectors.some((selector) => hasParts(selector) && selectsLabels(selector, canonical, names))
  if (isSelected(rules.neverInjectSelector)) return no('neverInjectSelector selects it')
  if (isSelected(rules.alwaysInjectSelector)) return yes('alwaysInjectSelector selects it')
  if (rules.policy === 'enabled') return yes('the policy is enabled')
  return no(rules.policy === 'disabled' ? 'the policy is disabled' : `the policy ${JSON.stringify(rules.policy)} is neither enabled nor disabled`)
}

const hasParts = ({ matchLabels = {}, matchExpressions = [] }: Selector): boolean =>
  Object.keys(matchLabels).length > 0 || matchExpressions.length > 0
