/** Writes the CA bundle of injection webhooks, and reads the version of the API server, on the main thread. */
import type { BundleOrder, BundleOutcome } from '../../../protocols/messages/injection.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure, ClusterApi } from './cluster-api.ts'

/** Returns the answers to the questions of the webhooks. `remote` returns the calls to another cluster; undefined where it is not followed any more. */
export const webhookAnswers = (
  api: ClusterApi,
  remote: (cluster: string) => ClusterApi | undefined = () => undefined,
): BoundedAnswers<'writeWebhookBundle' | 'clusterVersion'> => ({
  async writeWebhookBundle(order) {
    const { cluster } = order
    const of = cluster === undefined ? api : remote(cluster)
    return of ? write(of, order) : { result: 'gone', reason: `no remote secret names the cluster ${cluster}` }
  },
  async clusterVersion() {
    const { gitVersion } = await api.call(
      { verb: 'get', resource: '/version' },
      (library) => library.VersionApi,
      (version) => version.getCode(),
    )
    return gitVersion
  },
})

/** Replaces the bundles, if the object and its webhooks are those that were seen. */
async function write(api: ClusterApi, { name, uid, webhooks, bundle }: BundleOrder): Promise<BundleOutcome> {
  const body = [
    { op: 'test', path: '/metadata/uid', value: uid },
    ...webhooks.flatMap((webhook) => [
      { op: 'test', path: `/webhooks/${webhook.index}/name`, value: webhook.name },
      { op: 'add', path: `/webhooks/${webhook.index}/clientConfig/caBundle`, value: bundle },
    ]),
  ]
  try {
    await api.call(
      { verb: 'patch', resource: 'mutatingwebhookconfigurations.admissionregistration.k8s.io', object: name },
      (library) => library.AdmissionregistrationV1Api,
      (registration) => registration.patchMutatingWebhookConfiguration({ name, body }),
    )
    return { result: 'written', reason: '' }
  } catch (error) {
    const { isMissing, message } = error as ApiFailure
    return isMissing ? { result: 'gone', reason: message } : { result: 'failed', reason: message }
  }
}
