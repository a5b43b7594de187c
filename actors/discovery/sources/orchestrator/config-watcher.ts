/**
 * The source actor for the configuration objects of a cluster (`orch://`): emits them to the push queue (`ConfigChanged`, `ConfigUnusable`), and to
 * the status writer what their status says (`MeshObjectChanged`), to the registrar the groups and entries of workloads, and to the analyzer what cannot
 * be used (`FaultsSeen`).
 * Its replay ends when the definitions of kinds, and the objects of each kind of the mesh that is defined, have been listed.
 */
import type { SeenEvent } from '../../../../protocols/messages/analysis.ts'
import type { MeshObjectEvent } from '../../../../protocols/messages/object-status.ts'
import type { ClusterSourceConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { RegistrationObjectEvent } from '../../../../protocols/messages/registration.ts'
import type { Features } from '../../../../src/config/features.ts'
import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import type { ActorDefinition } from '../../../runtime/actor.ts'
import { SeenReports } from '../seen-reports.ts'
import { ConfigPart } from './config-part.ts'
import { ClusterWatcher } from './registry-watcher.ts'

/** The actor definition of the source that reads the configuration of a cluster. */
export const actor: ActorDefinition<ClusterSourceConfig, never, SourceEvent | MeshObjectEvent | RegistrationObjectEvent | SeenEvent> = {
  kind: 'source',
  start: ({ config, ...context }) =>
    new ClusterWatcher({ ...context, config }, (tools) => {
      const features = config.features as Features
      const { MESH_DOMAIN, MESH_POLICY_OPT_OUTS, REVISION, PILOT_ENABLE_CRD_VALIDATION: dropsInvalid } = features
      const part = new ConfigPart({
        ...{ names: meshNames(MESH_DOMAIN), optOuts: readOptOuts(MESH_POLICY_OPT_OUTS), revision: REVISION },
        hasStatus: features.PILOT_ENABLE_STATUS || features.PILOT_ENABLE_ANALYSIS,
        seen: features.PILOT_ENABLE_ANALYSIS ? new SeenReports(config.source) : undefined,
        ...{ dropsInvalid, registers: features.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION },
        allowUnreadable: config.settings.allowUnreadable,
        ...{ source: config.source, cluster: config.cluster, log: context.log, metrics: context.metrics, ...tools },
      })
      return { parts: [part], asks: { files: () => part.page() } }
    }),
}
