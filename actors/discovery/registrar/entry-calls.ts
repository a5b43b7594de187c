/** Creates, changes and deletes WorkloadEntries for the registrar, on the main thread (docs/registration.md). */
import type { EntryOrder, EntryOutcome } from '../../../protocols/messages/registration.ts'
import { isMapping, mapping } from '../../../src/config/shape.ts'
import { entryData } from '../../../src/orchestrator/registered-entry.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure, ClusterApi } from '../cluster/cluster-api.ts'

/** The name under which the server records who has written a field. */
const fieldManager = 'mesh-registrar'

/** Returns the answer to the question. `domain`: that of the mesh. */
export const entryAnswers = (api: ClusterApi, domain: string): BoundedAnswers<'callEntry'> => ({
  callEntry: (order) => callEntry(api, domain, order),
})

async function callEntry(api: ClusterApi, domain: string, order: EntryOrder): Promise<EntryOutcome> {
  try {
    const answer: unknown = JSON.parse(await send(api, order))
    if (order.verb === 'delete') return { outcome: 'done', entry: undefined }
    const entry = entryData(mapping(answer), order, domain)
    return entry ? { outcome: 'done', entry } : { outcome: 'failed', reason: 'the answer is no object', concerns: 'all' }
  } catch (error) {
    return failed(error as ApiFailure, order)
  }
}

function send(api: ClusterApi, order: EntryOrder): Promise<string> {
  const { group, version, namespace, name, verb } = order
  const all = `/apis/${[group, version, 'namespaces', namespace].map(encodeURIComponent).join('/')}/workloadentries`
  const one = `${all}/${encodeURIComponent(name)}`
  const resource = `workloadentries.${group}`
  const object = `${namespace}/${name}`
  const accept = 'application/json'
  const query = `?fieldManager=${fieldManager}`
  const bodyOf = (value: unknown, type = 'application/json') => ({ text: JSON.stringify(value), type })
  switch (verb) {
    case 'create':
      return api.request({ verb, resource, object }, { method: 'POST', path: `${all}${query}`, accept, body: bodyOf(order.object) })
    case 'patch':
    case 'health': {
      const body = bodyOf(order.patch, 'application/merge-patch+json')
      const [path, name] = verb === 'patch' ? [one, resource] : [`${one}/status`, `${resource}/status`]
      return api.request({ verb: 'patch', resource: name, object }, { method: 'PATCH', path: `${path}${query}`, accept, body })
    }
    case 'delete': {
      const { uid, resourceVersion } = order
      const body = bodyOf({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } })
      return api.request({ verb, resource, object }, { method: 'DELETE', path: one, accept, body })
    }
  }
}

function failed({ code, isMissing, isConflict, isOfRole, mayPass, subject, message }: ApiFailure, { verb, name }: EntryOrder): EntryOutcome {
  // Another object of the name may be refused as a change of its uid.
  if (isConflict || (code === 422 && /metadata\.uid|resourceVersion/.test(message))) return { outcome: 'conflict' }
  if (isMissing && verb !== 'create' && isMapping(subject) && subject.name === name) return { outcome: 'gone' }
  return { outcome: 'failed', reason: message, concerns: mayPass || code === undefined || isOfRole ? 'all' : 'object' }
}
