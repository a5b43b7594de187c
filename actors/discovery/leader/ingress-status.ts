/** Writes the status of Ingresses, for the watcher of the cluster, while this process leads (docs/resources.md, I7). */
import { isIP } from 'node:net'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure } from '../cluster/cluster-api.ts'
import type { Elections } from './elections.ts'
import { NotLeading } from './leadership.ts'

/** Answers `writeIngressStatus`. */
export const ingressStatusAnswers = (elections: Elections): BoundedAnswers<'writeIngressStatus'> => ({
  async writeIngressStatus({ term, namespace, name, uid, addresses }) {
    const ingress = addresses.map((address) => (isIP(address) ? { ip: address } : { hostname: address }))
    // Another Ingress of the same name that was made meanwhile is left alone.
    const body = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'add', path: '/status/loadBalancer', value: ingress.length > 0 ? { ingress } : {} },
    ]
    try {
      await elections
        .of('ingress')
        .inTerm(term)
        .call(
          { verb: 'patch', resource: 'ingresses.networking.k8s.io/status', object: `${namespace}/${name}` },
          (library) => library.NetworkingV1Api,
          (api) => api.patchNamespacedIngressStatus({ namespace, name, body }),
        )
      return { result: 'written', reason: '' }
    } catch (error) {
      if (error instanceof NotLeading || (error as ApiFailure).isMissing) return { result: 'needless', reason: (error as Error).message }
      return { result: 'failed', reason: (error as Error).message }
    }
  },
})
