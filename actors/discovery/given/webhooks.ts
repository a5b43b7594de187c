/** Decides where webhooks are served (docs/operation.md, W1). */
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { ValidationControllerConfig } from '../../../protocols/messages/validation-webhook.ts'
import type { Features } from '../../../src/config/features.ts'
import { webhookConfigName } from '../../../src/orchestrator/validation-webhook.ts'
import type { Notice } from './exposure.ts'
import type { GivenServing } from './serving.ts'

/** Where webhooks are served. */
export interface GivenWebhooks {
  /** At `--httpsAddr` over TLS, at `--httpAddr` in plain text, or not at all. */
  readonly at: 'https' | 'http' | 'nowhere'
  readonly notices: readonly Notice[]
}

/** Returns where webhooks are served. `hasCluster`: whether there is an API server that may call them. */
export function givenWebhooks(
  { httpAddr, httpsAddr }: Pick<DiscoveryOptions, 'httpAddr' | 'httpsAddr'>,
  { VALIDATION_ENABLED, INJECT_ENABLED }: Pick<Features, 'VALIDATION_ENABLED' | 'INJECT_ENABLED'>,
  hasCluster: boolean,
  serving: GivenServing,
): GivenWebhooks {
  if (!VALIDATION_ENABLED && !INJECT_ENABLED) return { at: 'nowhere', notices: [] }
  if (!hasCluster) {
    const message = `webhooks are served at ${httpAddr} in plain text, and --httpsAddr ${httpsAddr} is not listened on: there is no cluster that would ask there`
    // With certificates of one's own one expects TLS.
    return { at: 'http', notices: httpsAddr !== '' && serving.from === 'files' ? [{ level: 'info', message }] : [] }
  }
  if (httpsAddr === '')
    return { at: 'http', notices: [{ level: 'info', message: `webhooks are served at ${httpAddr} in plain text: --httpsAddr is empty` }] }
  if (serving.from === 'nowhere')
    return { at: 'nowhere', notices: [{ level: 'warn', message: `--httpsAddr ${httpsAddr} is not listened on: ${serving.why}` }] }
  return { at: 'https', notices: [] }
}

/** Returns the configuration of the validating webhook that is kept: where the API server can ask, and the variable names one (W7). */
export function keptWebhook(
  { namespace }: Pick<DiscoveryOptions, 'namespace'>,
  { VALIDATION_ENABLED, VALIDATION_WEBHOOK_CONFIG_NAME: name, POD_NAMESPACE }: Features,
  { at }: GivenWebhooks,
  serving: GivenServing,
): ValidationControllerConfig | undefined {
  if (!VALIDATION_ENABLED || name === '' || at !== 'https') return undefined
  return { name: webhookConfigName(name, namespace || POD_NAMESPACE), hasFiles: serving.from === 'files' }
}
