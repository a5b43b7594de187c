/**
 * The actor that follows the services of another cluster, which a remote secret names (docs/operation.md, J4): emits what the watcher of the
 * own cluster emits of them (`ServiceChanged`, `EndpointsChanged`, `ConfigChanged`), and the Secrets that gateways of this cluster want, to the
 * writers that serve these (`SecretsWanted`, `SecretChanged`). Asks the main thread how the server is reached (`remoteAccess`).
 */
import type { RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { SecretCommand, SecretEvent } from '../../../../protocols/messages/secrets.ts'
import type { Features } from '../../../../src/config/features.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import type { ActorDefinition } from '../../../runtime/actor.ts'
import { patient } from '../../../runtime/ask.ts'
import { sourceOfActor } from '../../source-events.ts'
import { RegistryPart } from './registry-part.ts'
import { ClusterWatcher } from './registry-watcher.ts'
import { SecretsPart } from './secrets-part.ts'

/** The actor definition of the watcher of another cluster. */
export const actor: ActorDefinition<RegistryWatcherConfig, SecretCommand, SourceEvent | SecretEvent> = {
  kind: 'source',
  start: ({ config, ...context }) =>
    new ClusterWatcher(
      { ...context, config },
      ({ send, following }) => {
        const { features, domain, cluster, namespaces } = config
        const { MESH_DOMAIN, PILOT_USE_ENDPOINT_SLICE: usesSlices } = features as Features
        const names = meshNames(MESH_DOMAIN)
        const registry = new ClusterRegistry({ names, domain, cluster })
        const origin = { names, source: sourceOfActor(context.name), cluster }
        const secrets = new SecretsPart({
          ...{ names, cluster, isRemote: true, namespaces, following, metrics: context.metrics, log: context.log },
          mayList: (reader) => context.askFor(patient, 'secretAccess', reader),
        })
        return {
          ...{ registry, parts: [new RegistryPart(registry, origin, usesSlices, send), secrets] },
          asks: { secrets: () => secrets.summaries() },
          receive: (command, from) => secrets.wanted(from, command),
        }
      },
      (isRefused) => context.askFor(patient, 'remoteAccess', config.cluster, isRefused),
    ),
}
