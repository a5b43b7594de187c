/** Writes the ConfigMap with the root certificates of a namespace, on the main thread. */
import type { RootsWrite, RootsWriteOutcome } from '../../../protocols/messages/root-certificates.ts'
import { rootConfigMap, rootLabel } from '../../../src/orchestrator/root-config-maps.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure, ClusterApi } from '../cluster/cluster-api.ts'
import { type Leadership, NotLeading } from './leadership.ts'

/** The name under which the server records who has written a field. */
const fieldManager = 'mesh-namespace-controller'

/**
 * Returns the answer to the question. `leadership`: that of the duty, for which the process stands for election with the first write. `remote`
 * returns the calls to another cluster; undefined where it is not followed any more.
 */
export const rootWrites = (
  leadership: () => Leadership,
  domain: string,
  remote: (cluster: string) => ClusterApi | undefined = () => undefined,
): BoundedAnswers<'writeRootConfigMap'> => ({
  async writeRootConfigMap(order) {
    const { cluster } = order
    const api = cluster === undefined ? undefined : remote(cluster)
    return cluster === undefined || api ? write(leadership(), domain, order, api) : { outcome: 'gone' }
  },
})

/** Applies the ConfigMap: makes it, or sets its key and label, whatever else is in it. */
async function write(
  leadership: Leadership,
  domain: string,
  { term, namespace, roots }: RootsWrite,
  api: ClusterApi | undefined,
): Promise<RootsWriteOutcome> {
  const { name, key } = rootConfigMap
  const { setHeaderOptions, PatchStrategy } = await import('@kubernetes/client-node')
  const body = {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { name, namespace, labels: { [rootLabel(domain)]: 'true' } },
    data: { [key]: roots },
  }
  try {
    await leadership.inTerm(term, api).call(
      { verb: 'patch', resource: 'configmaps', object: `${namespace}/${name}` },
      (library) => library.CoreV1Api,
      (core) =>
        core.patchNamespacedConfigMap(
          { name, namespace, body, fieldManager, force: true },
          setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
        ),
    )
    return { outcome: 'written' }
  } catch (error) {
    if (error instanceof NotLeading) return { outcome: 'lost' }
    const { mayPass, isOfRole, code, message } = error as ApiFailure
    const isEnding = code === 403 && message.includes('is being terminated')
    if (isEnding || isWithoutNamespace(error as ApiFailure, namespace)) return { outcome: 'gone' }
    return { outcome: 'failed', reason: message, isCommon: mayPass || isOfRole }
  }
}

/** Whether the server says that the namespace does not exist. Another 404, as of a proxy before the server, says nothing of it. */
function isWithoutNamespace({ isMissing, reason, subject, message }: ApiFailure, namespace: string): boolean {
  if (!isMissing) return false
  const isNamed = reason === 'NotFound' && subject.kind === 'namespaces' && (subject.name ?? namespace) === namespace
  return isNamed || message.endsWith(`: namespaces "${namespace}" not found`)
}
