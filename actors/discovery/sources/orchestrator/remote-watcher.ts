/**
 * The actor that follows the services of another cluster, which a remote secret names (docs/operation.md, J4): emits what the watcher of the
 * own cluster emits of them (`ServiceChanged`, `EndpointsChanged`, `ConfigChanged`). Asks the main thread how the server is reached (`remoteAccess`).
 */
import type { RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { Features } from '../../../../src/config/features.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import type { ActorDefinition } from '../../../runtime/actor.ts'
import { patient } from '../../../runtime/ask.ts'
import { sourceOfActor } from '../../source-events.ts'
import { RegistryPart } from './registry-part.ts'
import { ClusterWatcher } from './registry-watcher.ts'

/** The actor definition of the watcher of another cluster. */
export const actor: ActorDefinition<RegistryWatcherConfig, never, SourceEvent> = {
  kind: 'source',
  start: ({ config, ...context }) =>
    new ClusterWatcher(
      { ...context, config },
      ({ send }) => {
        const { features, domain, cluster } = config
        const { MESH_DOMAIN, PILOT_USE_ENDPOINT_SLICE: usesSlices } = features as Features
        const names = meshNames(MESH_DOMAIN)
        const registry = new ClusterRegistry({ names, domain, cluster })
        const origin = { names, source: sourceOfActor(context.name), cluster }
        return { registry, parts: [new RegistryPart(registry, origin, usesSlices, send)] }
      },
      (isRefused) => context.askFor(patient, 'remoteAccess', config.cluster, isRefused),
    ),
}
