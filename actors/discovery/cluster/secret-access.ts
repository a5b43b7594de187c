/**
 * Whether service accounts may read the Secrets of their namespaces, on the main thread: the answer to `secretAccess`, by a review of the API
 * server (`authorization.k8s.io/v1` SubjectAccessReview; docs/resources.md, K11).
 */
import type { SecretReader } from '../../../protocols/messages/secrets.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ApiFailure, ClusterApi } from './cluster-api.ts'

/** How many reviews run at a time, of all namespaces and of one, and how many wait. */
const bounds = { atOnce: 8, ofClient: 2, waiting: 4096, bytes: 1_048_576 }

/**
 * Returns the answer, which rejects when the API server cannot decide; the log says once why. The cluster of the reader decides: `remote` returns
 * the calls to that of another one, and throws when it is not followed.
 */
export function secretAccessAnswers(api: ClusterApi, remote: (cluster: string) => ClusterApi, log: Logger): BoundedAnswers<'secretAccess'> {
  // A cluster whose server is slow delays no decisions of others.
  const works = new Map<string | undefined, FairWork>()
  const workFor = (cluster: string | undefined) => {
    const work = works.get(cluster) ?? new FairWork(bounds)
    works.set(cluster, work)
    return work
  }
  let trouble: string | undefined
  const tell = (reason: string | undefined) => {
    if (reason !== undefined && reason !== trouble)
      log('orch').error(`it cannot be found out which gateways may read Secrets: ${reason}; the last decisions stay, and other gateways wait`)
    if (reason === undefined && trouble !== undefined) log('orch').info('the API server decides again which gateways may read Secrets')
    trouble = reason
  }
  const review = async (reader: SecretReader): Promise<boolean> => {
    // The server of another cluster decides on its own accounts only, and the log does not repeat what it says.
    if (reader.cluster !== undefined) return reviewed(remote(reader.cluster), reader)
    return reviewed(api, reader).then(
      (allowed) => {
        tell(undefined)
        return allowed
      },
      (failure: ApiFailure) => {
        tell(failure.message)
        throw failure
      },
    )
  }
  return {
    secretAccess: async (reader, { signal } = patient) => {
      const bytes = reader.namespace.length + reader.account.length
      const answer = await workFor(reader.cluster).run({ client: reader.namespace, bytes, run: () => review(reader), isGone: () => signal.aborted })
      if (answer === refusedJob) throw new Error('too many reviews wait')
      return answer
    },
  }
}

async function reviewed(api: ClusterApi, { namespace, account }: SecretReader): Promise<boolean> {
  const spec = {
    user: `system:serviceaccount:${namespace}:${account}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    resourceAttributes: { namespace, verb: 'list', version: 'v1', resource: 'secrets' },
  }
  const { status } = await api.call(
    { verb: 'create', resource: 'subjectaccessreviews.authorization.k8s.io' },
    (library) => library.AuthorizationV1Api,
    (authorization) => authorization.createSubjectAccessReview({ body: { spec } }),
  )
  return status?.allowed === true && status.denied !== true
}
