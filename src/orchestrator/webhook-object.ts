/** MutatingWebhookConfigurations that lead to the injection of a revision, and what is to be written into them (docs/injection.md, N15). */
import type { CalledWebhook, InjectorWebhooksEvent } from '../../protocols/messages/injection.ts'
import { isMapping, mapping, textOf } from '../config/shape.ts'
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
    const { caBundle, service, url } = mapping(given.clientConfig)
    const path = isMapping(service) ? textOf(service.path) : (URL.parse(textOf(url))?.pathname ?? '')
    return { name: textOf(given.name), bundle: textOf(caBundle), path }
  })
  return { uid: textOf(metadata.uid), webhooks }
}

/** The paths of the webhooks of injection that do not give pods this cluster, each once: they give them that of the values of injection (docs/injection.md, N13). */
export const pathsWithout = ({ webhooks }: WebhookObject, cluster: string): readonly string[] => [
  ...new Set(webhooks.flatMap(({ name, path }) => (isInjection(name) && !`${path}/`.includes(`/cluster/${cluster}/`) ? [path] : []))),
]

/** Returns the webhooks of injection with another bundle, by their places. */
export const outdatedWebhooks = ({ webhooks }: WebhookObject, bundle: string): { readonly index: number; readonly name: string }[] =>
  webhooks.flatMap((webhook, index) => (isInjection(webhook.name) && webhook.bundle !== bundle ? [{ index, name: webhook.name }] : []))

const isInjection = (name: string): boolean => injectorWebhooks.some((end) => name.endsWith(end))
