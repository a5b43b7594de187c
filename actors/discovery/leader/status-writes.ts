/** Writes the status of configuration objects, on the main thread (docs/status.md, S6). */
import type { StatusOrder, StatusOutcome } from '../../../protocols/messages/object-status.ts'
import { isMapping, mapping } from '../../../src/config/shape.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { ApiFailure } from '../cluster/cluster-api.ts'
import { type Leadership, NotLeading } from './leadership.ts'

/** Of the answer only the metadata is asked for: objects may be large. */
const metadataOnly = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'

/** The name under which the server records who has written a field. */
const fieldManager = 'mesh-status'

/** Returns the answer to the question. `leadership`: that of the duty, for which the process stands for election with the first write. */
export const statusWrites = (leadership: () => Leadership): BoundedAnswers<'writeStatus'> => ({
  writeStatus: (order) => write(leadership(), order),
})

async function write(leadership: Leadership, { term, group, version, plural, namespace, name, patch }: StatusOrder): Promise<StatusOutcome> {
  const place = [group, version, 'namespaces', namespace, plural, name, 'status'].map(encodeURIComponent).join('/')
  try {
    const answer = await leadership.inTerm(term).request(
      { verb: 'patch', resource: `${plural}.${group}/status`, object: `${namespace}/${name}` },
      {
        method: 'PATCH',
        path: `/apis/${place}?fieldManager=${fieldManager}`,
        accept: metadataOnly,
        body: { text: JSON.stringify(patch), type: 'application/json-patch+json' },
      },
    )
    const { resourceVersion } = mapping(mapping(JSON.parse(answer)).metadata)
    if (typeof resourceVersion !== 'string') throw new Error('the answer has no resource version')
    return { outcome: 'written', resourceVersion }
  } catch (error) {
    if (error instanceof NotLeading) return { outcome: 'lost' }
    return failed(error as ApiFailure, name)
  }
}

function failed(failure: ApiFailure, name: string): StatusOutcome {
  const { code, isMissing, isConflict, isOfRole, mayPass, subject, message } = failure
  // A patch that does not apply to what is there is answered with 422 too, and names no object, as a status does that the definition does not permit.
  if (isConflict || (code === 422 && !(isMapping(subject) && subject.name === name))) return { outcome: 'conflict' }
  // Of a kind without the subresource, the server names no object.
  if (isMissing && isMapping(subject) && subject.name === name) return { outcome: 'gone' }
  const reason = isMissing ? `${message}: its definition has no subresource "status" (manifests/crds), or the server has it no more` : message
  return { outcome: 'failed', reason, concerns: isOfRole || isMissing ? 'resource' : mayPass || code === undefined ? 'all' : 'object' }
}
