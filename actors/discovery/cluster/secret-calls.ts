/** Calls about the Secrets of the control plane's own state, on the main thread (docs/certificates.md, K8). */
import type { V1ObjectMeta, V1Secret } from '@kubernetes/client-node'
import type { KeptSecret, SecretCall, SecretOutcome } from '../../../protocols/messages/secret-calls.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { ApiFailure, type CallName, type ClusterApi } from './cluster-api.ts'

/** Makes one call about a Secret. Never rejects. */
export type CallSecret = (call: SecretCall) => Promise<SecretOutcome>

/** Returns the calls about Secrets of a namespace. */
export function secretCalls(api: Pick<ClusterApi, 'call'>, namespace: string): CallSecret {
  return async (call) => {
    try {
      return { outcome: 'done', secret: keptOf(await answer(api, namespace, call)) }
    } catch (error) {
      if (!(error instanceof ApiFailure)) return { outcome: 'failed', reason: (error as Error).message, mayPass: true }
      // Only the Secret itself may be missing: an answer about a namespace, or of a server that is no API server, says nothing of it.
      if (error.isMissing && error.message.includes('secrets "')) return { outcome: call.verb === 'get' ? 'missing' : 'conflict' }
      return error.isConflict ? { outcome: 'conflict' } : { outcome: 'failed', reason: error.message, mayPass: error.mayPass }
    }
  }
}

/** Returns the answers to the questions of actors about Secrets of a namespace. */
export const secretAnswers = (call: CallSecret): BoundedAnswers<'secretCall'> => ({ secretCall: (asked) => call(asked) })

function answer(api: Pick<ClusterApi, 'call'>, namespace: string, call: SecretCall): Promise<V1Secret> {
  const name = call.verb === 'get' ? call.name : call.secret.name
  const named: CallName = { verb: call.verb, resource: 'secrets', object: `${namespace}/${name}` }
  return api.call(
    named,
    (library) => library.CoreV1Api,
    (core) => {
      if (call.verb === 'get') return core.readNamespacedSecret({ namespace, name })
      const { type, data, resourceVersion, others } = call.secret
      if (call.verb === 'create')
        return core.createNamespacedSecret({ namespace, body: { metadata: { ...others, name } as V1ObjectMeta, type, data } })
      const metadata = { ...others, name, resourceVersion } as V1ObjectMeta
      return core.replaceNamespacedSecret({ namespace, name, body: { metadata, type, data } })
    },
  )
}

function keptOf({ metadata = {}, type = '', data = {} }: V1Secret): KeptSecret {
  const { name = '', resourceVersion = '', labels, annotations, ownerReferences, finalizers } = metadata
  const others = Object.fromEntries(Object.entries({ labels, annotations, ownerReferences, finalizers }).filter(([, value]) => value !== undefined))
  return { name, type, others, data, resourceVersion }
}
