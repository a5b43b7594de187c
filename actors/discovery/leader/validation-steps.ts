/** Reads, tries and writes the configuration of the validating webhook, on the main thread (docs/operation.md, W7 and W8). */
import type { V1ValidatingWebhook } from '@kubernetes/client-node'
import type { ValidationStep, ValidationStepOutcome } from '../../../protocols/messages/validation-webhook.ts'
import {
  haveBundle,
  havePolicy,
  invalidGateway,
  isOurDenial,
  type KeptWebhook,
  probeGroups,
  probeResource,
  type WebhookChange,
  webhookChanges,
} from '../../../src/orchestrator/validation-webhook.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure, CallName, ClusterCalls } from '../cluster/cluster-api.ts'
import { type Leadership, NotLeading } from './leadership.ts'

/** The configuration, and where the webhook is tried. */
export interface ValidationStepsParts {
  /** That of the duty, for which the process stands for election with the first step. */
  readonly leadership: () => Leadership
  readonly name: string
  readonly namespace: string
  readonly revision: string
}

const resource = 'validatingwebhookconfigurations.admissionregistration.k8s.io'

/** Answers `keepValidationWebhook`. */
export const validationSteps = (parts: ValidationStepsParts): BoundedAnswers<'keepValidationWebhook'> => ({
  keepValidationWebhook: async (step) => {
    let at: 'load' | 'update' = 'load'
    try {
      return await take(parts, parts.leadership().inTerm(step.term), step, () => {
        at = 'update'
      })
    } catch (error) {
      if (error instanceof NotLeading) return { outcome: 'lost' }
      const { isMissing, message, reason, code } = error as ApiFailure
      return at === 'load' && isMissing ? { outcome: 'absent' } : { outcome: 'failed', at, word: reason || String(code ?? 0), reason: message }
    }
  },
})

type Calls = Pick<ClusterCalls, 'call'>

async function take(
  parts: ValidationStepsParts,
  calls: Calls,
  { bundle, opens }: ValidationStep,
  writing: () => void,
): Promise<ValidationStepOutcome> {
  const { name } = parts
  const { metadata, webhooks: found = [] } = await calls.call(
    nameOf('get', name),
    (library) => library.AdmissionregistrationV1Api,
    (api) => api.readValidatingWebhookConfiguration({ name }),
  )
  const webhooks = found.map(keptOf)
  const version = metadata?.resourceVersion ?? ''
  const write = async (policy: 'Ignore' | 'Fail') => {
    writing()
    await patch(calls, name, version, webhookChanges(webhooks, policy, bundle))
  }
  // With another bundle the webhook has yet to be seen to deny.
  if (!haveBundle(webhooks, bundle)) {
    await write('Ignore')
    return { outcome: 'open', version, isWritten: true, reason: 'the certificates in the configuration were replaced' }
  }
  const reason = await whyNotDenied(parts, calls)
  if (reason === undefined) {
    const isWritten = !havePolicy(webhooks, 'Fail')
    if (isWritten) await write('Fail')
    return { outcome: 'closed', version, isWritten }
  }
  const isWritten = opens && !havePolicy(webhooks, 'Ignore')
  if (isWritten) await write('Ignore')
  return { outcome: 'open', version, isWritten, reason }
}

function keptOf({ name, failurePolicy, clientConfig }: V1ValidatingWebhook): KeptWebhook {
  const { caBundle } = clientConfig
  return { name, ...(failurePolicy === undefined ? {} : { failurePolicy }), clientConfig: caBundle === undefined ? {} : { caBundle } }
}

/** Has the server make an object that validation denies, without storing it. Returns why it was not denied by validation; undefined: it was. */
async function whyNotDenied({ namespace, revision }: ValidationStepsParts, calls: Calls): Promise<string | undefined> {
  for (const group of probeGroups) {
    const body = invalidGateway(group, namespace, revision)
    try {
      await calls.call(
        { verb: 'create', resource: `${probeResource}.${group}`, object: `${namespace}/${body.metadata.name}` },
        (library) => library.CustomObjectsApi,
        (api) => api.createNamespacedCustomObject({ group, version: 'v1beta1', namespace, plural: probeResource, body, dryRun: 'All' }),
      )
      return 'an invalid Gateway was accepted'
    } catch (error) {
      if (error instanceof NotLeading) throw error
      const { message, isMissing } = error as ApiFailure
      if (isOurDenial(message)) return undefined
      if (!isMissing) return message
    }
  }
  return `neither ${probeGroups.map((group) => `${probeResource}.${group}`).join(' nor ')} is defined, so that the webhook cannot be tried`
}

async function patch(calls: Calls, name: string, resourceVersion: string, webhooks: readonly WebhookChange[]): Promise<void> {
  const { PatchStrategy, setHeaderOptions } = await import('@kubernetes/client-node')
  // Somebody else's change in between is seen first.
  const body = { metadata: { resourceVersion }, webhooks }
  const options = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch)
  await calls.call(
    nameOf('patch', name),
    (library) => library.AdmissionregistrationV1Api,
    (api) => api.patchValidatingWebhookConfiguration({ name, body, fieldManager: 'mesh-validation-controller' }, options),
  )
}

const nameOf = (verb: CallName['verb'], object: string): CallName => ({ verb, resource, object })
