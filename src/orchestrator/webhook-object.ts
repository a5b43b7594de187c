/** MutatingWebhookConfigurations that lead to the injection of a revision, and what is to be written into them (docs/injection.md, N15). */
import type { CalledWebhook, InjectorWebhooksEvent } from '../../protocols/messages/injection.ts'
import { isMapping, mapping } from '../config/shape.ts'
import { injectorWebhooks, type MeshNames } from '../names/mesh-names.ts'

/** Such a configuration. */
export type WebhookObject = NonNullable<InjectorWebhooksEvent['state']>

/**
 * Cuts a configuration to its webhooks: one with the label of the revision, or of the given name and without such a label. Undefined for others.
 * Never throws for any value.
 */
export function cutWebhooks(
  value: Readonly<Record<string, unknown>>,
  { revision, name, names }: { readonly revision: string; readonly name: string; readonly names: MeshNames },
): WebhookObject | undefined {
  const metadata = mapping(value.metadata)
  const labels = names.canonicalKeys(Object.fromEntries(Object.entries(mapping(metadata.labels)).map(([key, label]) => [key, String(label)])))
  const label = labels[`${names.domain}/rev`]
  const isOurs = label === undefined ? metadata.name === name : label === (revision === '' ? 'default' : revision)
  if (!isOurs) return undefined
  const webhooks = (Array.isArray(value.webhooks) ? value.webhooks : []).map((webhook: unknown): CalledWebhook => {
    const given = mapping(webhook)
    const bundle = isMapping(given.clientConfig) ? given.clientConfig.caBundle : undefined
    return { name: typeof given.name === 'string' ? given.name : '', bundle: typeof bundle === 'string' ? bundle : '' }
  })
  return { uid: typeof metadata.uid === 'string' ? metadata.uid : '', webhooks }
}

/** Returns the webhooks of injection with another bundle, by their places. */
export const outdatedWebhooks = ({ webhooks }: WebhookObject, bundle: string): { readonly index: number; readonly name: string }[] =>
  webhooks.flatMap((webhook, index) => (isInjection(webhook.name) && webhook.bundle !== bundle ? [{ index, name: webhook.name }] : []))

const isInjection = (name: string): boolean => injectorWebhooks.some((end) => name.endsWith(end))
