/** Decides on reviews of pods: injects them, leaves them as they are, or refuses them (docs/injection.md, N13). */
import type { AdmissionAnswer, AdmissionRequest } from '../../protocols/messages/admission.ts'
import { type Injection, type InjectionSettings, injectPod, type Remarks } from './inject-pod.ts'
import { jsonPatch } from './patch.ts'
import { InjectionError } from './pod.ts'
import { PathError, pathVariables } from './request-path.ts'

/** What came of a review. */
export interface PodVerdict {
  readonly outcome: 'injected' | 'skipped' | 'failed'
  readonly answer: AdmissionAnswer
  /** Why the pod is not injected; empty for one that is. */
  readonly reason: string
  readonly namespace: string
  /** What has no effect in a pod that is injected; undefined: nothing. */
  readonly remarks?: Remarks
}

/** Told of pods that are asked about where there is no configuration of injection. */
export const unconfigured =
  'there is no configuration of injection (ConfigMap mesh-sidecar-injector in the namespace of discovery, or files in ./var/lib/mesh/inject): no pod gets a sidecar'

/**
 * Decides on a review. `rest` is what follows `/inject/` in the path; without settings there is no configuration. Throws `SlowCall` where a
 * template calls a slow function and none may run, and else only what is a mistake of its own.
 */
export function decidePod(request: AdmissionRequest, rest: string, settings: InjectionSettings | undefined): PodVerdict {
  const { namespace, object } = request
  const skipped = (reason: string): PodVerdict => ({ outcome: 'skipped', answer: { allowed: true }, reason, namespace })
  if (!settings) return { ...skipped(unconfigured), answer: { allowed: true, warnings: [unconfigured] } }
  if (request.kind.kind !== 'Pod' || object === undefined || request.subResource !== '') return skipped('it is no new pod')
  let injected: Injection
  try {
    injected = injectPod({ pod: object, namespace, variables: pathVariables(rest) }, settings)
  } catch (error) {
    if (!(error instanceof InjectionError || error instanceof PathError)) throw error
    const reason = error.message
    return { outcome: 'failed', answer: { allowed: false, code: 400, message: `injection failed: ${reason}` }, reason, namespace }
  }
  if ('skipped' in injected) return skipped(injected.skipped)
  const { remarks } = injected
  const answer = { allowed: true, patch: jsonPatch(object, injected.pod), ...(remarks.pod.length > 0 && { warnings: remarks.pod }) }
  const isRemarkable = remarks.pod.length + remarks.templates.length > 0
  return { outcome: 'injected', answer, reason: '', namespace, ...(isRemarkable && { remarks }) }
}
