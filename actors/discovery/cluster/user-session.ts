/** The cluster of the user of a command, and requests to it with the rights of that user. */
import { homedir } from 'node:os'
import type { ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import type { UserCluster } from '../../../src/cli/user-cluster.ts'
import type { Features } from '../../../src/config/features.ts'
import { givenSources } from '../given/sources.ts'
import { ApiSession } from './api-session.ts'
import { ClusterConnection } from './cluster-connection.ts'
import { connectionFiles } from './connection-files.ts'

/** Returns where the connection is configured that a user has, as the orchestrator's command line finds it. Throws an Error when there is none. */
export function userCluster({ kubeconfig, context }: UserCluster, features: Features, environment: NodeJS.ProcessEnv): ClusterOrigin {
  const paths = connectionFiles(kubeconfig, environment, homedir())
  if (paths) return { from: 'files', paths, context }
  const { cluster, noCluster } = givenSources({ registries: ['Orchestrator'], configDir: '', orchconfig: '', given: [] }, features)
  if (cluster) return cluster
  throw new Error(
    `--cluster: no cluster is known: there is no file of KUBECONFIG and none at ~/.kube/config, and ${noCluster}; use --kubeconfig <file>`,
  )
}

/** Opens a session of a user, who closes it. Nothing of it is logged. */
export function userSession(origin: ClusterOrigin, connection = new ClusterConnection(origin)): ApiSession {
  const quiet = () => undefined
  return new ApiSession({
    ...{ perSecond: 0, burst: 0, userAgent: `pilot-discovery/${buildInfo().version} (${process.platform}/${process.arch})` },
    access: (isRefused) => connection.access(isRefused),
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  })
}
