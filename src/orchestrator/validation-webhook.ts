/** The ValidatingWebhookConfiguration of discovery: what is written into it, and the object with which the webhook is tried (docs/operation.md, W7 and W8). */
import type { AdmissionAnswer, AdmissionRequest } from '../../protocols/messages/admission.ts'
import { mapping } from '../config/shape.ts'
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

/** Returns the policy that a webhook has. One without a policy has `Fail`. */
const policyOf = ({ failurePolicy }: KeptWebhook): 'Ignore' | 'Fail' => (failurePolicy === 'Ignore' ? 'Ignore' : 'Fail')

/** Returns what is written so that webhooks have the policies of their names and the bundle; undefined: they have these already. */
export function webhookChanges(
  webhooks: readonly KeptWebhook[],
  wanted: (name: string) => 'Ignore' | 'Fail' | undefined,
  bundle: string,
): WebhookChange[] | undefined {
  const clientConfig = bundle === '' ? {} : { clientConfig: { caBundle: encoded(bundle) } }
  const changes = webhooks.map((webhook) => ({ name: webhook.name, failurePolicy: wanted(webhook.name) ?? policyOf(webhook), ...clientConfig }))
  const isSame = webhooks.every((webhook, index) => policyOf(webhook) === changes[index]?.failurePolicy)
  return isSame && haveBundle(webhooks, bundle) ? undefined : changes
}

/** The groups in which the webhook is tried: the definitions of one of them are there. */
export const probeGroups: readonly string[] = groupSpellings('networking')

/** The kind with which the webhook is tried. */
export const probeResource = 'gateways'

const trialName = 'invalid-gateway'

/** The annotation of a trial that names the configuration whose webhooks are tried. */
const triedAnnotation = 'mesh.io/tried-configuration'

/** Returns the name of the configuration whose webhooks a review tries; undefined: it is of an object that somebody means. */
export function triedBy({ isDryRun, kind, name, object }: AdmissionRequest): string | undefined {
  if (!isDryRun || kind.kind !== 'Gateway' || name !== trialName) return undefined
  const tried = mapping(mapping(mapping(object).metadata).annotations)[triedAnnotation]
  return typeof tried === 'string' ? tried : undefined
}

/**
 * Returns the answer to a trial. Of several webhooks that deny the server tells one, so that those of other control planes accept it; the message names
 * the configuration.
 */
export const trialAnswer = (tried: string, own: string, { allowed, message = '', ...rest }: AdmissionAnswer): AdmissionAnswer =>
  tried === own ? { ...rest, allowed, message: `${message} (${own})` } : { allowed: true }

/** The labels of trials: each webhook of the configuration is chosen by one of them. `revision`: that of the control plane. */
export const trialLabels = (revision: string): readonly Readonly<Record<string, string>>[] => [
  {},
  ...(revision === '' || revision === 'default' ? [] : [{ 'mesh.io/rev': revision }, { 'istio.io/rev': revision }]),
]

/** Returns a Gateway that agrees with the schema of its definition and that validation denies: HTTPS needs `tls`. `tried`: the configuration. */
export const invalidGateway = (group: string, namespace: string, tried: string, labels: Readonly<Record<string, string>>) => ({
  apiVersion: `${group}/v1beta1`,
  kind: 'Gateway',
  metadata: { name: trialName, namespace, labels, annotations: { [triedAnnotation]: tried } },
  spec: {
    selector: { 'invalid-gateway': 'true' },
    servers: [{ port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['invalid.example'] }],
  },
})

/** Returns the name of the webhook that has denied a trial, by the message of the failed request; undefined: no webhook of the configuration has. */
export function denyingWebhook(message: string, tried: string): string | undefined {
  const denial = /admission webhook "([^"]+)" denied the request: .*configuration is invalid: spec\.servers\[0\]\.tls/s.exec(message)
  return denial && message.includes(`(${tried})`) ? denial[1] : undefined
}
