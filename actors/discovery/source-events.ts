/** The object that each source event is about: determines the key under which events coalesce, and what a replay withdraws. */
import type { RegistryId } from '../../protocols/data.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { monotonicMs } from '../runtime/clock.ts'
import type { Peer } from '../runtime/link.ts'
import type { ObjectRule } from '../runtime/register.ts'

/** Sends an event to the push queue. */
export function sendEvent(queue: Peer<SourceEvent>, event: SourceEvent): void {
  queue.tell(event, `${event.type}|${'registry' in event ? recordKey(event) : 'key' in event ? event.key : ''}`)
}

/** The key of a service within its registry, as text. */
const recordKey = ({ registry: { provider, cluster }, key }: { readonly registry: RegistryId; readonly key: string }): string =>
  JSON.stringify([provider, cluster, key])

/** Maps source events to objects. Other messages are about no object. */
export const sourceObjects: ObjectRule<{ readonly type: string } | SourceEvent> = {
  objectOf(message) {
    const event = message as SourceEvent
    switch (event.type) {
      case 'ConfigChanged':
        return { key: `config|${event.key}`, there: event.object !== undefined }
      case 'ConfigUnusable':
        return { key: `config|${event.key}`, there: event.standIn ? true : 'unchanged' }
      case 'ServiceChanged':
        return { key: `service|${recordKey(event)}`, there: event.service !== undefined }
      case 'EndpointsChanged':
        return { key: `service|${recordKey(event)}`, there: true }
      default:
        return undefined
    }
  },
  withdrawal(object) {
    const key = object.slice(object.indexOf('|') + 1)
    const at = monotonicMs()
    if (object.startsWith('config|')) return { type: 'ConfigChanged', key, object: undefined, at }
    const [provider, cluster, service] = JSON.parse(key) as [string, string, string]
    return { type: 'ServiceChanged', registry: { provider, cluster }, key: service, service: undefined, endpoints: [], at }
  },
}
