/** The ValidatingWebhookConfiguration of discovery: what is written into it, and the object with which the webhook is tried (docs/operation.md, W7 and W8). */
import type { AdmissionRequest } from '../../protocols/messages/admission.ts'
import { groupSpellings } from '../names/mesh-names.ts'

/** What the keeper looks at in one webhook of the configuration. */
export interface KeptWebhook {
  readonly name: string
  readonly failurePolicy?: string
  readonly clientConfig?: { readonly caBundle?: string }
}

/** What is written into one webhook: fields that are not named stay as they are. */
export interface WebhookChange {
  readonly name: string
  readonly failurePolicy: 'Ignore' | 'Fail'
  readonly clientConfig?: { readonly caBundle: string }
}

/** Returns the name of the configuration (`VALIDATION_WEBHOOK_CONFIG_NAME`), in which `${namespace}` stands for that of the control plane. */
export const webhookConfigName = (given: string, namespace: string): string => given.replaceAll(namespacePlace, namespace)
const namespacePlace = '${namespace}'

const encoded = (bundle: string): string => Buffer.from(bundle).toString('base64')

/** Whether the webhooks have the bundle (PEM); an empty one is that of the configuration. */
export function haveBundle(webhooks: readonly KeptWebhook[], bundle: string): boolean {
  return bundle === '' || webhooks.every(({ clientConfig }) => clientConfig?.caBundle === encoded(bundle))
}

/** Whether all webhooks have a policy. One without a policy has `Fail`. */
export const havePolicy = (webhooks: readonly KeptWebhook[], policy: 'Ignore' | 'Fail'): boolean =>
  webhooks.every(({ failurePolicy = 'Fail' }) => failurePolicy === policy)

/** Returns what is written so that the webhooks have a policy and the bundle. */
export function webhookChanges(webhooks: readonly KeptWebhook[], failurePolicy: 'Ignore' | 'Fail', bundle: string): WebhookChange[] {
  const clientConfig = bundle === '' ? {} : { clientConfig: { caBundle: encoded(bundle) } }
  return webhooks.map(({ name }) => ({ name, failurePolicy, ...clientConfig }))
}

/** The groups in which the webhook is tried: the definitions of one of them are there. */
export const probeGroups: readonly string[] = groupSpellings('networking')

/** The kind with which the webhook is tried. */
export const probeResource = 'gateways'

const trialName = 'invalid-gateway'

/** Whether a review is of the Gateway with which the webhook is tried. */
export const isTrial = ({ isDryRun, kind, name }: AdmissionRequest): boolean => isDryRun && kind.kind === 'Gateway' && name === trialName

/**
 * Returns a Gateway that agrees with the schema of its definition and that validation denies: HTTPS needs `tls`. `revision`: that of the control
 * plane, which webhooks are chosen by.
 */
export const invalidGateway = (group: string, namespace: string, revision: string) => ({
  apiVersion: `${group}/v1beta1`,
  kind: 'Gateway',
  metadata: {
    name: trialName,
    namespace,
    labels: revision === '' || revision === 'default' ? {} : { 'mesh.io/rev': revision, 'istio.io/rev': revision },
  },
  spec: {
    selector: { 'invalid-gateway': 'true' },
    servers: [{ port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['invalid.example'] }],
  },
})

/** Whether the message of a failed request says that a webhook has denied the object as validation does. */
export const isOurDenial = (message: string): boolean => /denied the request: .*configuration is invalid: spec\.servers\[0\]\.tls/s.test(message)
