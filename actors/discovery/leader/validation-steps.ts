/** Reads, tries and writes the configuration of the validating webhook, on the main thread (docs/operation.md, W7 and W8). */
import type { V1ValidatingWebhook } from '@kubernetes/client-node'
import type { ValidationStep, ValidationStepOutcome } from '../../../protocols/messages/validation-webhook.ts'
import {
  denyingWebhook,
  haveBundle,
  invalidGateway,
  type KeptWebhook,
  probeGroups,
  probeResource,
  trialLabels,
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
  const write = async (wanted: (name: string) => 'Ignore' | 'Fail' | undefined): Promise<boolean> => {
    const changes = webhookChanges(webhooks, wanted, bundle)
    if (!changes) return false
    writing()
    await patch(calls, name, version, changes)
    return true
  }
  // With another bundle the webhooks have yet to be seen to deny.
  if (!haveBundle(webhooks, bundle)) {
    await write(() => 'Ignore')
    return { outcome: 'open', version, isWritten: true, reason: 'the certificates in the configuration were replaced' }
  }
  const { seen, reason } = await denying(parts, calls)
  const others = webhooks.filter((webhook) => !seen.has(webhook.name)).map((webhook) => webhook.name)
  const isWritten = await write((webhook) => (seen.has(webhook) ? 'Fail' : opens ? 'Ignore' : undefined))
  if (others.length === 0) return { outcome: 'closed', version, isWritten }
  const why = reason || 'no trial is of those that they are for'
  return { outcome: 'open', version, isWritten, reason: seen.size === 0 ? why : `those of ${others.join(', ')}: ${why}` }
}

function keptOf({ name, failurePolicy, clientConfig }: V1ValidatingWebhook): KeptWebhook {
  const { caBundle } = clientConfig
  return { name, ...(failurePolicy === undefined ? {} : { failurePolicy }), clientConfig: caBundle === undefined ? {} : { caBundle } }
}

/**
 * Has the server make objects that validation denies, without storing them: one for each way in which webhooks are chosen. Returns the names of the
 * webhooks that denied one, and why another was not denied.
 */
async function denying({ name, namespace, revision }: ValidationStepsParts, calls: Calls): Promise<{ seen: ReadonlySet<string>; reason: string }> {
  const seen = new Set<string>()
  let reason = ''
  for (const labels of trialLabels(revision)) {
    const tried = await denyingOne(calls, namespace, (group) => invalidGateway(group, namespace, name, labels))
    const webhook = tried && denyingWebhook(tried, name)
    if (webhook !== undefined) seen.add(webhook)
    else reason ||= tried ?? 'an invalid Gateway was accepted'
  }
  return { seen, reason }
}

/** Has the server make an object. Returns the message of its refusal; undefined: it was accepted. */
async function denyingOne(
  calls: Calls,
  namespace: string,
  bodyIn: (group: string) => ReturnType<typeof invalidGateway>,
): Promise<string | undefined> {
  for (const group of probeGroups) {
    const body = bodyIn(group)
    try {
      await calls.call(
        { verb: 'create', resource: `${probeResource}.${group}`, object: `${namespace}/${body.metadata.name}` },
        (library) => library.CustomObjectsApi,
        (api) => api.createNamespacedCustomObject({ group, version: 'v1beta1', namespace, plural: probeResource, body, dryRun: 'All' }),
      )
      return undefined
    } catch (error) {
      if (error instanceof NotLeading) throw error
      const { message, isMissing } = error as ApiFailure
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
