/**
 * The actor that follows the services of another cluster, which a remote secret names (docs/operation.md, J4): emits what the watcher of the
 * own cluster emits of them (`ServiceChanged`, `EndpointsChanged`, `ConfigChanged`), and the Secrets that gateways of this cluster want, to the
 * writers that serve these (`SecretsWanted`, `SecretChanged`); with `EXTERNAL_MESHD` also what its namespaces have of the root certificates, and its
 * injection webhooks (`NamespaceRootsChanged`, `InjectorWebhooksChanged`). Asks the main thread how the server is reached (`remoteAccess`).
 */
import type { SeenEvent } from '../../../../protocols/messages/analysis.ts'
import type { InjectorEvent, InjectorWebhooksEvent } from '../../../../protocols/messages/injection.ts'
import type { RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { NamespaceRootsEvent } from '../../../../protocols/messages/root-certificates.ts'
import type { SecretCommand, SecretEvent } from '../../../../protocols/messages/secrets.ts'
import type { Features } from '../../../../src/config/features.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import type { ActorDefinition } from '../../../runtime/actor.ts'
import { patient } from '../../../runtime/ask.ts'
import { sourceOfActor } from '../../events/source-events.ts'
import { SeenReports } from '../seen-reports.ts'
import { InjectorPart } from './injector-part.ts'
import { RegistryPart } from './registry-part.ts'
import { ClusterWatcher } from './registry-watcher.ts'
import { ResourcesPart } from './resources-part.ts'
import { RootCertificatesPart } from './root-certificates-part.ts'
import { SecretsPart } from './secrets-part.ts'

/** The actor definition of the watcher of another cluster. */
export const actor: ActorDefinition<
  RegistryWatcherConfig,
  SecretCommand,
  SourceEvent | SecretEvent | NamespaceRootsEvent | InjectorEvent | InjectorWebhooksEvent | SeenEvent
> = {
  kind: 'source',
  start: ({ config, ...context }) =>
    new ClusterWatcher(
      { ...context, config },
      ({ send, following }) => {
        const { features, domain, cluster, namespaces, keepsRoots, settings } = config
        const { MESH_DOMAIN, PILOT_USE_ENDPOINT_SLICE: usesSlices, EXTERNAL_MESHD: serves, INJECT_ENABLED: injects } = features as Features
        const { REVISION: revision, INJECTION_WEBHOOK_CONFIG_NAME: webhookConfig, PILOT_ENABLE_ANALYSIS: analyzes } = features as Features
        const names = meshNames(MESH_DOMAIN)
        const registry = new ClusterRegistry({ names, domain, cluster })
        const origin = { names, source: sourceOfActor(context.name), cluster }
        // Of what is in another cluster analysis looks at what is in force, and at which Secrets there are.
        const seen = analyzes ? new SeenReports(origin.source) : undefined
        const reports = seen ? [new ResourcesPart(seen, cluster, () => following.isListed)] : []
        const secrets = new SecretsPart({
          ...{ names, cluster, seen, isRemote: true, namespaces, following, metrics: context.metrics, log: context.log },
          mayList: (reader) => context.askFor(patient, 'secretAccess', reader),
        })
        // What the pods of a cluster that is served from here need beside configuration (docs/operation.md, J10).
        const roots = serves && keepsRoots ? new RootCertificatesPart(names.domain, namespaces, cluster) : undefined
        const webhooks = serves && injects ? [new InjectorPart({ namespace: settings.namespace, revision, webhookConfig, names, cluster })] : []
        return {
          ...{ registry, parts: [new RegistryPart(registry, origin, usesSlices, send), secrets, ...(roots ? [roots] : []), ...webhooks, ...reports] },
          adapt: (follower) => (roots && follower.resource.kind === 'Namespace' ? roots.tap(follower) : follower),
          asks: { secrets: () => secrets.summaries() },
          receive: (command, from) => secrets.wanted(from, command),
        }
      },
      (isRefused) => context.askFor(patient, 'remoteAccess', config.cluster, isRefused),
    ),
}
